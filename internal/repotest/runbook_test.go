package repotest

// The runbook has an entry for each phase, each condition and each message that ends an upgrade. Its entries have one
// shape, and its links lead to headings.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/doctor"
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

func TestRunbookHasEveryStop(t *testing.T) {
	t.Chdir(root)
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
		if format, ok := textOf(call.Args[0]); ok && name == function {
			all = append(all, format)
		}
		return true
	})
	return all
}

// says reports whether a phrase, in which … stands for anything, is in a format.
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

// textOf is the text of a literal, or of a sum of literals and other values. A value is %s. It is not ok without a literal.
func textOf(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, isLeft := textOf(e.X)
		right, isRight := textOf(e.Y)
		return left + right, e.Op == token.ADD && (isLeft || isRight)
	}
	return "%s", false
}

// hiddenMessages are folders and files below functions, shared and events whose texts need no entry, with the reason. The texts of all
// other files need one, so a new file is checked by itself.
var hiddenMessages = map[string]string{
	"functions/relay/handler/":               "answers to package shared/kube/relay, which words the message",
	"functions/sweep/handler/":               "names of passes, for the log",
	"functions/sweep/sweeptest/":             "test support",
	"shared/doctor/":                         "findings: each check has an entry",
	"shared/api/":                            "errors of a spec name the file, the line and the field: SpecInvalid",
	"shared/aws/internal/":                   "AWS's own words",
	"shared/aws/lambda/":                     "errors of the relay function, which shared/kube/relay words",
	"shared/calendar/":                       "errors of a field of a spec: SpecInvalid",
	"shared/kube/relay/":                     "each says what to do: ClusterUnreachable",
	"shared/kube/survey/":                    "facts of checks",
	"shared/lambdaruntime/":                  "errors of a function's configuration: Internal",
	"shared/names/":                          "errors of arguments: Internal",
	"shared/notification/":                   "subjects of notices; their messages are those of statuses",
	"shared/preflight/":                      "each has the name of its check: TestRunbookHasEveryCheck",
	"shared/releases/":                       "each has the name of its check: TestRunbookHasEveryCheck",
	"shared/rollout/":                        "problems of a rollout name the file and the field; answers to decisions: docs/fleet.md",
	"shared/render/":                         "errors of a spec that validation should have found: SpecInvalid; ErrNoRelayCode: Internal",
	"shared/store/":                          "errors of reads and writes: Transient, Internal",
	"shared/specs/":                          "causes within other messages",
	"events/notices.go":                      "detail types of events",
	"functions/change/handler/superseded.go": "the execution continues by itself: Superseded",
}

// checkedBelowHidden are files in hidden folders whose texts need an entry.
var checkedBelowHidden = []string{"shared/api/warnings.go", "shared/api/network_warnings.go"}

// unlistedMessages are the first words of messages that need no entry, by the reason.
var unlistedMessages = map[string][]string{
	"a part of a message that has an entry": {
		"\nand … more", "… (at …; next check at …)", ": run drover converge … to create it",
		"… (without it drover may not change the stack's resources)", ". It is more than … late.", "its channel",
		"release … (Kubernetes …)", "EKS offers up to 1.… here", "…which the cluster already runs", "upgrade to 1.… first",
		"which was started", "which is still in progress", "which is complete but not verified yet", "Completed and kept",
		"No step is complete yet.", "other content", "in place", "which replaces its nodes",
	},
	"what to do, at the end of a message that has an entry": {
		"The status shows which pods they wait for", "Find out why the cluster's API does not answer",
		"EKS removes such nodes within minutes", "To roll back", "To undo the rollback", "…Next: …. To continue",
		"Set another time in spec.upgrade.at", "Start it again when the cluster is idle", "It begins when the cluster is idle",
		"It does not begin", "It begins in the window that opens at", "Correct it before the upgrade is due",
	},
	"the name of a step of an upgrade": {
		"add-ons to versions for the previous Kubernetes version", "the rest of the previous release",
		"add-ons to versions for the next Kubernetes version", "control plane to", "add-ons to the versions of the release",
		"nodes to the images of the release", "nodes back to their previous images",
	},
	"AWS's words":            {"User suspended at"},
	"the kind of a resource": {"classic load balancer", "target group", "VPC … with its subnets"},
	"a command": {
		"aws cloudformation update-stack --stack-name", "--use-previous-template --capabilities CAPABILITY_NAMED_IAM --role-arn ROLE --tags",
		"aws ec2 describe-… --filters … --query '…[].[…]' --output text",
	},
}

// messageFiles are the files whose texts reach a status, a notice, the output of an execution, or a command.
func messageFiles(t *testing.T) (all []string) {
	t.Helper()
	for _, s := range sources(t) {
		below := strings.HasPrefix(s.file, "functions/") && !strings.Contains(s.file, "/setup/") ||
			strings.HasPrefix(s.file, "shared/") || strings.HasPrefix(s.file, "events/")
		isHidden := false
		for prefix := range hiddenMessages {
			isHidden = isHidden || strings.HasPrefix(s.file, prefix)
		}
		if below && !s.test && (!isHidden || slices.Contains(checkedBelowHidden, s.file)) {
			all = append(all, s.file)
		}
	}
	return all
}

// A message is in the runbook by its first words: from its begin, or after a value, to the first colon, semicolon, comma
// or bracket that follows two words. A value is written as …. The words stand on one line, so that a search by them finds the entry.
func TestTheRunbookHasEveryFailure(t *testing.T) {
	t.Chdir(root)
	body, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	runbook := string(body)
	needless := map[string]bool{}
	for _, texts := range unlistedMessages {
		for _, text := range texts {
			needless[text] = true
		}
	}
	found := 0
	for _, file := range messageFiles(t) {
		for _, message := range messages(t, file) {
			found++
			first := firstWords(message)
			if _, ok := needless[first]; ok {
				needless[first] = false
				continue
			}
			if !pattern(first).MatchString(runbook) {
				t.Errorf("docs/runbook.md does not have %q of the message %q of %s", first, message, file)
			}
		}
	}
	require.Greater(t, found, 250)
	for prefix := range hiddenMessages {
		exists := slices.ContainsFunc(sources(t), func(s source) bool { return strings.HasPrefix(s.file, prefix) })
		require.True(t, exists, "%s does not exist", prefix)
	}
	for text, unused := range needless {
		require.False(t, unused, "no message begins with %q: remove it from unlisted", text)
	}
}

var (
	value   = regexp.MustCompile(`%(\[\d+\])?[a-z]`)
	words   = regexp.MustCompile(`[a-zA-Z]{2,}`)
	twoWord = regexp.MustCompile(`[a-zA-Z.]{2,}[^a-zA-Z.…]+[a-zA-Z.]{2,}`)
	clause  = regexp.MustCompile(`[:;,] | \(`)
)

// pattern matches a message's first words. A value may stand for constant words of another message, such as "nodes are replaced".
func pattern(first string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(first), "…", `.{1,40}`))
}

func firstWords(message string) string {
	message = strings.ReplaceAll(value.ReplaceAllString(message, "…"), "……", "…")
	message = strings.TrimLeft(strings.TrimPrefix(message, "…: "), " ,;(")
	for _, at := range clause.FindAllStringIndex(message, -1) {
		if twoWord.MatchString(message[:at[0]]) {
			return message[:at[0]]
		}
	}
	return strings.TrimRight(message, ": …")
}

// noMessage are functions whose arguments are no messages: of loggers, and of comparisons.
var noMessage = []string{
	"Warn", "Info", "MustCompile", "Contains", "HasPrefix", "HasSuffix", "Cut", "CutPrefix", "CutSuffix", "TrimPrefix", "TrimSuffix",
}

// messages are the texts of two or more words in a file. Texts of logs, of errors that wrap another one, of comparisons, patterns, imports
// and tags are none.
func messages(t *testing.T, file string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	var collect func(ast.Node) bool
	collect = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			ast.Inspect(n.Type, collect)
			return false
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && (slices.Contains(noMessage, f.Sel.Name) ||
				f.Sel.Name == "Error" && len(n.Args) > 0) {
				return false
			}
		case ast.Expr:
			text, ok := textOf(n)
			several := len(words.FindAllString(value.ReplaceAllString(text, ""), -1)) > 1 && strings.Contains(text, " ")
			if ok && several && !strings.Contains(text, "%w") {
				all = append(all, text)
			}
			return !ok
		}
		return true
	}
	ast.Inspect(parsed, collect)
	return all
}
