package steps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// stopDelay is how long a command may take to end after an interrupt.
const stopDelay = 30 * time.Second

// lastLines is how much of the output of a failed command the report contains.
const lastLines = 25

// run runs a command, shows its output, and returns it. The command is a process group of its own: an interrupt of the run reaches only
// the run, which then ends the command and cleans up.
func (t *Target) run(ctx context.Context, log *runner.Log, program string, args ...string) (string, error) {
	log.Show("$ %s %s", filepath.Base(program), strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "YES=1", "CI=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopDelay
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	var lines []string
	done := make(chan error, 1)
	go func() {
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			lines = append(lines, scanner.Text())
			log.Show("  %s", scanner.Text())
		}
		done <- errors.Join(scanner.Err(), out.CloseWithError(scanner.Err()))
	}()
	err := cmd.Run()
	err = errors.Join(err, in.Close(), <-done)
	text := strings.Join(lines, "\n")
	if err != nil {
		return text, fmt.Errorf("%s %s failed: %w\n%s", filepath.Base(program), strings.Join(args, " "), err,
			strings.Join(lines[max(0, len(lines)-lastLines):], "\n"))
	}
	return text, nil
}

// drover runs the command drover.
func (t *Target) drover(ctx context.Context, log *runner.Log, args ...string) (string, error) {
	return t.run(ctx, log, t.Drover, args...)
}

// runDeploy runs the command deploy for drover's app.
func (t *Target) runDeploy(ctx context.Context, log *runner.Log, args ...string) error {
	if t.App != "" && args[0] != "bootstrap" {
		args = append(args, "--app", t.App)
	}
	_, err := t.run(ctx, log, t.Deploy, args...)
	return err
}

// write writes a spec of the run to a file, and returns its name.
func (t *Target) write(name, content string) (string, error) {
	file := filepath.Join(t.Dir, name+".yaml")
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, []byte(content), 0o644)
}

// Version returns what drover version prints, in one line.
func (t *Target) Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, t.Drover, "version").Output()
	if err != nil {
		return "", fmt.Errorf("running %s: %w: build it with make build/drover", t.Drover, err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", ", "), nil
}
