package drover

// The runbook has an entry for each phase, each condition and each message that ends an upgrade. Its entries have one
// shape, and its links lead to headings.

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

// entry is a heading below a section, with the text below it.
type entry struct{ heading, text string }

// entries of a section of the runbook.
func entries(t *testing.T, name string) (all []entry) {
	t.Helper()
	for i, text := range strings.Split("\n"+section(t, "runbook.md", name), "\n### ") {
		if i == 0 {
			continue // the section's introduction
		}
		heading, rest, _ := strings.Cut(text, "\n")
		all = append(all, entry{heading, rest})
	}
	require.NotEmpty(t, all, name)
	return all
}

// headings of a section's entries, less a first word and backquotes.
func headings(t *testing.T, name, first string) (all []string) {
	t.Helper()
	for _, e := range entries(t, name) {
		all = append(all, strings.Trim(strings.TrimPrefix(e.heading, first), "`"))
	}
	return all
}

// Phases are in the order of the code.
func TestRunbookHasEveryPhase(t *testing.T) {
	require.Equal(t, constants(t, "shared/status/document.go", "Phase"), headings(t, "Phases", "Phase "))
}

func TestRunbookHasEveryCondition(t *testing.T) {
	require.Equal(t, conditionTypes(t), headings(t, "Conditions", "Condition "))
}

// conditionTypes are the constants below "Condition types.", in order.
func conditionTypes(t *testing.T) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "shared/status/document.go", nil, parser.ParseComments)
	require.NoError(t, err)
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Doc.Text() != "Condition types.\n" {
			continue
		}
		for _, spec := range group.Specs {
			text, err := strconv.Unquote(spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			all = append(all, text)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// Each entry says what it means and what to do; no entry is a table's cell. Only the contents are a table.
func TestRunbookEntriesHaveOneShape(t *testing.T) {
	body, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	require.Equal(t, rows(section(t, "runbook.md", "Contents")), rows(string(body)), "an entry is a section, no row of a table")
	shown := 0
	for _, text := range strings.Split(string(body), "\n### ")[1:] {
		text, _, _ = strings.Cut(text, "\n## ")
		heading, text, _ := strings.Cut(text, "\n")
		shown++
		end := 0
		for _, part := range []string{"**Meaning.**", "**What drover does.**", "**What you do.**", "**Commands.**"} {
			at := strings.Index(text, part)
			if at < 0 {
				require.Contains(t, []string{"**What drover does.**", "**Commands.**"}, part, "docs/runbook.md, %q has no %s", heading, part)
				continue
			}
			require.Equal(t, 1, strings.Count(text, part), "docs/runbook.md, %q: %s", heading, part)
			require.GreaterOrEqual(t, at, end, "docs/runbook.md, %q: %s is out of order", heading, part)
			end = at
		}
	}
	require.Greater(t, shown, 140)
}

// Links to headings of the runbook, of its own and of other pages, lead to one heading each.
func TestRunbookLinksLeadToHeadings(t *testing.T) {
	body, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(body), -1) {
		if strings.HasPrefix(heading[0], "# ") && heading[1] != "Runbook" {
			continue // a comment in a block of commands
		}
		anchor := anchorOf(heading[1])
		require.False(t, anchors[anchor], "docs/runbook.md has two headings with the anchor %q", anchor)
		anchors[anchor] = true
	}
	links := 0
	for _, file := range trackedFiles(t, ".md") {
		page, err := os.ReadFile(file)
		require.NoError(t, err)
		pattern := `runbook\.md#([^)\s]+)\)`
		if file == "docs/runbook.md" {
			pattern = `\]\(#([^)\s]+)\)`
		}
		for _, link := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(page), -1) {
			links++
			require.True(t, anchors[link[1]], "%s links to #%s, which docs/runbook.md does not have", file, link[1])
		}
	}
	require.Greater(t, links, 50)
}

// anchorOf is the anchor that GitHub gives to a heading.
func anchorOf(heading string) string {
	kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

// Entries name the command that converges a cluster. Only the first steps name the machine, for the console.
func TestRunbookConvergesByCommand(t *testing.T) {
	body, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	require.Len(t, regexp.MustCompile("start the machine\\s`drover-converge`").FindAllString(string(body), -1), 1)
	for i, line := range strings.Split(string(body), "\n") {
		require.NotRegexp(t, "(?i)\\bstart(ed|s)? `drover-converge`|`drover-converge` (again|started|is started)", line,
			"docs/runbook.md:%d: `drover converge NAME`", i+1)
	}
	require.Greater(t, strings.Count(string(body), "`drover converge NAME`"), 15)
}

// constants are the values of a file's constants of a type, in order.
func constants(t *testing.T, file, of string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == of {
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

func TestRunbookHasEveryStop(t *testing.T) {
	var phrases []string
	for _, e := range entries(t, "Upgrades") {
		for _, quoted := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(e.heading, -1) {
			phrases = append(phrases, quoted[1])
		}
	}
	files := []string{"shared/upgrade/steps.go"}
	for _, folder := range []string{"functions/upgrade/handler", "shared/upgrade/route", "shared/upgrade/checker"} {
		more, err := filepath.Glob(folder + "/*.go")
		require.NoError(t, err)
		files = append(files, more...)
	}
	stops := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		call := "Stopf"
		if file == files[0] {
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
			require.True(t, in, "docs/runbook.md, Upgrades, has no heading for the stop %q of %s", format, file)
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
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		if literal, ok := call.Args[0].(*ast.BasicLit); ok && name == function {
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
