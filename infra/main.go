// Command infra is the CDK app of drover's own two stacks, base and cell, in one account and region. It writes the cloud assembly to
// CDK_OUTDIR, which the cdk command sets, or to cdk.out. Account, region and partition are tokens, so one assembly deploys to any account.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	err := run()
	end()
	if err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
		os.Exit(1)
	}
}

func run() error {
	app, err := newApp(options{functions: "build/functions", outdir: outdir()})
	if err != nil {
		return err
	}
	return synth(app)
}

// synth writes the cloud assembly. The CDK reports errors and failed validation as a panic.
func synth(app awscdk.App) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("synthesis: %v", r)
		}
	}()
	app.Synth(nil)
	return nil
}

// end stops the CDK's Node process. The runtime waits for it twice, and the second wait prints an error, which end discards.
func end() {
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stderr = null
	}
	jsii.Close()
}

// outdir is the folder of the cloud assembly. The CDK's default is a temporary folder.
func outdir() string {
	if dir := os.Getenv("CDK_OUTDIR"); dir != "" {
		return dir
	}
	return "cdk.out"
}
