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
	defer jsii.Close()
	app, err := newApp(options{
		functions: "build/functions",
		outdir:    outdir(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
		jsii.Close()
		os.Exit(1)
	}
	app.Synth(&awscdk.StageSynthesisOptions{})
}

// outdir is where the cloud assembly goes. Left to itself, the app would write to a temporary folder.
func outdir() string {
	if dir := os.Getenv("CDK_OUTDIR"); dir != "" {
		return dir
	}
	return "cdk.out"
}
