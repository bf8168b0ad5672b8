package drover

// What docs/reliability.md says is shown by tests is: each test that it names is there.

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`([^`]*)")
	testName = regexp.MustCompile(`\bTest\w+`)
)

func TestReliabilityNamesTestsThatAreThere(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("docs", "reliability.md"))
	require.NoError(t, err)
	table, _, found := strings.Cut(string(body), "\n## ")
	require.True(t, found)
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || cells[0] == "| fault" {
			continue
		}
		rows++
		named := 0
		for _, span := range codeSpan.FindAllStringSubmatch(cells[2], -1) {
			tests := packageTests(t, span[1])
			for _, name := range testName.FindAllString(span[2], -1) {
				require.Contains(t, tests, "func "+name+"(", "%s: %s", span[1], cells[0])
				named++
			}
		}
		require.Positive(t, named, "no test is named: %s", cells[0])
	}
	require.Greater(t, rows, 10)
}

// packageTests is the text of a package's tests. functions/x stands for its handler.
func packageTests(t *testing.T, path string) string {
	t.Helper()
	if strings.HasPrefix(path, "functions/") {
		path += "/handler"
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
