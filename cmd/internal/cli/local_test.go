package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
)

// standIn is a replacement of drover-local that prints its arguments.
const standIn = `#!/bin/sh
case "$1" in
__complete) shift; echo "$# words, the last is '$2'"; echo "other	with a description"; echo ":6" ;;
wait) trap 'echo terminated; exit 9' TERM; echo waiting; while :; do sleep 0.05; done ;;
*) echo "$DROVER_TEST_STAND_IN has: $*"; echo "an error" >&2; exit 7 ;;
esac
`

func TestLocal(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, localProgram), []byte(standIn), 0o700))
	onPath := map[string]string{"PATH": folder + ":/usr/bin:/bin", "DROVER_TEST_STAND_IN": "PATH"}
	t.Run("passes flags and help, and returns the exit code", func(t *testing.T) {
		for _, arguments := range [][]string{{"--port", "1", "--once"}, {"--help"}, {"env", "-h"}, {"--", "x"}, {}} {
			r := droverIn(t, onPath, append([]string{"local"}, arguments...)...)
			require.Equal(t, clitest.Result{Code: 7, Stdout: "PATH has: " + strings.Join(arguments, " ") + "\n", Stderr: "an error\n"}, r)
		}
		require.Equal(t, "PATH has: --help\n", droverIn(t, onPath, "help", "local").Stdout)
	})
	t.Run("is the same process, so signals reach it", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "local", "wait")
		cmd.Env = []string{clitest.AsCommand + "=1", "PATH=" + onPath["PATH"]}
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "waiting\n", line)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		require.Equal(t, "terminated\n", string(rest))
		require.Error(t, cmd.Wait())
		require.Equal(t, 9, cmd.ProcessState.ExitCode())
	})
	t.Run("completes like drover-local", func(t *testing.T) {
		r := droverIn(t, onPath, "__complete", "local", "--port", "1", "--de")
		require.Equal(t, "3 words, the last is '1'\nother\twith a description\n:6\n", strings.Replace(r.Stdout, "--help\n", "", 1))
	})
	t.Run("prefers the program in its own folder", func(t *testing.T) {
		folder := t.TempDir()
		own, err := os.ReadFile(os.Args[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "drover"), own, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, localProgram), []byte("#!/bin/sh\necho own folder\n"), 0o700))
		link := filepath.Join(t.TempDir(), "drover")
		require.NoError(t, os.Symlink(filepath.Join(folder, "drover"), link))
		for _, program := range []string{filepath.Join(folder, "drover"), link} {
			cmd := exec.CommandContext(t.Context(), program, "local")
			cmd.Env = []string{clitest.AsCommand + "=1", "PATH=" + onPath["PATH"]}
			out, err := cmd.Output()
			require.NoError(t, err)
			require.Equal(t, "own folder\n", string(out))
		}
	})
	t.Run("reports how to build a missing program", func(t *testing.T) {
		for _, arguments := range [][]string{{"local"}, {"local", "--once"}} {
			r := droverIn(t, map[string]string{"PATH": "/nowhere"}, arguments...)
			require.Equal(t, 1, r.Code)
			require.Empty(t, r.Stdout)
			require.Contains(t, r.Stderr, "drover: drover-local is missing: `drover local` runs it from ")
			require.Contains(t, r.Stderr, "go build -o "+filepath.Join(filepath.Dir(os.Args[0]), localProgram)+" ./cmd/drover-local")
		}
		require.Contains(t, droverIn(t, map[string]string{"PATH": "/nowhere"}, "help", "local").Stderr, "drover-local is missing")
		require.Equal(t, ":4\n", droverIn(t, map[string]string{"PATH": "/nowhere"}, "__complete", "local", "").Stdout)
	})
}

func TestParseCompletion(t *testing.T) {
	for _, answer := range []string{"", "a\nb\n", "a\n:x\n"} {
		_, _, err := parseCompletion([]byte(answer))
		require.ErrorContains(t, err, "did not answer with a list of candidates")
	}
}
