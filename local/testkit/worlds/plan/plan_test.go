package plan_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// mutatingCalls returns drover's mutating calls since a mark, except those that record the verdict of an uploaded release.
func mutatingCalls(a *harness.Account, mark int) []string {
	var calls []string
	for _, call := range a.Calls.Since(mark) {
		by := harness.CalledBy(call)
		verdict := by == "publish" || by == "sweep" && (call.Service != "s3" || strings.Contains(call.Resource, "/status/releases/"))
		if call.Mutating && by != "admin" && !verdict {
			calls = append(calls, harness.CalledBy(call)+" "+call.Service+":"+call.Action+" "+call.Resource)
		}
	}
	return calls
}

func TestUnchangedClusterCostsNoMutatingCall(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before, mark := a.Status("demo"), a.Calls.Mark()
	x := a.Converge("demo")
	a.Settle()
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
	require.Empty(t, mutatingCalls(a, mark))
	require.Equal(t, before, a.Status("demo"))
	require.Len(t, a.Verdicts(), 1, "no new verdict")
}

func TestOneOfTwoSimultaneousExecutionsWorks(t *testing.T) {
	a := harness.Start(t)
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.s3" {
			return harness.Lost
		}
		return harness.Delivered
	})
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  deletionProtection: false\n"))
	// Both read the lease before either takes it.
	var both sync.WaitGroup
	both.Add(2)
	var mu sync.Mutex
	reads := 0
	a.OnCall(func(call endpoint.Call) error {
		if harness.CalledBy(call) != "plan" || call.Action != "GetObject" || !strings.HasSuffix(call.Resource, "/clusters/demo.yaml") {
			return nil
		}
		mu.Lock()
		reads++
		first := reads <= 2
		mu.Unlock()
		if first {
			both.Done()
			both.Wait()
		}
		return nil
	})
	one, other := a.Converge("demo"), a.Converge("demo")
	a.Settle()
	outcomes := []string{}
	for _, x := range []string{one, other} {
		require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
		outcomes = append(outcomes, outcome(t, a, x))
	}
	require.ElementsMatch(t, []string{"Busy", "converged"}, outcomes)
	require.Equal(t, status.Ready, a.Status("demo").Phase)
	for stack, events := range changesOf(a, "demo") {
		require.Equal(t, 1, events, stack)
	}
}

// outcome is Busy for an execution that left the cluster to another one.
func outcome(t *testing.T, a *harness.Account, arn string) string {
	var output events.PlanResult
	require.NoError(t, json.Unmarshal([]byte(a.Execution(arn).Output), &output))
	if output.Outcome == events.OutcomeBusy {
		return "Busy"
	}
	return "converged"
}

// changesOf counts the executed change sets by stack.
func changesOf(a *harness.Account, cluster string) map[string]int {
	counts := map[string]int{}
	for _, call := range a.Calls.Since(0) {
		if call.Action == "ExecuteChangeSet" && call.Error == "" && strings.Contains(call.Resource, names.Stack(cluster, "")) {
			counts[call.Resource]++
		}
	}
	return counts
}

func TestReleases(t *testing.T) {
	t.Run("one that is missing is named, and uploading it and the spec again is the remedy", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Stopped, s.Phase)
		require.Equal(t, "ReleaseUnusable", s.Condition(status.SpecAccepted).Reason)
		require.Contains(t, s.Message, "releases/r1.yaml")
		require.Empty(t, a.Stacks("demo"))
		a.Cluster("demo", "")
	})
	t.Run("an invalid one is reported with its lines", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("releases/r1.yaml", strings.Replace(harness.Release(), "images:", "pictures:", 1))
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		require.Contains(t, a.Status("demo").Message, "releases/r1.yaml:6: spec.pictures")
	})
	t.Run("one that is edited or deleted changes no cluster", func(t *testing.T) {
		a := harness.Start(t)
		a.Cluster("demo", "")
		mark := a.Calls.Mark()
		a.Upload("releases/r1.yaml", strings.Replace(harness.Release(), "v1.13.2-eksbuild.1", "v1.12.4-eksbuild.1", 1))
		a.Converge("demo")
		a.Settle()
		require.Empty(t, mutatingCalls(a, mark))
		a.Remove("releases/r1.yaml", "")
		a.Converge("demo")
		a.Settle()
		require.Empty(t, mutatingCalls(a, mark))
		require.Equal(t, status.Ready, a.Status("demo").Phase)
		// A new spec that names the same release keeps the content that was pinned.
		a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	})
	t.Run("another name is another release", func(t *testing.T) {
		a := harness.Start(t)
		a.Cluster("demo", "")
		second := strings.NewReplacer("name: r1", "name: r2", "v1.13.2-eksbuild.1", "v1.12.4-eksbuild.1").Replace(harness.Release())
		a.Upload("releases/r2.yaml", second)
		a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "name: r1", "name: r2", 1))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		require.Equal(t, "r2", a.Status("demo").Release)
		require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")["addons-on-nodes"])
		require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"], "its template and values are the same")
	})
}

func TestPausedClusterIsUnchanged(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before := a.Stacks("demo")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n  tags: {team: b}\n"))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Stopped, s.Phase)
	require.Equal(t, "Paused", s.Condition(status.Converged).Reason)
	require.Equal(t, before, a.Stacks("demo"))
	a.Cluster("demo", "  tags: {team: b}\n")
	require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")["network"])
}

func TestReplacementsOfWhatHoldsStateAreRefusedByName(t *testing.T) {
	tests := map[string]struct{ old, new, field string }{
		"the network's addresses": {"10.0.0.0/16", "10.9.0.0/16", "spec.network.cidr: 10.0.0.0/16 → 10.9.0.0/16"},
		"a zone less": {
			"zones: [eu-central-1a, eu-central-1b]", "zones: [eu-central-1a, eu-central-1c]", "spec.network.zones: eu-central-1b",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			before, mark := a.Stacks("demo"), a.Calls.Mark()
			a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", "  tags: {team: b}\n"), test.old, test.new, 1))
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.Stopped, s.Phase)
			require.Equal(t, "ChangeRefused", s.Condition(status.Converged).Reason)
			require.Contains(t, s.Message, test.field)
			require.Equal(t, before, a.Stacks("demo"))
			for _, call := range mutatingCalls(a, mark) {
				require.NotContains(t, call, "cloudformation:")
				require.NotContains(t, call, "leases/")
			}
			a.Cluster("demo", "  tags: {team: b}\n") // reverting the spec is the remedy
		})
	}
}

func TestVersionsThatCannotBe(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	for version, want := range map[string]string{"1.99": "1.99", "1.20": "1.20"} {
		a.Upload("clusters/demo.yaml", harness.Spec("demo", "  kubernetesVersion: \""+version+"\"\n"))
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, "SpecInvalid", s.Condition(status.SpecAccepted).Reason)
		require.Contains(t, s.Message, "clusters/demo.yaml:12: spec.kubernetesVersion")
		require.Contains(t, s.Message, want)
	}
	a.Cluster("demo", "")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  kubernetesVersion: \"1.35\"\n"))
	a.Settle()
	require.Contains(t, a.Status("demo").Condition(status.SpecAccepted).Message, "1.36")
	require.Equal(t, status.Ready, a.Status("demo").Phase, "it runs as before")
}

// A holder that is over without having given its lease up loses it to the next execution, and what still runs of it
// changes nothing.
func TestLeaseOfADeadHolderIsTaken(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return harness.Held // the first execution waits for its first stack, for ever
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Until("the network is there", func() bool { return a.Idle() && a.Stacks("demo")["network"] == "CREATE_COMPLETE" })
	ctx := context.Background()
	dead, err := a.State().Lease(ctx, "demo")
	require.NoError(t, err)
	require.Equal(t, a.StepFunctions.Executions()[0].ARN, dead.Execution)
	a.StepFunctions.StopAll("Aborted", "by an operator")
	a.Until("it is over", func() bool { return a.StepFunctions.Executions()[0].Status == "ABORTED" })

	a.Events.Decide(nil)
	x := a.Converge("demo")
	a.Settle()
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
	require.Equal(t, status.Ready, a.Status("demo").Phase)
	free, err := a.State().Lease(ctx, "demo")
	require.NoError(t, err)
	require.Empty(t, free.Execution)
	require.Greater(t, free.Fence, dead.Fence)

	// The dead holder's change of the control plane comes at last; its stack's event, too.
	mark := a.Calls.Mark()
	entries, err := a.State().List(ctx, "plans/")
	require.NoError(t, err)
	var answers []string
	for _, entry := range entries {
		_, err = a.Functions.Call("change", events.ChangeRequest{
			Cluster: "demo", Execution: dead.Execution, Fence: dead.Fence, PlanKey: entry.Key, Stack: "network", TaskToken: "dead",
		})
		answers = append(answers, err.Error())
	}
	require.Contains(t, strings.Join(answers, "\n"), "LeaseLost")
	result, err := a.Functions.Call("report", events.ReportRequest{
		Cluster: "demo", Execution: dead.Execution, Plan: &events.PlanResult{Fence: dead.Fence}, Error: "StackFailed",
	})
	require.NoError(t, err)
	require.Contains(t, string(result), `"failed":true`, "it ends so, and changes no status")
	for _, event := range a.Events.Held() {
		a.Events.Deliver(event)
	}
	// If its waiter was not replaced by the second holder's: an answer to a token that is void, and the waiter forgotten. If the second
	// execution read the stack within the second in which it was created: the status of the stack.
	require.Subset(t, []string{
		"stackevent states:SendTaskSuccess arn:aws:states:eu-central-1:111122223333:stateMachine:drover-converge",
		"stackevent s3:DeleteObject arn:aws:s3:::" + harness.StateBucket + "/waiters/drover-demo-network.json",
		"stackevent s3:PutObject arn:aws:s3:::" + harness.StateBucket + "/status/clusters/demo.json",
	}, mutatingCalls(a, mark))
	require.Equal(t, status.Ready, a.Status("demo").Phase)
	for _, stack := range a.Status("demo").Stacks {
		require.Equal(t, a.Stacks("demo")[stack.Name], stack.Status, stack.Name)
	}
}

func TestKubernetesVersionInStatus(t *testing.T) {
	t.Run("is absent until the control plane is deployed", func(t *testing.T) {
		a := harness.Start(t)
		during := []string{}
		a.OnCall(func(call endpoint.Call) error {
			if call.Action == "ExecuteChangeSet" && strings.Contains(call.Resource, names.Stack("demo", names.Network)) {
				during = append(during, a.Status("demo").KubernetesVersion)
			}
			return nil
		})
		a.Cluster("demo", "  deletionProtection: false\n")
		require.Equal(t, []string{""}, during)
		require.Equal(t, "1.36", a.Status("demo").KubernetesVersion)
		a.OnCall(nil)
		a.Remove("clusters/demo.yaml", "")
		a.Settle()
		require.Equal(t, status.Deleted, a.Status("demo").Phase)
		require.Empty(t, a.Status("demo").KubernetesVersion, "a deleted cluster has none")
	})
}
