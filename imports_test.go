// Package drover keeps the repository's import rules: a test, so that nobody has to remember them.
package drover

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/drover-run/drover/"

// pure packages decide; they neither ask nor tell the world, so the same input gives the same answer.
var pure = []string{
	"events", "templates", "shared/api", "shared/calendar", "shared/drain", "shared/names", "shared/fault", "shared/status",
	"shared/pool", "shared/stack", "shared/render", "shared/roll", "shared/backoff", "shared/plan",
	"shared/upgrade", "shared/preflight",
}

// adapters speak to one outside system each.
var adapters = []string{
	"shared/kube", "shared/aws/autoscaling", "shared/aws/cloudformation", "shared/aws/cloudwatch",
	"shared/aws/ec2", "shared/aws/eks",
	"shared/aws/leftovers", "shared/aws/eventbridge", "shared/aws/s3", "shared/aws/sns", "shared/aws/servicequotas",
	"shared/aws/stepfunctions",
}

// services do I/O only through interfaces that they declare.
var services = []string{
	"shared/notification", "shared/store", "shared/planner", "shared/specs", "shared/admission", "shared/releases", "shared/upgrade/checker",
}

// glue puts the others together for functions.
var glue = []string{
	"shared/lambdaruntime", "shared/logging", "shared/metrics", "shared/waiter", "shared/preflight/collect", "shared/query",
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

// isPure reports whether a package is pure. A package that collects facts may lie below the pure one that judges them.
func isPure(folder string) bool {
	return under(folder, pure...) && !under(folder, glue...) && !under(folder, services...)
}

func under(folder string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") })
}

func TestImports(t *testing.T) {
	rules := map[string]struct {
		reason string
		broken func(s source, imported, ours string) bool
	}{
		"pure packages import no AWS client and no client-go": {
			"a decision that can reach out cannot be trusted to repeat",
			func(s source, imported, _ string) bool {
				return isPure(s.folder) && !s.test &&
					(strings.HasPrefix(imported, "github.com/aws/") || strings.HasPrefix(imported, "k8s.io/client-go"))
			},
		},
		"pure packages import no adapter and no service": {
			"what an adapter can reach, its importer can reach",
			func(s source, _, ours string) bool {
				return isPure(s.folder) && !s.test && under(ours, append(services, adapters...)...)
			},
		},
		"services import no SDK and no adapter": {
			"their tests use fakes in memory, and another adapter can take the place of AWS",
			func(s source, imported, ours string) bool {
				return under(s.folder, services...) && !s.test && (strings.HasPrefix(imported, "github.com/aws/") ||
					strings.HasPrefix(imported, "k8s.io/client-go") || under(ours, adapters...))
			},
		},
		"adapters do not import each other": {
			"one system each; handlers put them together; what drains and surveys clusters does so over one client",
			func(s source, _, ours string) bool {
				return under(s.folder, adapters...) && !s.test && under(ours, adapters...) && ours != s.folder &&
					!(ours == "shared/kube" && under(s.folder, "shared/kube/drainer", "shared/kube/survey"))
			},
		},
		"handlers do not import the SDK, not even its types": {
			"adapters convert, so that a handler's tests need no client and an SDK upgrade changes adapters only",
			func(s source, imported, _ string) bool {
				return under(s.folder, "functions") && path.Base(s.folder) == "handler" && !s.test &&
					strings.HasPrefix(imported, "github.com/aws/aws-sdk-go-v2/")
			},
		},
		"functions and commands do not import functions": {
			"what two of them need is a package below shared/; only the benchmarks run a function",
			func(s source, _, ours string) bool {
				function, _, _ := strings.Cut(strings.TrimPrefix(s.folder, "functions/"), "/")
				return under(s.folder, "functions", "cmd") && under(ours, "functions") && !under(ours, "functions/"+function) &&
					s.folder != "cmd/bench"
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
			"what runs on AWS must not know that there is one; cmd/drover links none of it (TestDroverLinksNoLocalAccount)",
			func(s source, _, ours string) bool {
				return under(ours, "local") && !under(s.folder, "local", "cmd/bench", "cmd/drover-local") && !s.test
			},
		},
		"simulated services import no package of drover": {
			"a simulator that shares code with drover repeats its mistakes; and it can move to a module of its own",
			func(s source, _, ours string) bool {
				return under(s.folder, "local/aws", "local/engine") && !s.test && ours != "" && !under(ours, "local")
			},
		},
		"nothing imports the EC2 client": {
			"it takes minutes to compile, and drover leaves EC2 to CloudFormation",
			func(_ source, imported, _ string) bool { return imported == "github.com/aws/aws-sdk-go-v2/service/ec2" },
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

// TestEverySharedPackageIsOfOneKind: a package that no rule knows would be bound by none.
func TestEverySharedPackageIsOfOneKind(t *testing.T) {
	for _, s := range sources(t) {
		if under(s.folder, "shared") {
			require.True(t, isPure(s.folder) || under(s.folder, adapters...) || under(s.folder, services...) || under(s.folder, glue...),
				"%s is neither pure, nor an adapter, nor a service, nor glue", s.folder)
		}
	}
}

func TestPackagesAreNamedForWhatTheyDo(t *testing.T) {
	for _, s := range sources(t) {
		for _, name := range []string{path.Base(s.folder), s.syntax.Name.Name} {
			require.NotContains(t, []string{"util", "utils", "common", "helpers", "helper", "types", "models", "misc"}, name, s.file)
		}
	}
}

// TestThePagesNameTestsThatAre: who doubts a claim of the pages finds the test that shows it.
func TestThePagesNameTestsThatAre(t *testing.T) {
	tests := map[string]bool{}
	for _, s := range sources(t) {
		for _, declaration := range s.syntax.Decls {
			if function, is := declaration.(*ast.FuncDecl); is && s.test {
				tests[function.Name.Name] = true
			}
		}
	}
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile("`(Test[A-Z][A-Za-z]+)`").FindAllStringSubmatch(string(text), -1) {
			require.True(t, tests[name[1]], "%s names %s, which is no test", page, name[1])
		}
	}
}
