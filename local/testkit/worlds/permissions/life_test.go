// Package permissions_test proves least privilege: no permission is missing, none is superfluous, and no input reaches beyond its cluster.
package permissions_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
)

// life is lives.Life with the steps of this package.
type life struct{ *lives.Life }

// start starts a life in real time.
func start(t testing.TB) *life { return &life{lives.Start(t)} }

// startWith starts a life with options.
func startWith(t testing.TB, o harness.Options) *life { return &life{lives.StartWith(t, o)} }

// run runs a life in virtual time.
func run(t *testing.T, test func(l *life)) {
	lives.Run(t, func(l *lives.Life) { test(&life{l}) })
}

// runWithFaults runs a life in virtual time, with an engine to which the test adds faults.
func runWithFaults(t *testing.T, test func(l *life, bad *faults.Engine)) {
	lives.RunWithFaults(t, func(l *lives.Life, bad *faults.Engine) { test(&life{l}, bad) })
}

// uploadWithoutEvent uploads a spec, and its event is lost.
func (l *life) uploadWithoutEvent(more string) {
	l.Events.Decide(lives.LoseEvents("aws.s3", names.ClusterSpec("demo")))
	l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", more))
	l.SettleAll()
	l.Events.Decide(nil)
}

// functionFails makes every call of a function fail.
func (l *life) functionFails(step string) { l.functionSays(step, nil, errors.New("it broke")) }

// functionSays makes every call of a function return the same.
func (l *life) functionSays(step string, answer any, err error) {
	l.Functions.Return(step, answer, err)
}

// nodes lists the names of the nodes.
func (l *life) nodes() (list []string) {
	for _, n := range l.API("drover-demo").Nodes() {
		list = append(list, n.Name)
	}
	return list
}

// loseControlPlaneEvent creates a cluster whose execution waits for the control plane, although that exists: its event is lost.
func (l *life) loseControlPlaneEvent() {
	l.Events.Decide(lives.LoseEvents("aws.cloudformation", "control-plane"))
	l.Upload(names.ReleaseSpec("r1"), harness.Release())
	l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
	for range 24 * 60 {
		time.Sleep(time.Minute)
		if l.Idle() && l.Stacks("demo")["control-plane"] == "CREATE_COMPLETE" {
			break
		}
	}
}

// stopExecution creates a cluster whose execution an operator stops while it waits for the control plane.
func (l *life) stopExecution() {
	l.loseControlPlaneEvent()
	l.StepFunctions.StopAll("Aborted", "by an operator")
	l.Events.Decide(nil)
	time.Sleep(time.Minute)
}

// once calls do just before the first call of a kind by a function.
func (l *life) once(function, action, suffix string, do func()) {
	var once sync.Once
	l.OnCall(func(call endpoint.Call) error {
		if harness.CalledBy(call) == function && call.Action == action && strings.HasSuffix(call.Resource, suffix) {
			once.Do(do)
		}
		return nil
	})
}

// forget deletes documents of drover's state each time before a function reads them.
func (l *life) forget(prefix string) {
	l.OnCall(func(call endpoint.Call) error {
		key, ours := strings.CutPrefix(call.Resource, "arn:aws:s3:::"+harness.StateBucket+"/"+prefix)
		if ours && call.Action == "GetObject" && harness.CalledBy(call) != "admin" {
			l.drop(prefix + key)
		}
		return nil
	})
}

// remember ends the deletions of forget. The sweep admits a spec without a status, and the audit plans it.
func (l *life) remember() {
	l.OnCall(nil)
	l.SweepForAnHour()
	l.Audit()
}

// drop deletes an object of drover's state.
func (l *life) drop(key string) {
	_, err := s3.NewClient(l.Config()).DeleteObject(l.T.Context(), &awss3.DeleteObjectInput{
		Bucket: aws.String(harness.StateBucket), Key: &key,
	})
	require.NoError(l.T, err)
}

// updateNetworkDuringChange lets an operator update the network just before the change function reads it. The update is rolled back. It
// ends once the function has registered its waiter.
func (l *life) updateNetworkDuringChange() {
	const stackName = "drover-demo-network"
	var began, over sync.Once
	l.OnCall(func(call endpoint.Call) error {
		switch {
		case harness.CalledBy(call) != "change":
		case call.Action == "GetObject" && strings.Contains(call.Resource, names.Leases):
			began.Do(func() {
				for _, stack := range l.CloudFormation.Stacks() {
					if stack.StackName == stackName {
						_, err := l.CloudFormation.UpdateStack(l.T.Context(), l.Admin(), &cloudformation.UpdateStackInput{
							StackName: stackName, UsePreviousTemplate: true, Tags: append(stack.Tags, cloudformation.Tag{Key: "by", Value: "an operator"}),
						})
						require.NoError(l.T, err)
					}
				}
			})
		case call.Action == "PutObject" && strings.Contains(call.Resource, names.Waiters):
			over.Do(func() {
				_, err := l.CloudFormation.Wait(l.T.Context(), stackName)
				require.NoError(l.T, err)
			})
		}
		return nil
	})
}
