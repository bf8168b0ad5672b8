package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/engine/facts"
	"github.com/drover-run/drover/shared/names"
)

// verify runs the command verify, and returns its output, its report and whether it succeeded.
func (w *world) verify(args ...string) (out, report string, ok bool) {
	w.t.Helper()
	program, dir := filepath.Join(w.t.TempDir(), "verify"), w.t.TempDir()
	build := exec.CommandContext(w.t.Context(), "go", "build", "-o", program, "./cmd/verify")
	build.Dir = w.root
	built, err := build.CombinedOutput()
	require.NoError(w.t, err, "%s", built)
	out, ok = w.run(program, append([]string{
		"--drover", filepath.Join(w.root, "build", "drover"), "--deploy", w.deploy, "--app", w.assembly, "--dir", dir,
	}, args...)...)
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	require.NoError(w.t, err, out)
	return out, string(text), ok
}

// The first hour in an account: every step that can be proved in a local account passes under both readings of AWS's open facts, and no
// resource is left. The report has the answers of the readings.
func TestVerify(t *testing.T) {
	other, err := facts.Parse(facts.Every)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		readings facts.Readings
		answer   string
	}{
		"strict readings": {nil, "no"},
		"other readings":  {other, "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWith(t, c.readings)
			out, report, ok := w.verify()
			require.True(t, ok, out)
			require.NotContains(t, report, account.ID)
			for key, value := range w.Environment() {
				if key == "AWS_ACCESS_KEY_ID" || key == "AWS_SECRET_ACCESS_KEY" {
					require.NotContains(t, report, value, key)
				}
			}
			require.Contains(t, report, "26 passed, 0 failed, 1 skipped")
			answered := 0
			for _, f := range facts.All() {
				require.Contains(t, report, f.Question)
				if strings.Contains(report, f.Question+" "+c.answer+": ") {
					answered++
				}
			}
			require.Equal(t, len(facts.All()), answered, report)
			require.Nil(t, w.stack(names.BaseStack))
			require.Nil(t, w.stack(names.CellStack))
		})
	}
}
