package repotest

// The runbook has an entry for each phase and each condition. Its entries have one shape, and its links lead to headings. Its messages:
// messages_test.go.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/doctor"
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
	t.Chdir(root)
	require.Equal(t, constants(t, "shared/status/document.go", "Phase"), headings(t, "Phases", "Phase "))
}

func TestRunbookHasEveryCheckOfAccounts(t *testing.T) {
	t.Chdir(root)
	require.Equal(t, doctor.Names(), headings(t, "Checks of accounts", "Account check "))
}

func TestRunbookHasEveryReasonOfRelays(t *testing.T) {
	t.Chdir(root)
	require.Equal(t, constants(t, "shared/kube/relay/errors.go", "Reason"), headings(t, "Relays", ""))
}

// A user finds the advice of a message in the runbook by its own words.
func TestRunbookHasTheTextsOfRelays(t *testing.T) {
	t.Chdir(root)
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	body, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	page, texts := words(string(body)), 0
	for _, of := range []struct{ file, name string }{
		{"shared/kube/relay/errors.go", "advice"}, {"shared/kube/closed.go", "closedOutside"}, {"shared/planner/relay.go", "relayWarning"},
		{"functions/sweep/audit/control_plane.go", "accessDrift"},
	} {
		for _, text := range literals(t, of.file, of.name) {
			for _, part := range regexp.MustCompile(`%[a-z]|[:;,]`).Split(text, -1) {
				if part = strings.Trim(part, " ()"); len(strings.Fields(part)) < 4 {
					continue
				}
				texts++
				require.Contains(t, page, words(part), "docs/runbook.md does not have the words of %s", of.file)
			}
		}
	}
	require.Greater(t, texts, 15)
}

// literals are the texts in a declaration of a file. The parts of a text that is composed of several are one.
func literals(t *testing.T, file, name string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	for _, declaration := range parsed.Decls {
		function, isFunction := declaration.(*ast.FuncDecl)
		if isFunction && function.Name.Name != name {
			continue
		}
		if group, isGroup := declaration.(*ast.GenDecl); isGroup {
			spec, isValue := group.Specs[0].(*ast.ValueSpec)
			if !isValue || spec.Names[0].Name != name {
				continue
			}
		}
		ast.Inspect(declaration, func(n ast.Node) bool {
			expression, isExpression := n.(ast.Expr)
			if !isExpression {
				return true
			}
			text, isText := textOf(expression)
			if isText {
				all = append(all, text)
			}
			return !isText
		})
	}
	require.NotEmpty(t, all, "%s has no texts in %s", file, name)
	return all
}

func TestRunbookHasEveryCondition(t *testing.T) {
	t.Chdir(root)
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
	t.Chdir(root)
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

// A quoted message or command stands on one line, so that a search by its words finds it.
func TestRunbookQuotesStandOnOneLine(t *testing.T) {
	t.Chdir(root)
	quotes := 0
	for i, line := range proseOf(t, "docs/runbook.md") {
		for _, mark := range []string{`"`, "`"} {
			require.Zero(t, strings.Count(line, mark)%2, "docs/runbook.md:%d: a quotation continues on another line: %s", i+1, line)
		}
		quotes += strings.Count(line, `"`) / 2
	}
	require.Greater(t, quotes, 200)
}

// proseOf is the lines of a page. Lines of code are empty.
func proseOf(t *testing.T, page string) []string {
	t.Helper()
	prose, code := splitPage(t, page)
	require.NotEmpty(t, code)
	return prose
}

// splitPage is the prose and the code of a page, each with as many lines as the page. A line of the other kind is empty.
func splitPage(t *testing.T, page string) (prose, code []string) {
	t.Helper()
	body, err := os.ReadFile(page)
	require.NoError(t, err)
	inCode := false
	for _, line := range strings.Split(string(body), "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		inCode = inCode != fence
		switch {
		case fence:
			prose, code = append(prose, ""), append(code, "")
		case inCode:
			prose, code = append(prose, ""), append(code, line)
		default:
			prose, code = append(prose, line), append(code, "")
		}
	}
	return prose, code
}

// wordsOfAWS are words in capitals that commands contain and that stay as they are.
var wordsOfAWS = []string{
	"EKS", "IMPORT", "CONTINUE", "ABANDON", "UPDATE_ROLLBACK_FAILED", "DELETE_FAILED", "DELETE_COMPLETE", "CLUSTER_ENDPOINT", "CLUSTER_CA",
}

// The introduction defines each word of a command that the reader replaces.
func TestRunbookDefinesItsPlaceholders(t *testing.T) {
	t.Chdir(root)
	body, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	introduction, _, found := strings.Cut(string(body), "## Contents")
	require.True(t, found)
	capitals := regexp.MustCompile(`\b[A-Z][A-Z_]*\b`)
	defined := capitals.FindAllString(introduction, -1)
	used := map[string]bool{}
	_, code := splitPage(t, "docs/runbook.md")
	for i, line := range code {
		line = regexp.MustCompile(`--query.*|'\{.*|_FAILED'`).ReplaceAllString(line, "")
		for _, word := range capitals.FindAllString(line, -1) {
			if len(word) > 1 && !slices.Contains(wordsOfAWS, word) {
				used[word] = true
				require.Contains(t, defined, word, "docs/runbook.md:%d: the introduction does not define %s", i+1, word)
			}
		}
	}
	require.Greater(t, len(used), 15)
}

// Links to headings of the runbook, of its own and of other pages, lead to one heading each.
func TestRunbookLinksLeadToHeadings(t *testing.T) {
	t.Chdir(root)
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

// Texts of the code that send their reader to a heading of the runbook name one that exists.
func TestTextsNameHeadingsOfTheRunbook(t *testing.T) {
	t.Chdir(root)
	body, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(body), -1) {
		anchors[anchorOf(heading[1])] = true
	}
	reference, named := regexp.MustCompile(`see the runbook: ([^;)]+)|runbook\.md#([\w-]*\w)`), 0
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			expression, isExpression := n.(ast.Expr)
			if !isExpression {
				return true
			}
			text, isText := textOf(expression)
			for _, found := range reference.FindAllStringSubmatch(text, -1) {
				require.True(t, anchors[anchorOf(found[1]+found[2])], "%s: docs/runbook.md has no heading for %q", s.file, found[0])
				named++
			}
			return !isText
		})
	}
	require.GreaterOrEqual(t, named, 2)
}

// anchorOf is the anchor that GitHub gives to a heading.
func anchorOf(heading string) string {
	kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

// Entries name the command that converges a cluster. Only the first steps name the machine, for the console.
func TestRunbookConvergesByCommand(t *testing.T) {
	t.Chdir(root)
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
