package permissions_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// Files and commands of a spec may contain secrets, although they should not. No log line, status, notice or plan contains them, and no
// response of CloudFormation or Step Functions, whatever error the spec has.
func TestSecretsAreNotDisclosed(t *testing.T) {
	const secret = "hunter2-correct-horse-battery-staple"
	pool := func(more string) string {
		return strings.Replace(harness.Spec("demo", ""), "    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}\n",
			"    - name: a\n      instanceTypes: [m7i.large]\n      minSize: 1\n      maxSize: 3\n"+more, 1)
	}
	specs := map[string]string{
		"good":                    pool("      files: [{path: /etc/x, content: " + secret + "}]\n      commands: [echo " + secret + "]\n"),
		"changed":                 pool("      files: [{path: /etc/x, content: x" + secret + "}]\n      commands: [echo x" + secret + "]\n"),
		"commands are no list":    pool("      commands: echo " + secret + "\n"),
		"a command is a mapping":  pool("      commands: [{echo: " + secret + "}]\n"),
		"content is a mapping":    pool("      files: [{path: /etc/x, content: {a: " + secret + "}}]\n"),
		"an unknown field":        pool("      files: [{path: /etc/x, contents: " + secret + "}]\n"),
		"an unknown mode":         pool("      files: [{path: /etc/x, mode: \"99\", content: " + secret + "}]\n"),
		"a relative path":         pool("      files: [{path: x, content: " + secret + "}]\n"),
		"content twice":           pool("      files: [{path: /etc/x, content: " + secret + ", content: " + secret + "}]\n"),
		"a path twice":            pool("      files: [{path: /etc/x, content: " + secret + "}, {path: /etc/x, content: " + secret + "}]\n"),
		"YAML that breaks there":  pool("      commands: [\"" + secret + "\n"),
		"YAML that breaks here":   pool("      commands:\n        - " + secret + ": [\n"),
		"a tab":                   pool("      files:\n\t- " + secret + "\n"),
		"an unknown alias":        pool("      commands: [*" + secret + "]\n"),
		"a tag":                   pool("      commands: [!!int " + secret + "]\n"),
		"a tag on the list":       pool("      commands: !!set [" + secret + "]\n"),
		"a key that is the value": pool("      " + secret + ": x\n"),
		"too much":                pool("      files: [{path: /etc/x, content: \"" + strings.Repeat(secret, 40_000) + "\"}]\n"),
		"add-ons' configuration": harness.Spec("demo", "  addons:\n    - {name: coredns, version: v1.13.2-eksbuild.1, configuration: {password: "+
			secret+"}}\n"),
	}
	a := start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	handled := 0
	for _, name := range append([]string{"good"}, slices.Sorted(maps.Keys(specs))...) {
		a.Upload("clusters/demo.yaml", specs[name])
		a.Settle()
		notices := a.Notices()[handled:]
		handled += len(notices)
		accepted := a.Status("demo").Condition(status.SpecAccepted)
		t.Log(name, accepted.Status, accepted.Message)
		if name == "a key that is the value" { // the message names the field, so that a user can correct it
			require.Contains(t, accepted.Message, "unknown field")
			continue
		}
		object, err := a.State().Get(t.Context(), names.Status("demo"), 1<<20)
		require.NoError(t, err)
		require.NotContains(t, string(object.Body), secret[:10], name)
		require.NotContains(t, a.Log(), secret[:10], name)
		require.NotContains(t, strings.Join(notices, "\n"), secret[:10], name)
	}
	for _, x := range a.StepFunctions.Executions() {
		require.NotContains(t, x.Input+x.Output+x.Error+x.Cause, secret[:10])
	}
	plans, err := a.State().List(t.Context(), "plans/")
	require.NoError(t, err)
	for _, entry := range plans {
		object, err := a.State().Get(t.Context(), entry.Key, 4<<20)
		require.NoError(t, err)
		require.NotContains(t, string(object.Body), secret[:10])
	}
	for _, stack := range a.CloudFormation.Stacks() {
		events, err := a.CloudFormation.DescribeStackEvents(t.Context(), a.Admin(), &cloudformation.StackPageInput{StackName: stack.StackName})
		require.NoError(t, err)
		for _, event := range events.StackEvents {
			require.NotContains(t, event.ResourceStatusReason, secret[:10])
		}
		for _, parameter := range stack.Parameters {
			require.NotContains(t, parameter.ParameterValue, secret[:10])
		}
	}
}
