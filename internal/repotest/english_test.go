package repotest

// The language of the repository: words that drover no longer uses, and limits for lines and names. Counts are compared with
// english_baseline.json. A count may only fall; the commit that lowers a count lowers the baseline too:
//
//	go test ./internal/repotest -run TestEnglish -update
//
// Generated pages and golden files are exempt.

import (
	"encoding/json"
	"flag"
	"go/ast"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite english_baseline.json")

const baselineFile = "internal/repotest/english_baseline.json"

// The longest lines, in characters. A tab is one.
const (
	maxMarkdownColumns = 120
	maxGoColumns       = 140
)

// The longest names of test functions, in characters.
const (
	maxTestName  = 60
	longTestName = 50
)

// avoidedWords are counted in Go, in Markdown, and in templates and scripts, in any case and as whole words. For each there is a term of
// Kubernetes or AWS, or a plain verb. A row is one count; its phrases are separated by "|".
var avoidedWords = []string{
	"anew", "mend|mends|mended|mending", "whoever", "nobody", "somebody", "anybody|everybody",
	"told", "tell|tells|telling", "becomes of|become of|became of", "as ever", "no good", "let go|lets go",
	"people", "person|persons", "hear|hears|heard", "said", "says that|says whether",
	"go on|goes on|going on|went on", "go back|goes back|went back", "take back|takes back|taken back|took back",
	"go by|goes by|went by|gone by", "come to|comes to|came to",
	"once more", "by now", "meanwhile", "any more|no more", "for good", "at rest",
	"gone", "under way", "is to be|are to be|was to be|were to be", "give up|gives up|gave up|given up", "in the way",
	"all the same", "beside|besides", "but for|nothing but|all but", "nothing of|nothing is",
	"that there is|that there are", "of whom|of which", "as it is|as it was|what it is|what it was", "ask for|asks for|asked for",
	"look at|looks at|looked at",
	// The comment of a predicate has Go's form: reports whether.
	"returns true if|returns true for|is true if|is true for|is true while|is true once|is true after|returns whether",
	// American spelling, which the AWS and Kubernetes docs use.
	"catalogue|catalogues", "colour|colours|coloured", "behaviour|behaviours", "labelled|modelled|towards|centre",
}

// avoidedResults are names of a lookup's second result: `found` and `ok` say the same.
var avoidedResults = []string{"is", "there", "known"}

// avoidedFiles are words of file names that hide what a file holds.
var avoidedFiles = []string{
	"told", "gone", "moved", "ahead", "over", "lost", "left", "kept", "ills", "unacted", "tell", "handed", "remembered",
}

// wholeWord is what git grep -w takes for a word.
var wholeWord = regexp.MustCompile(`[0-9a-z_]+`)

// textCounts are counts by the kind of a file. Other are the templates, the Makefile and .ci/run.
type textCounts struct{ Go, Markdown, Other int }

// englishCounts is what the baseline holds.
type englishCounts struct {
	// Words by pattern.
	Words map[string]textCounts
	// LongLines over the limit.
	LongLines textCounts
	// Results by name: how often the second result of an assignment has that name.
	Results map[string]int
	// TestNames over 60 and over 50 characters.
	TestNames struct{ Over60, Over50 int }
	// Files whose name has an avoided word.
	Files []string
}

func TestEnglish(t *testing.T) {
	t.Chdir(root)
	counts := countEnglish(t)
	body, err := os.ReadFile(baselineFile)
	require.NoError(t, err)
	var baseline englishCounts
	require.NoError(t, json.Unmarshal(body, &baseline))
	for _, row := range avoidedWords {
		if _, found := baseline.Words[row]; !found && *update { // a new row begins with its count of today
			baseline.Words[row] = counts.Words[row]
		}
	}
	before, now := baseline.byName(), counts.byName()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch {
		case now[name] > before[name]: // -update does not raise a count either
			t.Errorf("%s: %d, the baseline has %d: use the project's terms", name, now[name], before[name])
		case now[name] < before[name] && !*update:
			t.Errorf("%s: %d, the baseline has %d: lower it with `go test ./internal/repotest -run TestEnglish -update`",
				name, now[name], before[name])
		}
	}
	if *update && !t.Failed() {
		body, err := json.MarshalIndent(counts, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(baselineFile, append(body, '\n'), 0o644))
		return
	}
	require.Equal(t, baseline.Files, counts.Files, "files with an avoided word in their name")
}

// byName returns every count except that of files, by a readable name.
func (c englishCounts) byName() map[string]int {
	named := map[string]int{
		"lines of Go over the limit": c.LongLines.Go, "lines of Markdown over the limit": c.LongLines.Markdown,
		"lines of templates and scripts over the limit": c.LongLines.Other,
		"test names over 60 characters":                 c.TestNames.Over60, "test names over 50 characters": c.TestNames.Over50,
	}
	for _, words := range avoidedWords {
		named[words+" in Go"], named[words+" in Markdown"] = c.Words[words].Go, c.Words[words].Markdown
		named[words+" in templates and scripts"] = c.Words[words].Other
	}
	for _, result := range avoidedResults {
		named["results named "+result] = c.Results[result]
	}
	return named
}

func countEnglish(t *testing.T) englishCounts {
	t.Helper()
	goText, markdown := trackedText(t, ".go"), trackedText(t, ".md")
	other := slices.Concat(trackedText(t, ".tmpl"), trackedText(t, "Makefile"), trackedText(t, ".ci/run"))
	counts := englishCounts{Words: map[string]textCounts{}, Results: map[string]int{}}
	inGo, inMarkdown, inOther := countPhrases(goText), countPhrases(markdown), countPhrases(other)
	for _, row := range avoidedWords {
		counts.Words[row] = textCounts{inGo[row], inMarkdown[row], inOther[row]}
	}
	counts.LongLines.Go = countLongLines(goText, maxGoColumns, false)
	counts.LongLines.Markdown = countLongLines(markdown, maxMarkdownColumns, true)
	counts.LongLines.Other = countLongLines(other, maxGoColumns, false)
	for _, s := range sources(t) {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if assignment, ok := n.(*ast.AssignStmt); ok && len(assignment.Lhs) == 2 {
				if name, ok := assignment.Lhs[1].(*ast.Ident); ok && slices.Contains(avoidedResults, name.Name) {
					counts.Results[name.Name]++
				}
			}
			if function, ok := n.(*ast.FuncDecl); ok && s.test && strings.HasPrefix(function.Name.Name, "Test") {
				if len(function.Name.Name) > maxTestName {
					counts.TestNames.Over60++
				}
				if len(function.Name.Name) > longTestName {
					counts.TestNames.Over50++
				}
			}
			return true
		})
	}
	for _, file := range trackedFiles(t, ".go") {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".go"), "_test")
		if slices.ContainsFunc(strings.Split(name, "_"), func(word string) bool { return slices.Contains(avoidedFiles, word) }) {
			counts.Files = append(counts.Files, file)
		}
	}
	return counts
}

// trackedFiles returns the files with a suffix, except generated ones.
func trackedFiles(t *testing.T, suffix string) (files []string) {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "*"+suffix).Output()
	require.NoError(t, err)
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		exempt := strings.Contains(file, "testdata/") || strings.HasPrefix(file, "docs/reference/") ||
			file == "local/FIDELITY.md" || file == "internal/repotest/english_test.go"
		if _, err := os.Stat(file); err == nil && !exempt {
			files = append(files, file)
		}
	}
	require.NotEmpty(t, files)
	slices.Sort(files)
	return files
}

func trackedText(t *testing.T, suffix string) (texts []string) {
	t.Helper()
	for _, file := range trackedFiles(t, suffix) {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		texts = append(texts, string(body))
	}
	return texts
}

// countPhrases counts each row of avoidedWords. Words of a phrase have one space between them.
func countPhrases(texts []string) map[string]int {
	row, longest := map[string]string{}, 0
	for _, phrases := range avoidedWords {
		for phrase := range strings.SplitSeq(phrases, "|") {
			row[phrase] = phrases
			longest = max(longest, len(strings.Fields(phrase)))
		}
	}
	counts := map[string]int{}
	for _, text := range texts {
		text = strings.ToLower(text)
		words := wholeWord.FindAllStringIndex(text, -1)
		for i := range words {
			for n := 1; n <= longest && i+n <= len(words); n++ {
				if n > 1 && text[words[i+n-2][1]:words[i+n-1][0]] != " " {
					break
				}
				if phrases, ok := row[text[words[i][0]:words[i+n-1][1]]]; ok {
					counts[phrases]++
				}
			}
		}
	}
	return counts
}

// countLongLines counts lines of more columns than allowed; those of tables may be exempt.
func countLongLines(texts []string, columns int, exceptTables bool) (count int) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if utf8.RuneCountInString(line) > columns && !(exceptTables && strings.HasPrefix(strings.TrimSpace(line), "|")) {
				count++
			}
		}
	}
	return count
}
