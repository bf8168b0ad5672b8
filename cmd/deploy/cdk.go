package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// cdkCommand is where make node_modules installs it. npx would start Node twice.
const cdkCommand = "infra/node_modules/.bin/cdk"

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
	return execute(exec.CommandContext(ctx, cdkCommand, args...))
}

// runWithoutApp runs the command in a folder without cdk.json, so that it synthesizes nothing.
func (c cdk) runWithoutApp(ctx context.Context, args ...string) error {
	program, err := filepath.Abs(cdkCommand)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "infra"
	return execute(cmd)
}

// execute runs a command on this process's terminal, and fails if the command fails.
func execute(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The CDK command ends by itself after an interrupt. A kill would leave the app running that it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	err := cmd.Run()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the CDK command is not installed: run make node_modules: %w", err)
	}
	if err != nil {
		return fmt.Errorf("the CDK command failed (its output is above): %w", err)
	}
	return nil
}
