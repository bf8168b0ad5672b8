package worlds

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
)

// showHistory tests events and logs of the demo cluster after its creation, a drain, a refused roll and a roll.
func showHistory(t *testing.T) {
	out := ok(t, "events", "demo")
	last := -1
	for _, line := range []string{
		`upload      clusters/demo\.yaml: uploaded version \S+, \d+ bytes`,
		`converge    demo-[0-9a-f]{16}: started\n`,
		`converge    demo-[0-9a-f]{16}: state Plan\n`,
		`converge    demo-[0-9a-f]{16}: state Change network stack, stack network\n`,
		`stack       network: CREATE_IN_PROGRESS`,
		`stack       network: CREATE_COMPLETE`,
		`join-node   i-[0-9a-f]+: started: the instance is at its launch hook\n`,
		`join-node   i-[0-9a-f]+: succeeded: Ready: node ip-\S+ is Ready`,
		`converge    \S+: started: roll workers\n`,
		`drain-node  i-[0-9a-f]+: started: the instance is at its terminate hook\n`,
		`drain-node  i-[0-9a-f]+: succeeded: node ip-\S+: Done, \d+ pods evicted by \d+ requests; `,
	} {
		at := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  ` + line).FindStringIndex(out[max(last, 0):])
		require.NotNil(t, at, "%s\nis not in, or not in its place in\n%s", line, out)
		last = max(last, 0) + at[0]
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "  ") // it continues the message of the line before
	})
	for i := 1; i < len(lines); i++ {
		require.LessOrEqual(t, lines[i-1][:20], lines[i][:20], "the oldest first")
	}
	require.NotContains(t, out, "function ", "nothing failed")
	var entries []cli.Entry
	require.NoError(t, json.Unmarshal([]byte(ok(t, "events", "demo", "-o", "json")), &entries))
	require.Greater(t, len(entries), 30)
	require.JSONEq(t, "[]", ok(t, "events", "demo", "--since", "0s", "-o", "json"))
	for _, command := range []string{"events", "logs"} {
		require.Contains(t, fails(t, command, "absent"), "cluster absent does not exist in this account")
		require.Contains(t, fails(t, command, "demo", "--since", "yesterday"), "--since yesterday is neither a duration nor a time")
	}
	require.Contains(t, fails(t, "events", "demo", "--follow", "-o", "json"), "--follow prints lines")

	out = ok(t, "logs", "demo")
	require.Regexp(t, `(?m)^\S+Z  admit       INFO `, out)
	require.NotContains(t, out, "platform.", "Lambda's own lines are left out where nothing failed")
	require.NotContains(t, out, `cluster=`)
	require.Contains(t, fails(t, "logs", "demo", "--function", "planner"), "drover has no such function: choose one of admit, ")
	for line := range strings.Lines(ok(t, "logs", "demo", "--function", "drover-drain")) {
		require.Regexp(t, `^\S+Z  drain       `, line)
	}
}
