package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
)

// The calls of audits are counted, not measured: docs/performance.md has them.
func TestAuditCallsMatchTheirPage(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "performance.md"))
	require.NoError(t, err)
	for size, row := range map[int]*regexp.Regexp{
		100:  regexp.MustCompile(`An audit of 100 clusters: calls to AWS; .*\| ([\d,]+); .*\n.*\| ([\d,]+); `),
		1000: regexp.MustCompile(`An audit of 1,000 clusters; the function's first \| ([\d,]+); \d+ and ([\d,]+); `),
	} {
		f, h, err := newFleet(t.Context(), root, size, 0)
		require.NoError(t, err)
		first, err := f.once(t.Context(), h, events.Sweep{Audit: true})
		require.NoError(t, err)
		next, err := f.once(t.Context(), h, events.Sweep{Audit: true})
		require.NoError(t, err)
		written := row.FindStringSubmatch(string(page))
		require.NotNil(t, written, row)
		for i, c := range []cost{next, first} {
			require.Equal(t, number(c.calls()), strings.ReplaceAll(written[i+1], ",", ""), "of %d clusters: %s", size, c)
		}
	}
}
