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

// run runs the command on this process's terminal, and fails if the command fails.
func (c cdk) run(ctx context.Context, args ...string) error {
	args = append([]string{"--prefix", "infra", "cdk"}, args...)
	if c.app != "" {
		args = append(args, "--app", c.app)
	}
	cmd := exec.CommandContext(ctx, "npx", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// npx passes an interrupt on to the CDK command, which ends by itself. A kill would leave that one running.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the CDK command failed (its output is above): %w", err)
	}
	return nil
}
