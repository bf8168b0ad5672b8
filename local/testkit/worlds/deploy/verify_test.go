package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/account"
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
		"--drover", filepath.Join(w.root, "build", "drover"), "--deploy", w.deploy, "--app", w.assembly, "--dir", dir, "--kubernetes", "1.36",
	}, args...)...)
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	require.NoError(w.t, err, out)
	return out, string(text), ok
}

// The first hour in an account: every step that can be proved in a local account passes, and no resource is left.
func TestVerify(t *testing.T) {
	w := start(t)
	out, report, ok := w.verify()
	require.True(t, ok, out)
	require.NotContains(t, report, account.ID)
	for key, value := range w.Environment() {
		if key == "AWS_ACCESS_KEY_ID" || key == "AWS_SECRET_ACCESS_KEY" {
			require.NotContains(t, report, value, key)
		}
	}
	require.Contains(t, report, "19 passed, 0 failed, 7 skipped")
	require.Nil(t, w.stack(names.BaseStack))
	require.Nil(t, w.stack(names.CellStack))
}
