package repotest

// The runbook has each message that ends an upgrade, and each text that reaches a status, a notice, the output of an execution, or a
// command.

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
)

var (
	formatVerb = regexp.MustCompile(`%[a-z]`)
	letters    = regexp.MustCompile(`[a-z]{3}`)
)

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
