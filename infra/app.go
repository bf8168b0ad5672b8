package main

// The CDK app and its two stacks. The options keep the assembly small and reproducible, and disable analytics.

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// options of one synthesis.
type options struct {
	// functions is the folder of the compiled functions: <functions>/<goarch>/<function>/bootstrap.
	functions string
	// outdir is where the cloud assembly is written.
	outdir string
	// context overrides what the cdk command passes; tests use it.
	context map[string]any
}

// newApp builds the construct tree without synthesizing it.
//
// The context key "architecture" (arm64 by default, or x86_64) sets the architecture of the functions. The local account sets it to its
// host's. Nothing else in the template depends on it.
//
// The context key "lambdaConcurrency" (1000 by default) is the account's limit of concurrent executions. Alarms watch its use.
//
// The context key "cellLimit" is how many clusters rollouts may work on at once: by default a tenth of the clusters, and at least three.
//
// The context key "accessRoles" (none by default) lists the IAM roles that specs may name in controlPlane.access: see access_roles.go.
//
// The context key "cellSettings" (none by default) is an object with what specs may give to pods: see api.CellSettings.
func newApp(o options) (awscdk.App, error) {
	context := map[string]any{
		// Findings of the default rules are errors, not warnings.
		"@aws-cdk/core:validateAgainstDefaultRules": true,
	}
	for key, value := range o.context {
		context[key] = value
	}
	app := awscdk.NewApp(&awscdk.AppProps{
		Outdir:             jsii.String(o.outdir),
		Context:            &context,
		AnalyticsReporting: jsii.Bool(false),
		StackTraces:        jsii.Bool(false),
		TreeMetadata:       jsii.Bool(false),
	})
	awscdk.Validations_Of(app).AddPlugins(validation())

	code, err := findCode(o.functions, app.Node().TryGetContext(jsii.String("architecture")))
	if err != nil {
		return nil, err
	}
	if code.cellLimit, err = findCellLimit(app.Node().TryGetContext(jsii.String("cellLimit"))); err != nil {
		return nil, err
	}
	concurrency, err := findConcurrency(app.Node().TryGetContext(jsii.String("lambdaConcurrency")))
	if err != nil {
		return nil, err
	}
	if code.settings, err = findCellSettings(app.Node().TryGetContext(jsii.String(api.CellSettingsContext))); err != nil {
		return nil, err
	}
	accessRoles, err := findAccessRoles(app.Node().TryGetContext(jsii.String("accessRoles")))
	if err != nil {
		return nil, err
	}

	base := newStack(app, names.BaseStack, "drover: what outlives a removal of drover: buckets and the identities that clusters name")
	newBuckets(base)
	newBoundary(base)
	newClusterRole(base, accessRoles, code.settings)

	cell := newStack(app, names.CellStack, "drover: Kubernetes clusters on AWS from specs uploaded to S3")
	cell.AddStackDependency(base, jsii.String("the functions use the buckets and roles of the base stack by name"))
	roles := newFunctionRoles(base, cell)
	notices := newNotices(cell, roles)
	functions := newFunctions(cell, code, notices, roles)
	machines := newMachines(cell, functions)
	newLeftoversRole(cell, functions)
	newEvents(cell, functions, machines, notices)
	newAlarms(cell, functions, machines, notices, concurrency)
	return app, nil
}

// validation returns the plugin that checks templates with CloudFormation's rules. All apps of the process share it, because its creation
// takes most of the time of a synthesis.
var validation = sync.OnceValue(func() awscdk.IPolicyValidationPlugin { return awscdk.NewCloudFormationValidatePlugin(nil) })

// newStack returns an empty stack. It has no termination protection: the cdk command would enable that before it creates the stack, and a
// failed creation could not be deleted. make deploy enables it after a successful deployment. See docs/adr/0029-two-stacks-of-drover.md.
func newStack(app awscdk.App, name, description string) awscdk.Stack {
	return awscdk.NewStack(app, jsii.String(name), &awscdk.StackProps{
		StackName:          jsii.String(name),
		Description:        jsii.String(description),
		AnalyticsReporting: jsii.Bool(false),
		Synthesizer: awscdk.NewDefaultStackSynthesizer(&awscdk.DefaultStackSynthesizerProps{
			// The rule reads an SSM parameter of the bootstrap stack at deployment; the cdk command checks the same by itself.
			GenerateBootstrapVersionRule: jsii.Bool(false),
		}),
	})
}

// defaultConcurrency is AWS's default of the quota L-B99A9384.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const defaultConcurrency = 1000

// findConcurrency returns the account's limit of concurrent executions. The cdk command passes a number of cdk.json as a number, and one of
// its command line as a string.
func findConcurrency(context any) (float64, error) {
	switch value := context.(type) {
	case nil:
		return defaultConcurrency, nil
	case float64:
		if value >= 1 {
			return value, nil
		}
	case string:
		if n, err := strconv.Atoi(value); err == nil && n >= 1 {
			return float64(n), nil
		}
	}
	return 0, fmt.Errorf("context \"lambdaConcurrency\" is %v: must be the account's limit of concurrent executions, from 1 on", context)
}

// findCellLimit returns how many clusters rollouts may work on at once; 0 is the default.
func findCellLimit(context any) (int, error) {
	switch value := context.(type) {
	case nil:
		return 0, nil
	case float64:
		if value >= 1 && value == float64(int(value)) {
			return int(value), nil
		}
	case string:
		if n, err := strconv.Atoi(value); err == nil && n >= 1 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("context \"cellLimit\" is %v: must be a number of clusters, from 1 on", context)
}

// x86 is the name of the architecture that is not the default.
const x86 = "x86_64"

// code locates the compiled functions.
type code struct {
	dir          string
	architecture string
	// relay is the code of relays: DROVER_RELAY.
	relay string
	// cellLimit is how many clusters rollouts may work on at once; 0 is the default of the function fleet.
	cellLimit int
	// settings are the settings of the cell: DROVER_CELL_SETTINGS of the functions that judge or plan specs.
	settings api.CellSettings
}

// findCode checks that each function has been compiled for the architecture.
func findCode(dir string, architecture any) (code, error) {
	goarch, name := "arm64", "arm64"
	switch architecture {
	case nil, "arm64":
	case x86:
		goarch, name = "amd64", x86
	default:
		return code{}, fmt.Errorf(`context "architecture" is %v: must be arm64 or x86_64`, architecture)
	}
	c := code{dir: filepath.Join(dir, goarch), architecture: name}
	for _, f := range functionTable {
		bootstrap := filepath.Join(c.dir, f.name, "bootstrap")
		if _, err := os.Stat(bootstrap); err != nil {
			return code{}, fmt.Errorf("function %s is not compiled (run make synth, which does it): %w", f.name, err)
		}
	}
	var err error
	c.relay, err = packRelay(c)
	return c, err
}
