package aws_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
)

func TestExecutions(t *testing.T) {
	a := harness.Start(t)
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Until("a step waits", func() bool { return a.Still() && len(a.Events.Held()) > 0 })
	first := a.StepFunctions.Executions()[0]
	e, ctx := stepfunctions.New(sfn.NewFromConfig(a.Config()), first.MachineARN), t.Context()

	running := func(arn string) bool {
		t.Helper()
		status, err := e.Running(ctx, arn)
		require.NoError(t, err)
		return status
	}
	require.True(t, running(first.ARN))
	require.False(t, running(strings.Replace(first.ARN, first.Name, "forgotten", 1)))

	require.NoError(t, e.Converge(ctx, "other", "v1", ""))
	require.NoError(t, e.Converge(ctx, "other", "v1", ""), "it runs or has ended")
	require.Len(t, a.StepFunctions.Executions(), 2)
	other := a.StepFunctions.Executions()[1]
	a.Until("it has ended", func() bool { return a.Execution(other.ARN).Status != "RUNNING" })
	require.False(t, running(other.ARN))
	require.NoError(t, e.Converge(ctx, "other", "v1", ""))
	require.Len(t, a.StepFunctions.Executions(), 2)
	require.NoError(t, e.Converge(ctx, "other", "v1", "v2"), "a return from another version")
	require.Len(t, a.StepFunctions.Executions(), 3)

	begun, err := e.StartRetry(ctx, "other", "v1", "because")
	require.NoError(t, err)
	require.True(t, begun)
	again := a.StepFunctions.Executions()[3]
	a.Until("it has ended", func() bool { return a.Execution(again.ARN).Status != "RUNNING" })
	begun, err = e.StartRetry(ctx, "other", "v1", "because")
	require.NoError(t, err)
	require.False(t, begun)
	require.Len(t, a.StepFunctions.Executions(), 4)

	w, err := a.State().Waiter(ctx, "drover-demo-network")
	require.NoError(t, err)
	require.Equal(t, first.ARN, w.Execution)
	require.NoError(t, e.Fail(ctx, w.TaskToken, "StackFailed", events.ChangeResult{Stack: "network", Cause: "because"}))
	for _, void := range []string{w.TaskToken, "no token at all"} { // already used, and never issued
		require.NoError(t, e.Succeed(ctx, void, events.ChangeResult{}))
		require.NoError(t, e.Fail(ctx, void, "StackFailed", events.ChangeResult{}))
	}
	a.Settle()
	require.Equal(t, "FAILED", a.Execution(first.ARN).Status)
	ended, err := e.Ended(ctx, first.ARN)
	require.NoError(t, err)
	require.Equal(t, "FAILED", ended)
	ended, err = e.Ended(ctx, strings.Replace(first.ARN, first.Name, "forgotten", 1))
	require.NoError(t, err)
	require.Empty(t, ended)
	require.Contains(t, a.Execution(first.ARN).Cause, "because")

	require.Error(t, stepfunctions.New(sfn.NewFromConfig(a.Config()), first.MachineARN+"x").Converge(ctx, "demo", "v", ""))
}
