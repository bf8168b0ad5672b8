package roll_test

// Instances that EC2 does not launch. CloudFormation reports only missing signals; Auto Scaling has the reason.

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

const (
	saidOfVCPUs = "Auto Scaling could not launch an instance: You have requested more vCPU capacity than your current vCPU limit " +
		"of 2 allows for the instance bucket that the specified instance type belongs to."
	saidOfZones = "Auto Scaling could not launch an instance: We currently do not have sufficient m7i.large capacity in the Availability " +
		"Zone you requested"
)

// reason returns the reason of a stack in the status.
func (l *life) reason(stack string) string {
	for _, s := range l.Status("demo").Stacks {
		if s.Name == stack {
			return s.Status + " " + s.Reason
		}
	}
	return ""
}

// refusals are reasons to refuse instances, each with its remedy.
var refusals = map[string]struct {
	begin            func(t *testing.T, l *life, bad *faults.Engine) (end func())
	reported, advice string
}{
	"a quota is used up": {
		func(_ *testing.T, l *life, _ *faults.Engine) func() {
			before := l.Quotas.Limit(servicequotas.StandardVCPUs)
			l.Quotas.Set(servicequotas.StandardVCPUs, 2)
			return func() { l.Quotas.Set(servicequotas.StandardVCPUs, float64(before)) }
		},
		saidOfVCPUs, "a quota of the account is exhausted: request an increase in Service Quotas, or free part of it",
	},
	"EC2 has none left": {
		func(t *testing.T, _ *life, bad *faults.Engine) func() {
			return lives.AddFault(t, bad, "launch-fails cluster=demo pool=a")
		},
		saidOfZones, "name more instance types, or subnets of other zones, in the pool, or wait",
	},
}

func TestRefusedInstancesDuringARoll(t *testing.T) {
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.CreateCluster(lives.Unprotected)
				l.Converge("demo", "a")
				end := c.begin(t, l, bad)
				l.WaitForUpdate("pool-a")
				time.Sleep(time.Minute)
				l.Sweep()
				require.NotContains(t, l.reason("pool-a"), "Auto Scaling", "boots take a while")
				time.Sleep(10 * time.Minute)
				l.Sweep()
				require.True(t, strings.HasPrefix(l.reason("pool-a"), "UPDATE_IN_PROGRESS "+c.reported), l.reason("pool-a"))
				require.Contains(t, l.reason("pool-a"), c.advice)
				l.SettleAll()
				s := l.Status("demo")
				require.Equal(t, status.Failed, s.Phase)
				require.Regexp(t, `stack drover-demo-pool-a is UPDATE_ROLLBACK_\w+: Group: .*Received 0 SUCCESS signal\(s\)`, s.Message)
				require.Contains(t, s.Message, "\n"+c.reported)
				require.Regexp(t, c.advice+`\n(stuck at: .*\n)?next: `, s.Message)
				require.Contains(t, l.reason("pool-a"), c.reported)
				require.Contains(t, strings.Join(l.Notices(), "\n"), c.reported)

				end()
				l.ConvergeAgain()
				l.RequirePhase(status.Ready)
				require.NotContains(t, l.reason("pool-a"), "Auto Scaling")
			})
		})
	}
}

// Capacity becomes available while CloudFormation waits for instances.
func TestInstancesRefusedForAWhile(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "maxSize: 3",
			"maxSize: 3, update: {pauseTime: 30m}", 1))
		l.SettleAll()
		end := lives.AddFault(t, bad, "launch-fails")
		l.Converge("demo", "a")
		l.WaitForUpdate("pool-a")
		time.Sleep(10 * time.Minute)
		l.Sweep()
		require.Contains(t, l.reason("pool-a"), saidOfZones)
		end()
		time.Sleep(20 * time.Minute) // Auto Scaling retries with growing pauses
		l.Sweep()
		require.Equal(t, "UPDATE_IN_PROGRESS ", l.reason("pool-a"), "the launch that came after that one did not fail")
		l.SettleAll()
		l.RequirePhase(status.Ready)
	})
}

// The failed creation deletes the group. The status still has the reason.
func TestRefusedInstancesOfANewPool(t *testing.T) {
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.Upload(names.ReleaseSpec("r1"), harness.Release())
				l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "minSize: 1", "minSize: 2", 1))
				l.Until("the account was checked", func() bool { return l.Stacks("demo")[names.Network] == "CREATE_IN_PROGRESS" })
				end := c.begin(t, l, bad)
				l.SettleAll()
				s := l.Status("demo")
				require.Equal(t, status.Failed, s.Phase)
				require.Contains(t, s.Message, "stack drover-demo-pool-a is ROLLBACK_COMPLETE")
				require.Contains(t, s.Message, strings.TrimPrefix(c.reported, "Auto Scaling could not launch an instance: "))
				require.Contains(t, s.Message, c.advice)
				why, err := l.Groups().LaunchFailureReason(l.T.Context(), "drover-demo-pool-a", time.Time{}, time.Time{})
				require.NoError(t, err)
				require.Contains(t, c.reported, why[:50], "the activities outlive the group")

				end()
				l.ConvergeAgain()
				l.RequirePhase(status.Ready)
			})
		})
	}
}

// An autoscaler scales out a pool, and EC2 launches no further instances. The cluster matches its spec, and InSync still
// reports the missing instances.
func TestRefusedInstancesOfAnAutoscaler(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.CreateCluster(lives.Unprotected)
		end := lives.AddFault(t, bad, "launch-fails=VcpuLimitExceeded")
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String("drover-demo-pool-a"), DesiredCapacity: aws.Int32(3),
		})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		l.Audit()
		found := l.Status("demo").Condition(status.InSync)
		require.NotNil(t, found)
		require.Contains(t, found.Message, "pool a has 1 of 3 instances: Auto Scaling could not launch an instance: You have requested "+
			"more vCPU capacity")
		require.Contains(t, found.Message, "request an increase in Service Quotas")
		l.RequirePhase(status.Ready)
		end()
		time.Sleep(20 * time.Minute)
		l.Audit()
		require.Equal(t, "True", l.Status("demo").Condition(status.InSync).Status)
		require.Len(t, l.Group("demo", "a").Instances, 3)
	})
}
