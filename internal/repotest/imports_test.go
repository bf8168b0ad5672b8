package repotest

// What each package may import, and why.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/drover-run/drover/"

// services do I/O through interfaces that they declare. Every other package below shared/ is an adapter by its path, part of what a
// function needs on Lambda, or pure.
var services = []string{
	"shared/admission", "shared/doctor/collect", "shared/notification", "shared/planner", "shared/preflight/collect",
	"shared/releases", "shared/specs",
	"shared/store", "shared/upgrade/checker", "shared/uploads", "shared/waiter",
}

// isAdapter reports whether a package speaks to one outside system.
func isAdapter(folder string) bool { return under(folder, "shared/aws", "shared/kube") }

// isRuntime reports whether a package is glue between a function and Lambda.
func isRuntime(folder string) bool {
	return under(folder, "shared/lambdaruntime", "shared/logging")
}

// isPure reports whether a package decides without I/O, so that the same input gives the same answer.
func isPure(folder string) bool {
	return under(folder, "shared", "events", "templates") && !under(folder, services...) && !isAdapter(folder) && !isRuntime(folder)
}

// isSDK reports whether an import reaches AWS or Kubernetes, or is made for it.
func isSDK(imported string) bool {
	return strings.HasPrefix(imported, "github.com/aws/") || strings.HasPrefix(imported, "k8s.io/client-go")
}

// isMain reports whether a folder holds the main package of a function.
func isMain(folder string) bool { return path.Dir(folder) == "functions" }

// isWiring reports whether a package of a function builds its clients, or starts it.
func isWiring(folder string) bool {
	return isMain(folder) || under(folder, "functions") && path.Base(folder) == "setup"
}

// source is one Go file.
type source struct {
	file, folder string
	test         bool
	imports      []string
	syntax       *ast.File
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	set := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (slices.Contains([]string{".git", "build", "cdk.out", "node_modules", "testdata"}, entry.Name())) &&
			file != "local/kubernetes/build" {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s := source{file: file, folder: filepath.ToSlash(filepath.Dir(file)), test: strings.HasSuffix(file, "_test.go"), syntax: syntax}
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		all = append(all, s)
		return nil
	}))
	require.NotEmpty(t, all)
	return all
}

func under(folder string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") })
}

func TestImports(t *testing.T) {
	t.Chdir(root)
	rules := map[string]struct {
		reason string
		broken func(s source, imported, ours string) bool
	}{
		"pure packages import only pure packages, and no SDK": {
			"what an import can reach, its importer can reach, and a decision that reaches out cannot be trusted to repeat",
			func(s source, imported, ours string) bool {
				return isPure(s.folder) && !s.test && (isSDK(imported) || ours != "" && !isPure(ours))
			},
		},
		"services import no SDK and no adapter": {
			"their tests use fakes in memory, and another adapter can take the place of AWS",
			func(s source, imported, ours string) bool {
				return under(s.folder, services...) && !s.test && (isSDK(imported) || isAdapter(ours) || under(ours, "shared/lambdaruntime"))
			},
		},
		"adapters do not import each other": {
			"one system each; handlers put them together; drainer and survey work over the client of shared/kube",
			func(s source, _, ours string) bool {
				return isAdapter(s.folder) && !s.test && isAdapter(ours) && ours != s.folder && !under(ours, "shared/aws/internal") &&
					!(ours == "shared/kube" && under(s.folder, "shared/kube/drainer", "shared/kube/survey"))
			},
		},
		"handlers and their tests import no SDK and no adapter, not even their types": {
			"they declare small interfaces over pure types, so that their tests use fakes of a few lines and compile in seconds",
			func(s source, imported, ours string) bool {
				return under(s.folder, "functions") && !isWiring(s.folder) &&
					(isSDK(imported) || isAdapter(ours) || under(ours, "shared/lambdaruntime"))
			},
		},
		"only main and the test kit build functions": {
			"setup links every client of its function",
			func(s source, _, ours string) bool {
				return path.Base(ours) == "setup" && under(ours, "functions") && s.folder != path.Dir(ours) && !under(s.folder, "local/testkit")
			},
		},
		"main builds no function itself": {
			"tests call setup as main does; no test runs what else main would do",
			func(s source, imported, ours string) bool {
				return isMain(s.folder) && imported != "github.com/aws/aws-lambda-go/lambda" && ours != s.folder+"/setup" &&
					ours != "shared/lambdaruntime"
			},
		},
		"functions and commands do not import functions": {
			"what two of them need is a package below shared/; only the benchmarks run handlers, and passes of the sweep",
			func(s source, _, ours string) bool {
				function, _, _ := strings.Cut(strings.TrimPrefix(s.folder, "functions/"), "/")
				return under(s.folder, "functions", "cmd") && under(ours, "functions") && !under(ours, "functions/"+function) &&
					!(s.folder == "cmd/bench" && (path.Base(ours) == "handler" || ours == "functions/sweep/passes"))
			},
		},
		"the sweep's passes and its audit do not import each other": {
			"each can be read alone; what both need is in functions/sweep/work",
			func(s source, _, ours string) bool {
				return !s.test && (under(s.folder, "functions/sweep/passes") && under(ours, "functions/sweep/audit") ||
					under(s.folder, "functions/sweep/audit") && under(ours, "functions/sweep/passes"))
			},
		},
		"only infra imports CDK": {
			"it takes a minute to compile and Node to run",
			func(s source, imported, _ string) bool {
				return !under(s.folder, "infra") && (strings.HasPrefix(imported, "github.com/aws/aws-cdk-go") ||
					strings.HasPrefix(imported, "github.com/aws/constructs-go") || strings.HasPrefix(imported, "github.com/aws/jsii-runtime-go"))
			},
		},
		"only the benchmarks, drover-local and tests import the local account": {
			"what runs on AWS must not know the local account; cmd/drover links none of it (TestDroverLinksNoLocalAccount)",
			func(s source, _, ours string) bool {
				return under(ours, "local") && !under(s.folder, "local", "cmd/bench", "cmd/drover-local") && !s.test
			},
		},
		"the command does not import the local account, not even in tests": {
			"its tests run in seconds; those that need an account are in cmd/internal/worlds",
			func(s source, _, ours string) bool {
				return under(ours, "local") && under(s.folder, "cmd/internal/cli", "cmd/internal/clitest")
			},
		},
		"tests of functions do not import the local account": {
			"they use small fakes, so that they compile and run in seconds; tests that start an account are in local/testkit/worlds",
			func(s source, _, ours string) bool { return under(s.folder, "functions") && under(ours, "local") },
		},
		"simulated services import no package of drover": {
			"a simulator that shares code with drover repeats its mistakes; and it can move to a module of its own",
			func(s source, _, ours string) bool {
				return under(s.folder, "local/aws", "local/engine") && !s.test && ours != "" && !under(ours, "local")
			},
		},
	}
	all := sources(t)
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, s := range all {
				for _, imported := range s.imports {
					ours, _ := strings.CutPrefix(imported, module)
					if ours == imported {
						ours = ""
					}
					if rule.broken(s, imported, ours) {
						t.Errorf("%s imports %s: %s", s.file, imported, rule.reason)
					}
				}
			}
		})
	}
}

// TestPurePackagesTakeTheirInput: clocks and environments come in as arguments.
func TestPurePackagesTakeTheirInput(t *testing.T) {
	t.Chdir(root)
	banned := map[string][]string{"os": {"Getenv", "LookupEnv", "Environ"}, "time": {"Now", "Since", "Until", "Sleep", "After"}}
	for _, s := range sources(t) {
		if s.test || !isPure(s.folder) {
			continue
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if of, ok := selector.X.(*ast.Ident); ok && slices.Contains(banned[of.Name], selector.Sel.Name) {
					t.Errorf("%s uses %s.%s: it must come in as an argument", s.file, of.Name, selector.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestPurePackagesTakeNoContext: a context means that something may take long, or that another system is asked.
func TestPurePackagesTakeNoContext(t *testing.T) {
	t.Chdir(root)
	for _, s := range sources(t) {
		if s.test || !isPure(s.folder) {
			continue
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok && selector.Sel.Name == "Context" {
				if of, ok := selector.X.(*ast.Ident); ok && of.Name == "context" {
					t.Errorf("%s takes a context: a pure package does no I/O", s.file)
				}
			}
			return true
		})
	}
}

func TestPackagesAreNamedForWhatTheyDo(t *testing.T) {
	t.Chdir(root)
	for _, s := range sources(t) {
		for _, name := range []string{path.Base(s.folder), s.syntax.Name.Name} {
			require.NotContains(t, []string{"util", "utils", "common", "helpers", "helper", "types", "models", "misc"}, name, s.file)
		}
	}
}

// Imports have at most three groups, with a blank line between them: the standard library, third parties, drover.
func TestImportsHaveThreeGroups(t *testing.T) {
	t.Chdir(root)
	checked := 0
	for _, file := range trackedFiles(t, ".go") {
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		var groups []int // the kind of each group, in order
		last := 0        // the line of the last import
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			kind, line := importKind(imported), set.Position(spec.Pos()).Line
			if line > last+1 || len(groups) == 0 {
				groups = append(groups, kind)
			}
			require.Equal(t, groups[len(groups)-1], kind, "%s:%d: %s is in a group of another kind", file, line, imported)
			last = line
		}
		require.True(t, slices.IsSorted(groups) && len(slices.Compact(slices.Clone(groups))) == len(groups),
			"%s: the order is standard library, third parties, drover, one group each", file)
		checked++
	}
	require.Greater(t, checked, 500)
}

// importKind is 0 for the standard library, 1 for third parties and 2 for drover.
func importKind(imported string) int {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case strings.HasPrefix(imported, module):
		return 2
	case strings.Contains(first, "."):
		return 1
	}
	return 0
}
