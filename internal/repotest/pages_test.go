package repotest

// How tests read the pages below docs: their sections, and the rows of their tables.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// section of a page, by its heading; the one without is what stands before the first.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("docs", page))
	require.NoError(t, err)
	for i, text := range strings.Split(string(body), "\n## ") {
		is, rest, _ := strings.Cut(text, "\n")
		switch {
		case i == 0 && heading == "":
			return text
		case i > 0 && is == heading:
			return rest
		}
	}
	require.Failf(t, "no such section", "%s: %q", page, heading)
	return ""
}

// rows are the cells of each row of a text's tables, less their heads.
func rows(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "|---") {
			all = all[:len(all)-1]
		} else if cells, row := strings.CutPrefix(line, "| "); row {
			all = append(all, strings.Split(strings.TrimSuffix(cells, " |"), " | "))
		}
	}
	return all
}
