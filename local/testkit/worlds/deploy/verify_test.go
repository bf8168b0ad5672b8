package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/shared/names"
)

// firstHour runs the command verify, and returns its output, its report and whether it succeeded.
func (w *world) firstHour(args ...string) (out, report string, ok bool) {
	w.t.Helper()
	dir := w.t.TempDir()
	out, ok = w.run(w.verify, append([]string{
		"--drover", filepath.Join(w.root, "build", "drover"), "--deploy", w.deploy, "--app", w.assembly, "--dir", dir,
	}, args...)...)
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	require.NoError(w.t, err, out)
	return out, string(text), ok
}

// The first hour in an account: every step that can be proved in a local account passes under both readings of AWS's open questions, and no
// resource is left. The report has the answers of the readings.
func TestVerify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ otherReadings, answer string }{
		"strict readings": {"", "no"},
		"other readings":  {questions.Every, "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, c.otherReadings)
			out, report, ok := w.firstHour()
			t.Log(report)
			require.True(t, ok, out)
			require.NotContains(t, report, account.ID)
			for key, value := range w.environment {
				if key == "AWS_ACCESS_KEY_ID" || key == "AWS_SECRET_ACCESS_KEY" {
					require.NotContains(t, report, value, key)
				}
			}
			require.Contains(t, report, "27 passed, 0 failed, 1 skipped")
			answered := 0
			for _, q := range questions.All() {
				require.Contains(t, report, q.Text)
				if strings.Contains(report, q.Text+" "+c.answer+": ") {
					answered++
				}
			}
			require.Equal(t, len(questions.All()), answered, report)
			require.Nil(t, w.stack(names.BaseStack))
			require.Nil(t, w.stack(names.CellStack))
		})
	}
}
