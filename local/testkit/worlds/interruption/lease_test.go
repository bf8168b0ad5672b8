package interruption_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// thief starts an execution that runs as long as the test, and takes the lease.
func (l *life) thief() string {
	machine := l.CreateResource("AWS::StepFunctions::StateMachine", map[string]any{
		"StateMachineName": names.Prefix + "thief", "RoleArn": harness.RoleARN("converge"),
		"DefinitionString": `{"QueryLanguage": "JSONata", "StartAt": "Wait", "States": {"Wait": {"Type": "Wait", ` +
			`"Seconds": 90000000, "End": true}}}`,
	})
	// Functions describe only executions of converge.
	for _, step := range []string{"plan", "sweep"} {
		require.NoError(l.T, l.Identities.PutRolePolicy(names.Role(harness.Region, step), "thief", `{"Version": "2012-10-17", "Statement":
			[{"Effect": "Allow", "Action": "states:DescribeExecution", "Resource": "*"}]}`))
	}
	arn, err := l.StepFunctions.Start(context.Background(), l.Admin(), machine, "thief", `{}`)
	require.NoError(l.T, err)
	l.Ignore(arn)
	return arn
}

// stolenStacks are the stacks with a waiter of the thief.
var stolenStacks = []string{"network", "control-plane", "addons", "pool-a", "addons-on-nodes"}

// steal takes the lease as plan does, and records that in the status. It returns the fence.
func (l *life) steal(cluster, thief string, phase status.Phase) int64 {
	seen, err := l.State().Lease(context.Background(), cluster)
	require.NoError(l.T, err)
	taken, err := l.State().Acquire(context.Background(), cluster, seen, thief)
	require.NoError(l.T, err)
	require.NoError(l.T, l.State().UpdateStatus(context.Background(), cluster, func(s *status.Status) {
		s.Phase, s.Execution, s.Fence, s.Message = phase, thief, taken.Fence, "the thief's"
		s.Deletion = &status.Deletion{RetainListed: true, Retain: []string{"vol-thiefs"}}
	}))
	for _, stack := range stolenStacks {
		_, err := l.State().PutWaiter(context.Background(), store.Waiter{
			Cluster: cluster, Stack: stack, StackName: names.Stack(cluster, stack), ClientRequestToken: "thief", TaskToken: "thief's",
			Execution: thief, Fence: taken.Fence,
		})
		require.NoError(l.T, err)
	}
	return taken.Fence
}

// onStacks are the calls that change a stack. Creating a change set changes none.
var onStacks = []string{"ExecuteChangeSet", "DeleteStack", "UpdateTerminationProtection", "ContinueUpdateRollback",
	"UpdateStack", "CreateStack"}

// The lease is taken over just before each call of each function, in turn, during a change, a change of protection and a
// deletion. The old holder then changes nothing: no stack, no resource of Kubernetes, no waiter, status or lease of the
// new holder. Only the one call that was already sent may still take effect.
func TestFormerHolderChangesNothing(t *testing.T) {
	tests := map[string]struct {
		functions []string
		// before is the spec of the cluster, after is uploaded; "" deletes the spec.
		before, after string
		// phase of the cluster when the thief has the lease.
		phase status.Phase
	}{
		"its tags change":             {[]string{"plan", "change", "report"}, "", "  tags: {team: b}\n", status.Converging},
		"its protection is turned on": {[]string{"change"}, lives.Unprotected, "  deletionProtection: true\n", status.Converging},
		"it is deleted":               {[]string{"plan", "change", "prepare", "clean", "report"}, lives.Unprotected, "", status.Deleting},
	}
	for name, test := range tests {
		for _, function := range test.functions {
			for number := 1; ; number++ {
				stolen := false
				t.Run(fmt.Sprintf("%s: %s, before call %d", name, function, number), func(t *testing.T) {
					run(t, func(a *life) {
						stolen = a.stealLease(function, number, test.before, test.after, test.phase)
					})
				})
				if t.Failed() || !stolen && number > 3 {
					require.Greater(t, number, 3)
					break
				}
			}
		}
	}
}

// stealLease runs a life whose lease is taken just before the numbered call of a function, and reports whether it was.
func (l *life) stealLease(function string, number int, before, after string, phase status.Phase) (stolen bool) {
	t := l.T
	l.Cluster("demo", before)
	if after == "" {
		volumes := l.KubernetesMakes("demo")
		l.PersistVolume("demo", volumes[0], "Retain")
	}
	thief := l.thief()
	var mu sync.Mutex
	var fence int64
	mark := 0
	l.Functions.Kill(func(c harness.Call) harness.Death {
		if c.Function != function || c.Number != number {
			return harness.Lives
		}
		mu.Lock()
		defer mu.Unlock()
		// Before that the function holds no lease.
		if lease, err := l.State().Lease(t.Context(), "demo"); err != nil || stolen || lease.Execution == "" {
			return harness.Lives
		}
		stolen = true
		fence = l.steal("demo", thief, phase)
		mark = l.Calls.Mark()
		return harness.Lives
	})
	if after == "" {
		l.Remove(names.ClusterSpec("demo"), "")
	} else {
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", after))
	}
	l.Until("it stands still", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return stolen && l.Still() || l.Idle() && !slices.ContainsFunc(l.StepFunctions.Executions(), func(x stepfunctions.Execution) bool {
			return x.Status == "RUNNING" && x.ARN != thief
		})
	})
	l.Functions.Kill(nil)
	if !stolen {
		return false
	}
	var late, removed []string
	onItsWay := true // until the function's next call
	for _, call := range l.Calls.Since(mark) {
		switch {
		case slices.Contains(onStacks, call.Action) && harness.CalledBy(call) != "admin" && !(onItsWay && harness.CalledBy(call) == function):
			late = append(late, harness.CalledBy(call)+" "+call.Action)
		case strings.Contains(call.Caller, "leftovers") && lives.Mutates(call):
			removed = append(removed, call.Action)
		}
		onItsWay = onItsWay && harness.CalledBy(call) != function
	}
	require.Empty(t, late)
	require.LessOrEqual(t, len(removed), 1, "what was on its way, and no other: %v", removed)
	lease, err := l.State().Lease(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, fence, lease.Fence)
	require.Equal(t, thief, lease.Execution)
	s := l.Status("demo")
	require.Equal(t, "the thief's", s.Message)
	require.Equal(t, phase, s.Phase)
	require.Equal(t, &status.Deletion{RetainListed: true, Retain: []string{"vol-thiefs"}}, s.Deletion)
	for stack := range l.Stacks("demo") {
		w, err := l.State().Waiter(t.Context(), names.Stack("demo", stack))
		require.NoError(t, err, stack)
		require.Equal(t, thief, w.Execution, stack)
	}

	// When the thief has ended, the next execution finishes.
	l.StepFunctions.StopAll("Aborted", "the thief")
	l.Settle()
	for _, stack := range stolenStacks {
		w, err := l.State().Waiter(t.Context(), names.Stack("demo", stack))
		require.NoError(t, err)
		require.NoError(t, l.State().DeleteWaiter(t.Context(), w))
	}
	l.Converge("demo")
	l.Settle()
	require.NoError(t, l.SweepNow()) // an unchanged cluster takes no lease, so the thief may still hold it
	if after == "" {
		require.Equal(t, status.Deleted, l.Status("demo").Phase, l.Status("demo").Message)
	} else {
		l.RequireConverged("demo")
	}
	return true
}

func TestSimultaneousExecutions(t *testing.T) {
	a := start(t)
	a.Cluster("demo", "")
	// Both read the lease before one takes it.
	var both sync.WaitGroup
	both.Add(2)
	var mu sync.Mutex
	read := 0
	a.OnCall(func(call endpoint.Call) error {
		if harness.CalledBy(call) != "plan" || call.Action != "PutObject" || !strings.HasSuffix(call.Resource, names.Lease("demo")) {
			return nil
		}
		mu.Lock()
		read++
		first := read <= 2
		mu.Unlock()
		if first {
			both.Done()
			both.Wait()
		}
		return nil
	})
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.s3" {
			return harness.Lost
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
	mark := a.Calls.Mark()
	one, other := a.Converge("demo"), a.Converge("demo")
	a.Settle()
	a.RequireConverged("demo")
	require.Equal(t, 2, min(read, 2), "both went for it")
	for _, x := range []string{one, other} {
		require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
	}
	changed := map[string]int{}
	for _, call := range a.Calls.Since(mark) {
		if call.Action == "ExecuteChangeSet" {
			changed[call.Resource]++
		}
	}
	for stack, n := range changed {
		want := 1
		if stack == names.Stack("demo", names.PoolStack("a")) {
			want = 2 // its first update switches the replacement of nodes off
		}
		require.Equal(t, want, n, stack)
	}
	require.NotEmpty(t, changed)
}

// The event of a spec is lost, and the status is then written for the previous spec. The audit finds the spec by its version, not by time.
func TestLostSpecDuringTheReportOfAnOlderOne(t *testing.T) {
	run(t, func(a *life) {
		a.Cluster("demo", "")
		a.Events.Decide(func(e harness.Event) harness.Fate {
			if e.Source == "aws.s3" {
				return harness.Lost
			}
			return harness.Delivered
		})
		version := a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  tags: {team: b}\n"))
		time.Sleep(time.Minute)
		require.NoError(t, a.State().UpdateStatus(context.Background(), "demo", func(s *status.Status) { s.KubernetesVersion += ".0" }))
		time.Sleep(10 * time.Minute)
		require.NoError(t, a.SweepNow())
		a.Settle()
		require.NotEqual(t, version, a.Status("demo").PlannedVersion, "the status is newer than the spec")
		require.NoError(t, a.AuditNow())
		a.Settle()
		require.Equal(t, version, a.Status("demo").PlannedVersion)
		require.Equal(t, status.Ready, a.Status("demo").Phase)
	})
}
