// Command infra is the CDK app: drover's own stack in one account and region. It writes the cloud assembly to cdk.out, or
// to CDK_OUTDIR when the cdk command says so. It is environment-agnostic: account, region and partition are tokens, so one
// assembly deploys anywhere.
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

// synth writes the cloud assembly. What the CDK or its validation finds wrong arrives as a panic.
func synth(app awscdk.App) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("synthesis: %v", r)
		}
	}()
	app.Synth(nil)
	return nil
}

// end stops the CDK's Node process. It is waited for twice, and the one that comes late complains; nobody needs to read that.
func end() {
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stderr = null
	}
	jsii.Close()
}

// outdir is where the cloud assembly goes. Left to itself, the app would write to a temporary folder.
func outdir() string {
	if dir := os.Getenv("CDK_OUTDIR"); dir != "" {
		return dir
	}
	return "cdk.out"
}
