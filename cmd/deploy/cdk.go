package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// cdk is the CDK command that infra/package-lock.json pins.
type cdk struct {
	// app is the folder of a cloud assembly. If it is empty, cdk.json says how to synthesize one.
	app string
	// approval is the value of --require-approval.
	approval string
}

// run runs the command for drover's app.
func (c cdk) run(ctx context.Context, args ...string) error {
	if c.app != "" {
		args = append(args, "--app", c.app)
	}
	return execute(exec.CommandContext(ctx, "npx", append([]string{"--prefix", "infra", "cdk"}, args...)...))
}

// runWithoutApp runs the command in a folder without cdk.json, so that it synthesizes nothing.
func (c cdk) runWithoutApp(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "npx", append([]string{"cdk"}, args...)...)
	cmd.Dir = "infra"
	return execute(cmd)
}

// execute runs a command on this process's terminal, and fails if the command fails.
func execute(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// npx passes an interrupt on to the CDK command, which ends by itself. A kill would leave that one running.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the CDK command failed (its output is above): %w", err)
	}
	return nil
}
