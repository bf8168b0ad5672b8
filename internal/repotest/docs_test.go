package repotest

// The tests that docs/reliability.md and docs/upgrades.md name must exist.

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`([^`]*)")
	testName = regexp.MustCompile(`\bTest\w+`)
)

func TestReliabilityNamesTestsThatAreThere(t *testing.T) {
	t.Chdir(root)
	table := rows(section(t, "reliability.md", "Faults and promises"))
	require.Greater(t, len(table), 10)
	for _, row := range table {
		require.Len(t, row, 3, row)
		requireTests(t, row[0], row[2])
	}
}

// Each kind of fault that the local account makes has its row.
func TestReliabilityHasEveryKindOfFault(t *testing.T) {
	t.Chdir(root)
	var documented, kinds []string
	for _, row := range rows(section(t, "reliability.md", "Faults and promises")) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
			documented = append(documented, name[1])
		}
	}
	for _, kind := range faults.Kinds() {
		kinds = append(kinds, string(kind))
	}
	require.ElementsMatch(t, kinds, documented)
}

func TestUpgradesNameTestsThatAreThere(t *testing.T) {
	t.Chdir(root)
	days := rows(section(t, "upgrades.md", "Failures and edge cases"))
	require.Greater(t, len(days), 15)
	for _, row := range days {
		require.Len(t, row, 3, row)
		requireTests(t, row[0], row[2])
	}
	others := rows(section(t, "upgrades.md", "Comparison with other tools"))
	require.Greater(t, len(others), 25)
	for _, row := range others {
		require.Len(t, row, 6, row)
		_, shown, found := strings.Cut(row[5], " [")
		require.True(t, found, "no test is named: %s", row)
		requireTests(t, row[0], shown)
	}
}

// Every path of the repository that a page names in backquotes exists. A name of a Go file or a template without its folder exists
// somewhere.
func TestPagesNamePathsThatExist(t *testing.T) {
	t.Chdir(root)
	tracked, err := exec.Command("git", "ls-files").Output()
	require.NoError(t, err)
	names := map[string]bool{}
	for file := range strings.Lines(string(tracked)) {
		names[filepath.Base(strings.TrimSpace(file))] = true
	}
	inRepository := regexp.MustCompile(`^(\.\./)*(` +
		`(?:\.ci|\.github|cmd|docs|events|examples|functions|infra|internal|local|shared|templates)/[\w./-]*\w)$`)
	bareName := regexp.MustCompile(`^[\w-]+\.(go|tmpl)$`)
	absent := []string{"templates/v2"} // the future name of ADR 15
	named := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "local/README.md"} {
		pages, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, page := range pages {
			body, err := os.ReadFile(page)
			require.NoError(t, err)
			for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(body), -1) {
				if path := inRepository.FindStringSubmatch(span[1]); path != nil && !slices.Contains(absent, path[2]) {
					_, err := os.Stat(filepath.FromSlash(path[2]))
					assert.NoError(t, err, "%s names %s, which does not exist", page, span[1])
					named++
				} else if bareName.MatchString(span[1]) {
					assert.True(t, names[span[1]], "%s names %s, which does not exist", page, span[1])
					named++
				}
			}
		}
	}
	require.Greater(t, named, 200)
}

// requireTests checks that a text names at least one test, and that each named test exists in the named package.
func requireTests(t *testing.T, row, text string) {
	t.Helper()
	named := 0
	for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
		tests := packageTests(t, span[1])
		names := testName.FindAllString(span[2], -1)
		require.NotEmpty(t, names, "%s: no test of %s is named", row, span[1])
		for _, name := range names {
			require.Contains(t, tests, "func "+name+"(", "%s: %s", span[1], row)
			named++
		}
	}
	require.Positive(t, named, "no test is named: %s", row)
}

// Every test that a page names exists.
func TestPagesNameTestsThatAreThere(t *testing.T) {
	t.Chdir(root)
	there := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "build" || entry.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		body, err := os.ReadFile(path)
		for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(body, -1) {
			there[string(name[1])] = true
		}
		return err
	}))
	named := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		pages, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, page := range pages {
			body, err := os.ReadFile(page)
			require.NoError(t, err)
			for _, name := range testName.FindAllString(string(body), -1) {
				require.True(t, there[name], "%s names %s, which is not there", page, name)
				named++
			}
		}
	}
	require.Greater(t, named, 200)
}

// docs/security.md describes a compromise of every function.
func TestSecurityHasARowForEachFunction(t *testing.T) {
	t.Chdir(root)
	documented := map[string]bool{}
	for _, row := range rows(section(t, "security.md", "What a compromise would mean")) {
		for name := range strings.SplitSeq(row[0], ", ") {
			documented[name] = true
		}
	}
	functions, err := filepath.Glob("functions/*/main.go")
	require.NoError(t, err)
	require.Greater(t, len(functions), 10)
	for _, main := range functions {
		name := filepath.Base(filepath.Dir(main))
		require.True(t, documented[name], "docs/security.md does not say what a compromise of %s would mean", name)
	}
}

// docs/architecture.md states the right number of functions and machines.
func TestArchitectureCounts(t *testing.T) {
	t.Chdir(root)
	functions, err := filepath.Glob("functions/*/main.go")
	require.NoError(t, err)
	machines, err := filepath.Glob("infra/testdata/machines/*.json")
	require.NoError(t, err)
	page, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("%d functions, %d state machines", len(functions), len(machines)))
}

// docs/before-you-begin.md states how many of the account's roles drover takes.
func TestNumberOfRoles(t *testing.T) {
	t.Chdir(root)
	golden, err := os.ReadFile("infra/testdata/identities.json")
	require.NoError(t, err)
	var identities struct{ Roles map[string]any }
	require.NoError(t, json.Unmarshal(golden, &identities))
	page, err := os.ReadFile("docs/before-you-begin.md")
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("drover itself takes %d roles in each region.", len(identities.Roles)))
}

// The page describes each event, with a sample of it.
func TestNotificationsHaveARowForEachEvent(t *testing.T) {
	t.Chdir(root)
	page, err := os.ReadFile(filepath.Join("docs", "notifications.md"))
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join("events", "notices.go"))
	require.NoError(t, err)
	events := regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "((?:Cluster|Release|Rollout) [A-Z ][\w ]+)"$`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, events, 7, "an event that this test does not know: it has a row, too")
	for _, event := range events {
		row := regexp.MustCompile("(?m)^\\| `" + event[1] + "` \\| .+ \\| \\[(.+)\\]\\(\\.\\./events/samples/(.+)\\) \\|$").
			FindStringSubmatch(string(page))
		require.NotNil(t, row, "docs/notifications.md has no row of %s", event[1])
		require.Equal(t, row[1], row[2])
		require.FileExists(t, filepath.Join("events", "samples", row[2]))
	}
}

// packageTests is the text of a package's tests. functions/x stands for the packages of the function.
func packageTests(t *testing.T, path string) string {
	t.Helper()
	if strings.HasPrefix(path, "functions/") {
		path += "/*"
	}
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(path), "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, path)
	var all strings.Builder
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(body)
	}
	return all.String()
}

// adrHead matches how an ADR begins.
var adrHead = regexp.MustCompile(`^# (\d+)\. (.+)\n\n- Status: (?:Proposed|Accepted(?:, amended by .+)?|Superseded by .+)\n- Date: \d{4}-`)

// docs/adr/README.md lists every ADR under its title. Every ADR begins with its number, title, status and date.
func TestADRsAreListed(t *testing.T) {
	t.Chdir(root)
	index, err := os.ReadFile("docs/adr/README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("docs/adr/[0-9]*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for i, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		head := adrHead.FindSubmatch(body)
		require.NotNil(t, head, "%s: begin with `# N. Title`, `- Status: …` and `- Date: …`", page)
		require.Equal(t, strconv.Itoa(i+1), string(head[1]), page)
		requireNameFromTitle(t, filepath.Base(page), string(head[2]))
		row := fmt.Sprintf("| %s | [%s](%s) | ", head[1], head[2], filepath.Base(page))
		require.Contains(t, string(index), row, "docs/adr/README.md has no row for this ADR")
	}
	require.Equal(t, len(pages), strings.Count(string(index), "](0"), "docs/adr/README.md lists an ADR that does not exist")
}

// requireNameFromTitle checks that the name of an ADR's file has only words of its title, so that a search for the title's words finds the
// file. Short words such as "of" do not count.
func requireNameFromTitle(t *testing.T, file, title string) {
	t.Helper()
	inTitle := strings.ToLower(strings.NewReplacer("'", "", "-", " ").Replace(title))
	for _, word := range strings.Split(strings.TrimSuffix(file, ".md"), "-")[1:] {
		if len(word) > 3 {
			require.Contains(t, inTitle, word, "%s: the title is %q", file, title)
		}
	}
}
