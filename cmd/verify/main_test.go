package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/account"
)

// repository is its folder. An account changes the working directory.
var repository, repositoryErr = filepath.Abs("../..")

// command is the command verify in a local account. Scripts take the places of drover and deploy; each call of deploy is a line of calls.
type command struct {
	t            *testing.T
	program, dir string
	environment  []string
	out          bytes.Buffer
}

func newCommand(t *testing.T, deploy string) *command {
	t.Helper()
	require.NoError(t, repositoryErr)
	a, err := account.Start(account.Options{Dir: filepath.Join(t.TempDir(), "account"), Speed: 1000})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	c := &command{t: t, dir: t.TempDir(), environment: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}}
	for key, value := range a.Environment() {
		c.environment = append(c.environment, key+"="+value)
	}
	c.script("deploy", "echo $1 >>"+c.path("calls")+"\n"+deploy)
	c.script("drover", `if [ $1 = doctor ]; then echo '{"findings": [{"check": "VPCQuota", "level": "ok"}]}'; else echo drover of a test; fi`)
	c.program = c.path("verify")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", c.program, "./cmd/verify")
	build.Dir = repository
	built, err := build.CombinedOutput()
	require.NoError(t, err, "%s", built)
	return c
}

func (c *command) path(name string) string { return filepath.Join(c.dir, name) }

func (c *command) script(name, body string) {
	require.NoError(c.t, os.WriteFile(c.path(name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
}

func (c *command) start(args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.program, append([]string{
		"--drover", c.path("drover"), "--deploy", c.path("deploy"), "--dir", c.path("out"),
	}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.environment, &c.out, &c.out
	require.NoError(c.t, cmd.Start())
	return cmd
}

// calls are the calls of deploy so far.
func (c *command) calls() []string {
	text, err := os.ReadFile(c.path("calls"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(c.t, err)
	return strings.Fields(string(text))
}

// An interrupt ends the step that runs, and cleans up. The report has what was proved until then.
func TestInterrupt(t *testing.T) {
	// A shell that starts a program just before a signal runs the trap when that program ends. So each sleep is short.
	c := newCommand(t, `if [ $1 = deploy ]; then
		trap 'echo ended >>`+"$0.ended"+`; exit 1' INT
		echo ready >`+"$0.ready"+`
		for i in $(seq 600); do sleep 0.1; done
	fi`)
	cmd := c.start()
	ready := func() bool { _, err := os.Stat(c.path("deploy.ready")); return err == nil }
	require.Eventually(t, ready, time.Minute, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, []string{"bootstrap", "deploy", "destroy-all"}, c.calls(), c.out.String())
	require.FileExists(t, c.path("deploy.ended"), "the command that ran was interrupted")
	report, err := os.ReadFile(c.path("out/report.md"))
	require.NoError(t, err)
	require.Contains(t, string(report), "| bootstrap | PASS |")
	require.Contains(t, string(report), "| deploy | FAIL |")
	require.Contains(t, string(report), "| cluster | SKIP |")
	require.Contains(t, string(report), "| destroy-all | PASS |")
	require.NotContains(t, string(report), account.ID)

	// The next cleanup finds nothing.
	require.NoError(t, c.start("--clean").Wait())
	require.Contains(t, c.out.String(), "no run left anything")
}

// What a crash left is removed later, and until then no other run begins.
func TestClean(t *testing.T) {
	c := newCommand(t, `if [ $1 = deploy ]; then sleep 60; fi`)
	cmd := c.start()
	require.Eventually(t, func() bool { return len(c.calls()) == 2 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	require.Error(t, c.start().Wait())
	require.Contains(t, c.out.String(), "run make verify-clean")
	require.Equal(t, []string{"bootstrap", "deploy"}, c.calls(), "the second run did nothing")

	require.NoError(t, c.start("--clean").Wait(), c.out.String())
	require.Equal(t, []string{"bootstrap", "deploy", "destroy-all"}, c.calls())
	c.out.Reset()
	require.NoError(t, c.start("--clean").Wait())
	require.Contains(t, c.out.String(), "no run left anything")
}
