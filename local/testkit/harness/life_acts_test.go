package harness

// The steps of tests: actions of users, lost events and failures.

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

const (
	secondPool = "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}\n"
)

var errQuota = &wire.Error{Code: "AddressLimitExceeded", Message: "The maximum number of addresses has been reached.", Status: 400}

// create creates a cluster and waits until it is Ready.
func (l *life) create(more string) {
	l.Upload(names.ReleaseSpec("r1"), Release())
	l.Upload(names.ClusterSpec("demo"), Spec("demo", more))
	l.settle()
	l.phase(status.Ready)
}

func (l *life) phase(want status.Phase) {
	s := l.Status("demo")
	require.Equal(l.t, want, s.Phase, "%s: %+v", s.Message, s.Conditions)
}

// change uploads a spec and waits.
func (l *life) change(more string) {
	l.Upload(names.ClusterSpec("demo"), Spec("demo", more))
	l.settle()
}

// unheard uploads a spec, and its event is lost.
func (l *life) unheard(more string) {
	l.Events.Decide(lose("aws.s3", names.ClusterSpec("demo")))
	l.Upload(names.ClusterSpec("demo"), Spec("demo", more))
	l.settle()
	l.Events.Decide(nil)
}

// again converges by hand, and waits.
func (l *life) again() {
	l.Converge("demo")
	l.settle()
}

// lose drops events of a kind.
func lose(source, holding string) func(Event) Fate {
	return func(e Event) Fate {
		if e.Source == source && strings.Contains(string(e.Detail), holding) {
			return Lost
		}
		return Delivered
	}
}

// sweep sweeps until nothing is in flight. That includes executions that would wait for ever.
func (l *life) sweep() {
	for range 12 {
		time.Sleep(5 * time.Minute)
		l.swept()
	}
	l.settle()
}

// swept runs the sweep once. The logs of functions have the reason of a failure.
func (l *life) swept() { _ = l.SweepNow() }

// audited runs the audit and waits for what it starts.
func (l *life) audited() {
	_ = l.AuditNow() // the logs of functions have the reason of a failure
	l.settle()
}

// busy runs pods on the cluster's nodes, under a budget that allows no eviction.
func (l *life) busy(pods int) {
	l.API("drover-demo").Run(apiserver.App{Name: "shop", Replicas: pods, Start: time.Second, Stop: time.Second, Grace: time.Minute})
	time.Sleep(time.Minute)
}

// terminate terminates a node as an operator does with an unhealthy one.
func (l *life) terminate() {
	_, err := autoscalingapi.NewFromConfig(l.Config()).TerminateInstanceInAutoScalingGroup(l.t.Context(),
		&autoscalingapi.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: aws.String(l.instance()), ShouldDecrementDesiredCapacity: aws.Bool(false),
		})
	require.NoError(l.t, err)
}

// endAtHook adds an instance to the pool, and ends it while it waits at its launch hook. It returns the instance.
func (l *life) endAtHook() (ended string) {
	l.t.Helper()
	l.scale(len(l.instances()) + 1)
	l.reaches(func(g pool.Group) bool {
		for _, i := range g.Instances {
			if i.State == pool.PendingWait {
				ended = i.ID
			}
		}
		return ended != ""
	})
	require.NoError(l.t, l.EC2.Terminate(ended, "Server.InternalError"))
	return ended
}

func failing(step, kind, stack string, err error) func(string, resource.Request) error {
	return func(s string, r resource.Request) error {
		if s == step && r.Type == kind && strings.HasSuffix(r.StackName, stack) {
			return err
		}
		return nil
	}
}

// functionFails makes every call of a function fail.
func (l *life) functionFails(step string) { l.functionSays(step, nil, errors.New("it broke")) }

// functionSays makes every call of a function return the same.
func (l *life) functionSays(step string, answer any, err error) {
	l.Functions.Return(step, answer, err)
}

// instance returns an instance of the cluster.
func (l *life) instance() string {
	id := l.API("drover-demo").Nodes()[0].ProviderID
	return id[strings.LastIndex(id, "/")+1:]
}

// instances lists the IDs of the instances of the pool.
func (l *life) instances() (list []string) {
	group, _, err := l.Groups().Describe(l.t.Context(), "drover-demo-pool-a")
	require.NoError(l.t, err)
	for _, i := range group.Instances {
		list = append(list, i.ID)
	}
	return list
}

// nodes lists the names of the nodes.
func (l *life) nodes() (list []string) {
	for _, n := range l.API("drover-demo").Nodes() {
		list = append(list, n.Name)
	}
	return list
}

// unheardControlPlane creates a cluster whose execution waits for the control plane, although that exists: its event is lost.
func (l *life) unheardControlPlane() {
	l.Events.Decide(lose("aws.cloudformation", "control-plane"))
	l.Upload(names.ReleaseSpec("r1"), Release())
	l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
	for range 24 * 60 {
		time.Sleep(time.Minute)
		if l.Idle() && l.Stacks("demo")["control-plane"] == "CREATE_COMPLETE" {
			break
		}
	}
}

// stopped creates a cluster whose execution an operator stops while it waits for the control plane.
func (l *life) stopped() {
	l.unheardControlPlane()
	l.States.StopAll("Aborted", "by a person")
	l.Events.Decide(nil)
	time.Sleep(time.Minute)
}

// once calls do just before the first call of a kind by a function.
func (l *life) once(function, action, suffix string, do func()) {
	var once sync.Once
	l.OnCall(func(call endpoint.Call) error {
		if CalledBy(call) == function && call.Action == action && strings.HasSuffix(call.Resource, suffix) {
			once.Do(do)
		}
		return nil
	})
}

// forget deletes documents of drover's state each time before a function reads them.
func (l *life) forget(prefix string) {
	l.OnCall(func(call endpoint.Call) error {
		key, ours := strings.CutPrefix(call.Resource, "arn:aws:s3:::"+StateBucket+"/"+prefix)
		if ours && call.Action == "GetObject" && CalledBy(call) != "admin" {
			l.drop(prefix + key)
		}
		return nil
	})
}

// remember ends the deletions of forget. The sweep admits a spec without a status, and the audit plans it.
func (l *life) remember() {
	l.OnCall(nil)
	l.sweep()
	l.audited()
}

// drop deletes an object of drover's state.
func (l *life) drop(key string) {
	_, err := s3.NewClient(l.Config()).DeleteObject(l.t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(StateBucket), Key: &key})
	require.NoError(l.t, err)
}

// besides lets an operator update the network just before the change function reads it. The update is rolled back, and ends once the
// function has registered its waiter.
func (l *life) besides() {
	const stackName = "drover-demo-network"
	var began, over sync.Once
	l.OnCall(func(call endpoint.Call) error {
		switch {
		case CalledBy(call) != "change":
		case call.Action == "GetObject" && strings.Contains(call.Resource, names.Leases):
			began.Do(func() {
				for _, stack := range l.CloudFormation.Stacks() {
					if stack.StackName == stackName {
						_, err := l.CloudFormation.UpdateStack(l.t.Context(), l.Admin(), &cloudformation.UpdateStackInput{
							StackName: stackName, UsePreviousTemplate: true, Tags: append(stack.Tags, cloudformation.Tag{Key: "by", Value: "an operator"}),
						})
						require.NoError(l.t, err)
					}
				}
			})
		case call.Action == "PutObject" && strings.Contains(call.Resource, names.Waiters):
			over.Do(func() {
				_, err := l.CloudFormation.Wait(l.t.Context(), stackName)
				require.NoError(l.t, err)
			})
		}
		return nil
	})
}
