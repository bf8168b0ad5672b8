package drover

// The runbook has each phase of a cluster, and each reason for which the upgrade function ends an upgrade, in the words that people read.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	formatVerb = regexp.MustCompile(`%[a-z]`)
	letters    = regexp.MustCompile(`[a-z]{3}`)
)

// Each phase has its row, in the order of the code.
func TestTheRunbookHasEveryPhase(t *testing.T) {
	var told []string
	for _, row := range rows(section(t, "runbook.md", "Phases")) {
		told = append(told, row[0])
	}
	require.Equal(t, constants(t, "shared/status/status.go", "Phase"), told)
}

// The runbook has people converge a cluster by the command. Only its introduction names the machine, for the console.
func TestRunbookConvergesByCommand(t *testing.T) {
	body, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(body), "start the machine\n`drover-converge`"))
	for i, line := range strings.Split(string(body), "\n") {
		require.NotRegexp(t, "(?i)\\bstart(ed|s)? `drover-converge`|`drover-converge` (again|started|is started)", line, "docs/runbook.md:%d: `drover converge NAME`", i+1)
	}
	require.Greater(t, strings.Count(string(body), "`drover converge NAME`"), 15)
}

// constants are the values of a file's constants of a type, in order.
func constants(t *testing.T, file, of string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if kind, named := spec.Type.(*ast.Ident); named && kind.Name == of {
			for _, value := range spec.Values {
				text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				require.NoError(t, err)
				all = append(all, text)
			}
		}
		return true
	})
	require.NotEmpty(t, all)
	return all
}

func TestTheRunbookHasEveryStop(t *testing.T) {
	var phrases []string
	for _, row := range rows(section(t, "runbook.md", "Upgrades")) {
		for _, quoted := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(row[0], -1) {
			phrases = append(phrases, quoted[1])
		}
	}
	files, err := filepath.Glob("functions/upgrade/handler/*.go")
	require.NoError(t, err)
	stops := 0
	for _, file := range append(files, "shared/upgrade/steps.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		call := "stopf"
		if strings.HasPrefix(file, "shared/") {
			call = "Errorf"
		}
		for _, format := range formats(t, file, call) {
			if !letters.MatchString(formatVerb.ReplaceAllString(format, "")) {
				continue // only what another part says
			}
			stops++
			in := false
			for _, phrase := range phrases {
				in = in || says(format, phrase)
			}
			require.True(t, in, "docs/runbook.md, Upgrades, has no row for the stop %q of %s", format, file)
		}
	}
	require.Greater(t, stops, 15)
}

// formats are those that a function is called with in a file.
func formats(t *testing.T, file, function string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is || len(call.Args) == 0 {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		if literal, is := call.Args[0].(*ast.BasicLit); is && name == function {
			format, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			all = append(all, format)
		}
		return true
	})
	return all
}

// says whether a phrase, in which … stands for anything, is in a format.
func says(format, phrase string) bool {
	for _, part := range strings.Split(phrase, "…") {
		_, rest, found := strings.Cut(format, part)
		if !found {
			return false
		}
		format = rest
	}
	return true
}
