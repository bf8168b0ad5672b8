package sweep_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

const group = "drover-demo-pool-a"

// instances of the pool by their states.
func instances(t *testing.T, a *harness.Account) map[string][]string {
	t.Helper()
	found, _, err := autoscaling.New(awsautoscaling.NewFromConfig(a.Config())).Describe(t.Context(), group)
	require.NoError(t, err)
	by := map[string][]string{}
	for _, i := range found.Instances {
		by[i.State] = append(by[i.State], i.ID)
	}
	return by
}

// executionsOf returns the executions of a machine.
func executionsOf(a *harness.Account, machine string) []stepfunctions.Execution {
	var found []stepfunctions.Execution
	for _, x := range a.StepFunctions.Executions() {
		if strings.HasSuffix(x.MachineARN, ":drover-"+machine) {
			found = append(found, x)
		}
	}
	return found
}

func TestLostLaunchEvent(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.autoscaling")
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Until("an instance waits", func() bool { return a.Events.Lost() > 0 && len(instances(t, a)[pool.PendingWait]) == 1 })
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	require.Len(t, instances(t, a)[pool.InService], 1)
}

// terminate an instance of the pool, and wait until it waits at its hook.
func terminate(t *testing.T, a *harness.Account) string {
	t.Helper()
	id := instances(t, a)[pool.InService][0]
	_, err := awsautoscaling.NewFromConfig(a.Config()).TerminateInstanceInAutoScalingGroup(t.Context(),
		&awsautoscaling.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: &id, ShouldDecrementDesiredCapacity: aws.Bool(false),
		})
	require.NoError(t, err)
	a.Until("it waits at its hook", func() bool { return len(instances(t, a)[pool.TerminatingWait]) == 1 })
	return id
}

// A sweep handles instances that wait at hooks first, so one that crashes later has handled them. After half an hour the hook would end,
// and the node would terminate with its pods.
func TestLostTerminateEventAndKilledSweeps(t *testing.T) {
	bad := faults.New(1)
	a := harness.StartWith(t, harness.Options{Faults: bad})
	a.Cluster("demo", "")
	losing(a, "aws.autoscaling")
	terminate(t, a)
	rule, err := faults.Parse("crash-before=6 caller=sweep")
	require.NoError(t, err)
	_, err = bad.Add(time.Now(), rule)
	require.NoError(t, err)
	require.Error(t, a.SweepNow())
	require.Len(t, executionsOf(a, "drain-node"), 1)
	a.Until("the instance is terminated", func() bool { return len(instances(t, a)[pool.TerminatingWait]) == 0 })
}

func TestLostTerminateEvent(t *testing.T) {
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
	a.Until("the instance is terminated", func() bool {
		by := instances(t, a)
		return len(by[pool.TerminatingWait]) == 0 && len(by[pool.InService]) == 1 && by[pool.InService][0] != id
	})
	drains := executionsOf(a, "drain-node")
	require.Len(t, drains, 1)
	require.Contains(t, string(drains[0].Input), `"EC2InstanceId":"`+id+`"`)
	require.Contains(t, string(drains[0].Input), `\"cluster\":\"demo\"`, "the input names the cluster")
}

// An operator stops the execution of a drain. Without another one the hook would stay open for half an hour, and end with pods on the node.
func TestStoppedDrainAtAHookContinues(t *testing.T) {
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
	require.Len(t, executionsOf(a, "drain-node"), before, "an execution drains it")
	a.StepFunctions.StopAll("Aborted", "by an operator")
	a.Settle()
	a.Functions.Kill(nil)
	require.NoError(t, a.SweepNow())
	a.Until("the instance is terminated", func() bool { return len(instances(t, a)[pool.TerminatingWait]) == 0 })
	require.Len(t, executionsOf(a, "drain-node"), before+1)
}

// An operator stops a drain. The sweep restores the node, once.
func TestNodeOfAStoppedDrainIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, a *harness.Account) {
		machine := strings.Replace(a.Execution(a.Converge("demo")).MachineARN, "converge", "drain-node", 1)
		a.Settle()
		a.API("drover-demo").Down(time.Minute) // or the drain may be over before it is stopped
		x, err := a.StepFunctions.Start(t.Context(), a.Admin(), machine, "by-hand", `{"cluster":"demo","node":"n1"}`)
		require.NoError(t, err)
		a.StepFunctions.StopAll("Aborted", "by an operator")
		a.Until("it is over", func() bool { return a.Execution(x).Status == "ABORTED" })
		time.Sleep(2 * time.Minute)
		for range 2 {
			require.NoError(t, a.SweepNow())
			a.Settle()
			drains := executionsOf(a, "drain-node")
			require.Len(t, drains, 2)
			require.Contains(t, drains[1].Name, "restore-")
			require.JSONEq(t, `{"cluster":"demo","node":"n1","started":"0001-01-01T00:00:00Z","restore":true}`, string(drains[1].Input))
		}
	})
}

// An operator stops a drain and starts another at once. The sweep restores the node only after the second drain has stopped, too.
func TestNodeOfANewDrainIsNotRestored(t *testing.T) {
	bubble(t, func(t *testing.T, a *harness.Account) {
		machine := strings.Replace(a.Execution(a.Converge("demo")).MachineARN, "converge", "drain-node", 1)
		a.Settle()
		a.API("drover-demo").Down(2 * time.Hour) // or the drains may be over before they are stopped
		restored := func() (n int) {
			for _, x := range executionsOf(a, "drain-node") {
				if strings.HasPrefix(x.Name, "restore-") {
					n++
				}
			}
			return n
		}
		for i := range 2 {
			x, err := a.StepFunctions.Start(t.Context(), a.Admin(), machine, fmt.Sprintf("by-hand-%d", i), `{"cluster":"demo","node":"n1"}`)
			require.NoError(t, err)
			if i == 0 {
				a.StepFunctions.StopAll("Aborted", "by an operator")
				a.Until("it is over", func() bool { return a.Execution(x).Status == "ABORTED" })
			}
		}
		time.Sleep(2 * time.Minute)
		require.NoError(t, a.SweepNow())
		require.Zero(t, restored())
		a.StepFunctions.StopAll("Aborted", "by an operator")
		time.Sleep(time.Minute)
		require.NoError(t, a.SweepNow())
		require.Equal(t, 2, restored(), "both drains left a node to release")
		a.StepFunctions.StopAll("Aborted", "by an operator")
	})
}

// A drain is requested by the name of a node or by the id of an instance. The audit keeps the status of either while the drain runs.
func TestRunningDrainIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, a *harness.Account) {
		machine := strings.Replace(a.Execution(a.Converge("demo")).MachineARN, "converge", "drain-node", 1)
		a.Settle()
		instance := a.Group("demo", "a").Instances[0].ID
		a.API("drover-demo").Down(2 * time.Hour)
		x, err := a.StepFunctions.Start(t.Context(), a.Admin(), machine, "by-hand", fmt.Sprintf(`{"cluster":"demo","node":%q}`, instance))
		require.NoError(t, err)
		require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			s.SetNode(status.Node{Instance: instance, Pool: "a", State: status.NodeBlocked, Message: "two budgets"}, time.Now())
		}))
		time.Sleep(time.Hour)
		require.Equal(t, "RUNNING", a.Execution(x).Status)
		require.NoError(t, a.AuditNow())
		require.Len(t, a.Status("demo").Nodes, 1)
		a.StepFunctions.StopAll("Aborted", "by an operator")
	})
}

// bubble runs a test in an account in virtual time, with an idle cluster of one pool.
func bubble(t *testing.T, test func(t *testing.T, a *harness.Account)) {
	synctest.Test(t, func(t *testing.T) {
		a := harness.StartWith(t, harness.Options{Bubble: true})
		defer a.Close()
		a.Cluster("demo", "")
		time.Sleep(time.Minute)
		test(t, a)
	})
}

// comes waits in virtual time until a condition holds.
func comes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 3600 {
		if is() {
			return
		}
		time.Sleep(time.Second)
	}
	require.Fail(t, "an hour has passed, and not yet: "+what)
}

// rolls the pool of the cluster.
func rolls(a *harness.Account, more string) {
	a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "maxSize: 3",
		"maxSize: 3, files: [{path: /etc/motd, content: new}]"+more, 1))
}

var suspends = []string{"HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions"}

func suspend(t *testing.T, a *harness.Account, processes ...string) {
	_, err := awsautoscaling.NewFromConfig(a.Config()).SuspendProcesses(t.Context(), &awsautoscaling.SuspendProcessesInput{
		AutoScalingGroupName: aws.String(group), ScalingProcesses: processes,
	})
	require.NoError(t, err)
}

// The sweep resumes processes that an update suspended and left suspended. It leaves processes that an operator suspended.
func TestProcessesThatAnUpdateLeftSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		before, during, after []string // the update suspended some
		left                  []string
	}{
		"all of them are resumed":                  {during: suspends},
		"others that an operator suspended stay":   {before: []string{"Launch"}, during: suspends, left: []string{"Launch"}},
		"so does what the update did not suspend":  {before: []string{"AZRebalance"}, during: suspends, left: []string{"AZRebalance"}},
		"fewer are an operator's choice and stay":  {during: suspends[2:], left: suspends[2:]},
		"all, suspended while no update ran, stay": {after: suspends, left: suspends},
		"and so do all processes": {
			after: append([]string{"Launch", "Terminate"}, suspends...), left: append([]string{"Launch", "Terminate"}, suspends...),
		},
		"before it was changed, as they still are now": {before: suspends, left: suspends},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, a *harness.Account) {
				if len(c.before) > 0 {
					suspend(t, a, c.before...)
					time.Sleep(time.Minute)
				}
				a.OnResource(func(step string, r resource.Request) error {
					if step == "update" && r.StackName == group && r.Type == "AWS::AutoScaling::AutoScalingGroup" && len(c.during) > 0 {
						suspend(t, a, c.during...)
					}
					return nil
				})
				a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "maxSize: 3", "maxSize: 2", 1))
				a.Settle()
				require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
				if len(c.after) > 0 {
					time.Sleep(time.Minute)
					suspend(t, a, c.after...)
				}
				for range 2 {
					time.Sleep(5 * time.Minute)
					require.NoError(t, a.SweepNow())
				}
				require.ElementsMatch(t, c.left, a.Group("demo", "a").Suspended)
			})
		})
	}
}

// A running update suspends processes for itself. The sweep leaves them.
func TestProcessesThatAnUpdateSuspendsStaySoMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, a *harness.Account) {
		rolls(a, "")
		comes(t, "the update has suspended them", func() bool { return len(a.Group("demo", "a").Suspended) == len(suspends) })
		require.NoError(t, a.SweepNow())
		require.ElementsMatch(t, suspends, a.Group("demo", "a").Suspended)
		a.Settle()
		require.Empty(t, a.Group("demo", "a").Suspended)
	})
}

// An execution completes the hook and ends before it signals CloudFormation. Without the signal the update would wait for an hour, and
// CloudFormation would roll it back.
func TestUnsignalledNode(t *testing.T) {
	for name, more := range map[string]string{
		"while the pool is rolled":                           "",
		"and again the next one":                             "again",
		"although the execution that changes the pool ended": "stopped",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, a *harness.Account) {
				var deaths atomic.Int32
				a.OnCall(func(call endpoint.Call) error {
					if call.Action != "SignalResource" || deaths.Load() > 0 && more != "again" || deaths.Load() > 2 {
						return nil
					}
					deaths.Add(1)
					for _, x := range executionsOf(a, "join-node") {
						a.StepFunctions.Stop(x.ARN, "Aborted", "by an operator")
					}
					if more == "stopped" {
						a.StepFunctions.StopAll("Aborted", "by an operator")
					}
					return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403} // which the SDK does not try again
				})
				began := time.Now()
				rolls(a, "")
				comes(t, "its execution ended", func() bool { return deaths.Load() > 0 })
				for range 9 {
					time.Sleep(5 * time.Minute)
					require.NoError(t, a.SweepNow())
				}
				a.Settle()
				require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")["pool-a"])
				require.Less(t, time.Since(began), 50*time.Minute)
				require.Equal(t, []string{"2"}, templateVersions(a))
				restarted := 0
				for _, x := range executionsOf(a, "join-node") {
					if strings.HasPrefix(x.Name, "signal-") {
						restarted++
					}
				}
				require.EqualValues(t, deaths.Load(), restarted, "each once")
			})
		})
	}
	t.Run("not of one that did not join", func(t *testing.T) {
		bubble(t, func(t *testing.T, a *harness.Account) {
			image := ec2.TooNewImage
			rolls(a, ", imageID: "+image)
			comes(t, "the join has failed", func() bool { return len(a.Status("demo").Nodes) > 0 })
			require.NoError(t, a.SweepNow())
			a.Settle()
			for _, x := range executionsOf(a, "join-node") {
				require.False(t, strings.HasPrefix(x.Name, "signal-"), "%s", x.Input)
			}
		})
	})
}

// templateVersions of the pool's instances.
func templateVersions(a *harness.Account) (versions []string) {
	for _, i := range a.Group("demo", "a").Instances {
		versions = append(versions, i.TemplateVersion)
	}
	return versions
}
