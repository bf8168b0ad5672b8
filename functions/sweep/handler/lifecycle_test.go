package handler_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/harness"
	"github.com/drover-run/drover/local/states"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/status"
)

const group = "drover-demo-pool-a"

// instances of the pool by their states.
func instances(t *testing.T, a *harness.Account) map[string][]string {
	t.Helper()
	found, _, err := groups.New(autoscaling.NewFromConfig(a.Config())).Describe(t.Context(), group)
	require.NoError(t, err)
	by := map[string][]string{}
	for _, i := range found.Instances {
		by[i.State] = append(by[i.State], i.ID)
	}
	return by
}

// executions of a machine.
func executionsOf(a *harness.Account, machine string) []states.Execution {
	var found []states.Execution
	for _, x := range a.States.Executions() {
		if strings.HasSuffix(x.MachineARN, ":drover-"+machine) {
			found = append(found, x)
		}
	}
	return found
}

func TestALostLaunchEvent(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.autoscaling")
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Until("an instance waits", func() bool { return a.Events.Lost() > 0 && len(instances(t, a)[groups.PendingWait]) == 1 })
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	require.Len(t, instances(t, a)[groups.InService], 1)
}

// terminate an instance of the pool, and wait until it waits at its hook.
func terminate(t *testing.T, a *harness.Account) string {
	t.Helper()
	id := instances(t, a)[groups.InService][0]
	_, err := autoscaling.NewFromConfig(a.Config()).TerminateInstanceInAutoScalingGroup(t.Context(), &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: &id, ShouldDecrementDesiredCapacity: aws.Bool(false),
	})
	require.NoError(t, err)
	a.Until("it waits at its hook", func() bool { return len(instances(t, a)[groups.TerminatingWait]) == 1 })
	return id
}

func TestALostTerminateEvent(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.DetailType == "EC2 Instance-terminate Lifecycle Action" {
			return harness.Lost
		}
		return harness.Delivered
	})
	id := terminate(t, a)
	require.Empty(t, executionsOf(a, "drain-node"))
	require.NoError(t, a.SweepNow())
	a.Until("it is gone", func() bool {
		by := instances(t, a)
		return len(by[groups.TerminatingWait]) == 0 && len(by[groups.InService]) == 1 && by[groups.InService][0] != id
	})
	drains := executionsOf(a, "drain-node")
	require.Len(t, drains, 1)
	require.Contains(t, string(drains[0].Input), `"EC2InstanceId":"`+id+`"`)
	require.Contains(t, string(drains[0].Input), `\"cluster\":\"demo\"`, "it says which pool it is of")
}

// Somebody stops the execution of a drain: the hook would be open for half an hour, and end with the pods on the node.
func TestADrainAtAHookThatWasStoppedGoesOn(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Functions.Kill(func(c harness.Call) harness.Death {
		if c.Function == "drain" {
			return harness.Before
		}
		return harness.Lives
	})
	terminate(t, a)
	a.Until("its drain runs", func() bool { return len(executionsOf(a, "drain-node")) == 1 })
	before := len(executionsOf(a, "drain-node"))
	require.NoError(t, a.SweepNow())
	require.Len(t, executionsOf(a, "drain-node"), before, "somebody works on it")
	a.States.StopAll("Aborted", "by a person")
	a.Functions.Kill(nil)
	require.NoError(t, a.SweepNow())
	a.Until("it is gone", func() bool { return len(instances(t, a)[groups.TerminatingWait]) == 0 })
	require.Len(t, executionsOf(a, "drain-node"), before+1)
}

// Somebody stops a drain by hand: its node stays, and is given back, once.
func TestANodeWhoseDrainWasStoppedIsGivenBack(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	machine := strings.Replace(a.Execution(a.Converge("demo")).MachineARN, "converge", "drain-node", 1)
	a.Settle()
	hold := make(chan struct{})
	a.Functions.Kill(func(c harness.Call) harness.Death {
		if c.Function == "drain" {
			<-hold
		}
		return harness.Lives
	})
	x, err := a.States.Start(t.Context(), a.Admin(), machine, "by-hand", `{"cluster":"demo","node":"n1"}`)
	require.NoError(t, err)
	a.States.StopAll("Aborted", "by a person")
	close(hold)
	a.Until("it is over", func() bool { return a.Execution(x).Status == "ABORTED" })
	for range 2 {
		require.NoError(t, a.SweepNow())
		a.Settle()
		drains := executionsOf(a, "drain-node")
		require.Len(t, drains, 2)
		require.Contains(t, drains[1].Name, "release-")
		require.JSONEq(t, `{"cluster":"demo","node":"n1","started":"0001-01-01T00:00:00Z","release":true}`, string(drains[1].Input))
	}
}

func TestProcessesThatAnUpdateLeftSuspended(t *testing.T) {
	all := []string{"HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions"}
	for name, c := range map[string]struct {
		suspended, left []string
	}{
		"all of them are resumed":                {all, nil},
		"what else somebody suspended stays so":  {append([]string{"Launch"}, all...), []string{"Launch"}},
		"fewer are somebody's own wish and stay": {all[2:], all[2:]},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			client := autoscaling.NewFromConfig(a.Config())
			_, err := client.SuspendProcesses(t.Context(), &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String(group), ScalingProcesses: c.suspended})
			require.NoError(t, err)
			require.NoError(t, a.SweepNow())
			found, _, err := groups.New(client).Describe(t.Context(), group)
			require.NoError(t, err)
			require.ElementsMatch(t, c.left, found.Suspended)
		})
	}
}
