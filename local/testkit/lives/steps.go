package lives

// The steps of lives: actions of users, lost events, failures and schedules.

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// RunSchedules runs the sweep and the audit on their schedules, for this number of hours.
func (l *Life) RunSchedules(hours int) {
	for passed := time.Minute; passed <= time.Duration(hours)*time.Hour; passed += time.Minute {
		time.Sleep(time.Minute)
		if passed%backoff.SweepPeriod == 0 {
			l.Sweep()
		}
		if passed%backoff.AuditPeriod == 0 {
			_ = l.AuditNow() // the logs of functions have the reason of a failure
		}
	}
	l.SettleAll()
}

// WaitForGroup waits until the pool's group is in a state.
func (l *Life) WaitForGroup(state func(pool.Group) bool) {
	l.T.Helper()
	for range 6 * 60 {
		if state(l.Group("demo", "a")) {
			return
		}
		time.Sleep(10 * time.Second)
	}
	require.Fail(l.T, "the pool never reached the state")
}

// SecondPool is the field of a cluster with a second pool, b.
const SecondPool = "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}\n"

// ErrQuota is the answer of EC2 when a quota of addresses is used up.
var ErrQuota = &wire.Error{Code: "AddressLimitExceeded", Message: "The maximum number of addresses has been reached.", Status: 400}

// CreateCluster creates a cluster with these fields, and waits until it is Ready.
func (l *Life) CreateCluster(more string) {
	l.Upload(names.ReleaseSpec("r1"), harness.Release())
	l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", more))
	l.SettleAll()
	l.RequirePhase(status.Ready)
}

// RequirePhase requires a phase of the cluster.
func (l *Life) RequirePhase(want status.Phase) {
	s := l.Status("demo")
	require.Equal(l.T, want, s.Phase, "%s: %+v", s.Message, s.Conditions)
}

// ChangeSpec uploads a spec with these fields, and waits.
func (l *Life) ChangeSpec(more string) {
	l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", more))
	l.SettleAll()
}

// ConvergeAgain converges as an operator does, and waits.
func (l *Life) ConvergeAgain() {
	l.Converge("demo")
	l.SettleAll()
}

// LoseEvents returns a function for Bus.Decide that loses the events of a source whose detail has this text.
func LoseEvents(source, holding string) func(harness.Event) harness.Fate {
	return func(e harness.Event) harness.Fate {
		if e.Source == source && strings.Contains(string(e.Detail), holding) {
			return harness.Lost
		}
		return harness.Delivered
	}
}

// SweepForAnHour runs the sweep for an hour, then waits. Executions that would wait for ever end by it.
func (l *Life) SweepForAnHour() {
	for range int(time.Hour / backoff.SweepPeriod) {
		time.Sleep(backoff.SweepPeriod)
		l.Sweep()
	}
	l.SettleAll()
}

// Sweep runs the sweep once. The logs of functions have the reason of a failure.
func (l *Life) Sweep() { _ = l.SweepNow() }

// Audit runs the audit and waits for what it starts.
func (l *Life) Audit() {
	_ = l.AuditNow() // the logs of functions have the reason of a failure
	l.SettleAll()
}

// RunBlockedPods runs pods on the cluster's nodes, under a budget that allows no eviction.
func (l *Life) RunBlockedPods(pods int) {
	l.API("drover-demo").Run(apiserver.App{Name: "shop", Replicas: pods, Start: time.Second, Stop: time.Second, Grace: time.Minute})
	time.Sleep(time.Minute)
}

// TerminateInstance terminates a node as an operator does with an unhealthy one.
func (l *Life) TerminateInstance() {
	_, err := autoscalingapi.NewFromConfig(l.Config()).TerminateInstanceInAutoScalingGroup(l.T.Context(),
		&autoscalingapi.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: aws.String(l.Instance()), ShouldDecrementDesiredCapacity: aws.Bool(false),
		})
	require.NoError(l.T, err)
}

// EndAtHook adds an instance to the pool, and ends it while it waits at its launch hook. It returns the instance.
func (l *Life) EndAtHook() (ended string) {
	l.T.Helper()
	l.SetPoolSize(len(l.Instances()) + 1)
	l.WaitForGroup(func(g pool.Group) bool {
		for _, i := range g.Instances {
			if i.State == pool.PendingWait {
				ended = i.ID
			}
		}
		return ended != ""
	})
	require.NoError(l.T, l.EC2.Terminate(ended, "Server.InternalError"))
	return ended
}

// FailResource returns a function for Account.OnResource that fails a step of one kind of resource in a stack.
func FailResource(step, kind, stack string, err error) func(string, resource.Request) error {
	return func(s string, r resource.Request) error {
		if s == step && r.Type == kind && strings.HasSuffix(r.StackName, stack) {
			return err
		}
		return nil
	}
}

// Instance returns the ID of an instance of the cluster.
func (l *Life) Instance() string {
	id := l.API("drover-demo").Nodes()[0].ProviderID
	return id[strings.LastIndex(id, "/")+1:]
}

// Instances lists the IDs of the instances of the pool.
func (l *Life) Instances() (list []string) {
	group, _, err := l.Groups().Describe(l.T.Context(), "drover-demo-pool-a")
	require.NoError(l.T, err)
	for _, i := range group.Instances {
		list = append(list, i.ID)
	}
	return list
}
