package view

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestAges(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m", 3*time.Minute +
			59*time.Second: "3m",
		time.Hour: "1h", 47*time.Hour + 59*time.Minute: "47h", 2 * day: "2d", 700 * day: "700d", 800 * day: "2y",
	} {
		require.Equal(t, want, Duration(d))
		require.Equal(t, want, Age(noon, noon.Add(-d)))
	}
	require.Equal(t, "-", Age(noon, time.Time{}))
	require.Equal(t, "in 5m", Relative(noon, noon.Add(5*time.Minute)))
	require.Equal(t, "2h ago", Relative(noon, noon.Add(-2*time.Hour)))
	require.Equal(t, "now", Relative(noon, noon.Add(400*time.Millisecond)))
}

func TestTones(t *testing.T) {
	for state, want := range map[string]Tone{
		"Ready": Good, "UPDATE_COMPLETE": Good, "CREATE_IN_PROGRESS": Moving, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": Moving,
		"ROLLBACK_COMPLETE": Bad, "UPDATE_ROLLBACK_IN_PROGRESS": Bad, "DELETE_FAILED": Bad, "DELETE_COMPLETE": Quiet, "Blocked": Bad,
		"other": Plain,
	} {
		require.Equal(t, want, ToneOf(state), state)
	}
	require.Equal(t, Good, ToneOfCondition("True", "UpToDate"))
	require.Equal(t, Moving, ToneOfCondition("False", "Converging"))
	require.Equal(t, Bad, ToneOfCondition("False", "StackFailed"))
	require.Equal(t, "\x1b[32mReady\x1b[0m", Paint("Ready", true))
	require.Equal(t, "Ready", Paint("Ready", false))
}

func TestWrap(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"breaks at spaces":                     {"one two three", 8, "one two|three"},
		"keeps what fits":                      {"one two", 7, "one two"},
		"keeps lines and their indentation":    {"a\n  b c d e", 6, "a|  b c|  d e"},
		"breaks a word that is too long":       {"i arn:aws:eks", 5, "i|arn:a|ws:ek|s"},
		"without a width keeps everything":     {strings.Repeat("x ", 200) + "x", 0, strings.Repeat("x ", 200) + "x"},
		"replaces control characters":          {"a\x1b[2Jb\tc", 0, "a [2Jb c"},
		"counts characters instead of bytes":   {"→→→ →→→", 7, "→→→ →→→"},
		"an indentation wider than the screen": {"      a b", 4, "      a b"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, strings.Join(Wrap(c.text, c.width), "|")) })
	}
	require.Equal(t, "one t…", Cut("one two", 6))
	require.Equal(t, "one two", Cut("one two", 0))
	require.Equal(t, "one … (1 more line)", FirstLine("one\ntwo"))
	require.Equal(t, "1 node, 2 nodes", Count(1, "node")+", "+Count(2, "node"))
}

func TestTable(t *testing.T) {
	table := &Table{Columns: []Column{{Title: "NAME"}, {Title: "PHASE"}, {Title: "NOTE", Min: 5}, {Title: "MESSAGE", Min: 12, Wrap: true}}}
	table.Add(Text("demo"), State("Ready"), Text("a long note"), Text("the cluster is what its spec says"))
	table.Add(Text("other"), State("Failed"), Text(""), Text("one\ntwo"))
	table.Add(Text("third"))
	write := func(width int, color bool) string {
		var out strings.Builder
		table.Write(&out, width, color)
		return out.String()
	}
	t.Run("is one line a row without a width", func(t *testing.T) {
		require.Equal(t, `NAME   PHASE   NOTE         MESSAGE
demo   Ready   a long note  the cluster is what its spec says
other  Failed               one … (1 more line)
third
`, write(0, false))
	})
	t.Run("cuts and wraps to the width", func(t *testing.T) {
		require.Equal(t, `NAME   PHASE   NOTE         MESSAGE
demo   Ready   a long note  the cluster
                            is what its
                            spec says
other  Failed               one
                            two
third
`, write(41, false))
		require.Equal(t, `NAME   PHASE   NOTE     MESSAGE
demo   Ready   a long…  the cluster
                        is what its
                        spec says
other  Failed           one
                        two
third
`, write(36, false))
	})
	t.Run("never exceeds the width", func(t *testing.T) {
		for width := 24; width < 80; width++ {
			for _, line := range strings.Split(write(width, false), "\n") {
				require.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
			}
		}
	})
	t.Run("colors do not move columns", func(t *testing.T) {
		require.Contains(t, write(0, true), "demo   \x1b[32mReady\x1b[0m   a long note")
	})
}

func TestFrame(t *testing.T) {
	var f Frame
	require.Equal(t, "\r\x1b[Ja\nb\n", f.Next("a\nb\n", 10))
	require.Equal(t, "\x1b[2A\r\x1b[Jc\n", f.Next("c", 10), "the next picture replaces both lines")
	require.Equal(t, "\x1b[1A\r\x1b[J1\n2\n… (3 more lines: make the terminal taller)\n", f.Next("1\n2\n3\n4\n5", 4))
	require.Equal(t, "\x1b[3A\r\x1b[Jx\n", f.Next("x", 4))
}

func TestWithoutRequestIDs(t *testing.T) {
	for message, want := range map[string]string{
		`Resource handler returned message: "no (Service: Eks, Status Code: 400, Request ID: 5d1f)" (RequestToken: 95f6a4c6-1, ` +
			`HandlerErrorCode: InvalidRequest)`: `Resource handler returned message: "no (Service: Eks, ` +
			`Status Code: 400)" (HandlerErrorCode: InvalidRequest)`,
		"api error Throttled: no (RequestToken: 1)":                "api error Throttled: no",
		"S3, StatusCode: 403, RequestID: A1, HostID: b/c=, denied": "S3, StatusCode: 403, denied",
		"Request ID: x, Extended Request ID: null":                 "",
		"nothing to take out: a: b":                                "nothing to take out: a: b",
	} {
		require.Equal(t, want, WithoutRequestIDs(message))
	}
}
