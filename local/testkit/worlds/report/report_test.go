package report_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// at runs do once, at the first matching call.
func at(a *harness.Account, function, action, suffix string, do func()) {
	var once sync.Once
	a.OnCall(func(call endpoint.Call) error {
		if harness.CalledBy(call) == function && call.Action == action && strings.HasSuffix(call.Resource, suffix) {
			once.Do(do)
		}
		return nil
	})
}

// converges are the executions of the converge machine, oldest first.
func converges(a *harness.Account) []stepfunctions.Execution {
	return slices.DeleteFunc(a.StepFunctions.Executions(), func(x stepfunctions.Execution) bool { return x.MachineName != "drover-converge" })
}

// busy reports whether an execution left the cluster to another.
func busy(t *testing.T, output string) bool {
	var result events.PlanResult
	require.NoError(t, json.Unmarshal([]byte(output), &result))
	return result.Outcome == events.OutcomeBusy
}

// A spec that is uploaded at any moment of a converge is converged, by that execution or by its own.
func TestNoUpdateIsLost(t *testing.T) {
	tests := map[string]struct {
		function, action, suffix string
		// leaves: the execution of the newer spec finds the cluster busy and leaves it to the first.
		leaves bool
	}{
		"while the first stack is made":           {"change", "ExecuteChangeSet", "", true},
		"while the last plan is made":             {"plan", "PutObject", "status/clusters/demo.json", true},
		"while the status is written":             {"report", "PutObject", "status/clusters/demo.json", true},
		"before the lease is released":            {"report", "PutObject", "leases/demo.json", true},
		"after the release, before the read":      {"report", "GetObject", "clusters/demo.yaml", false},
		"just when its own execution would begin": {"admit", "StartExecution", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Upload("releases/r1.yaml", harness.Release())
			var second string
			at(a, test.function, test.action, test.suffix, func() {
				second = a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: two}\n"))
				if test.leaves {
					a.Until("its own execution has left", func() bool {
						all := converges(a)
						return len(all) > 1 && all[1].Status == "SUCCEEDED"
					})
				}
			})
			a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: one}\n"))
			a.Settle()
			require.NotEmpty(t, second)
			s := a.Status("demo")
			require.Equal(t, status.Ready, s.Phase, s.Message)
			require.Equal(t, second, s.PlannedVersion)
			for _, x := range a.StepFunctions.Executions() {
				require.Equal(t, "SUCCEEDED", x.Status, x.Name)
			}
			if test.leaves {
				require.True(t, busy(t, converges(a)[1].Output))
			}
		})
	}
}

// The second plan of the first execution fails permanently, right after the execution of the newer spec left the cluster to it.
func TestExecutionThatCannotPlanFindsANewerSpec(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	var second string
	plans := 0
	var mu sync.Mutex
	a.OnCall(func(call endpoint.Call) error {
		if harness.CalledBy(call) != "plan" || call.Action != "GetResources" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if plans++; plans != 2 {
			return nil
		}
		second = a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: two}\n"))
		a.Until("its own execution has left", func() bool {
			all := converges(a)
			return len(all) > 1 && all[1].Status == "SUCCEEDED"
		})
		return &wire.Error{Code: "AccessDeniedException", Message: "for a moment", Status: 400}
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, second, s.PlannedVersion)
}

func TestPlanThatAlwaysFailsEnds(t *testing.T) {
	a := harness.Start(t)
	a.OnCall(func(call endpoint.Call) error {
		if harness.CalledBy(call) == "plan" && call.Action == "GetResources" {
			return &wire.Error{Code: "AccessDeniedException", Message: "not allowed to tag:GetResources", Status: 400}
		}
		return nil
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Contains(t, s.Message, "not allowed to tag:GetResources")
	require.Equal(t, "FAILED", a.StepFunctions.Executions()[0].Status)
	require.Len(t, a.StepFunctions.Executions(), 1)
	require.LessOrEqual(t, a.StepFunctions.Executions()[0].Transitions, 16)
}

func TestInvalidSpecDuringAConverge(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	at(a, "change", "ExecuteChangeSet", "", func() { a.Upload("clusters/demo.yaml", "kind: Cluster") })
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, "the valid spec is converged completely")
	require.Contains(t, s.Message, "the cluster matches its last good spec; the newest spec is not used: ")
	require.Equal(t, "SpecInvalid", s.Condition(status.SpecAccepted).Reason)
	require.Equal(t, "True", s.Condition(status.Converged).Status)
	require.Len(t, a.Stacks("demo"), 5)
	lease, err := a.State().Lease(t.Context(), "demo")
	require.NoError(t, err)
	require.Empty(t, lease.Execution)
	a.Cluster("demo", "")
}

func TestNoticesComeWhenTheVerdictChanges(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Converge("demo")
	a.Settle()
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n"))
	a.Settle()
	a.Converge("demo")
	a.Settle()
	require.Equal(t, []string{
		"drover: demo is Pending\nthe spec was accepted",
		"drover: demo is Converging\nchanging 5 of 5 stacks",
		"drover: demo is Ready\nthe cluster matches its spec",
		"drover: demo is Pending\nthe spec was accepted",
		"drover: demo is Stopped\nspec.paused is true: drover starts nothing on this cluster",
	}, slices.DeleteFunc(a.Notices(), func(n string) bool {
		return !strings.HasPrefix(n, "drover: demo ")
	}), "notices of releases are not of this cluster")
	changes := slices.DeleteFunc(a.BusEvents(), func(e eventbridge.Event) bool { return e.DetailType != events.ClusterStatusChange })
	require.Len(t, changes, 5, "the event bus gets the same")
	for _, e := range changes {
		require.Equal(t, events.Source, e.Source)
	}
	var last events.StatusChange
	require.NoError(t, json.Unmarshal(changes[4].Detail, &last))
	require.Equal(t, events.StatusChange{
		Cluster: "demo", Phase: "Stopped", PreviousPhase: "Pending", Reason: "Paused",
		Message:     "spec.paused is true: drover starts nothing on this cluster",
		SpecVersion: a.Status("demo").PlannedVersion, Release: last.Release, KubernetesVersion: last.KubernetesVersion, Execution: last.Execution,
	}, last)
	require.Contains(t, a.Log(), `"phase":"Stopped"`, "a metric")
}

// A status is written after its notification. If that fails, the retry of the report notifies and writes.
func TestFailedNotificationIsSentLater(t *testing.T) {
	for _, action := range []string{"PutEvents", "Publish"} {
		a := harness.Start(t)
		a.Upload("releases/r1.yaml", harness.Release())
		var mu sync.Mutex
		refused := 0
		a.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) != "report" || call.Action != action {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if refused++; refused > 4 {
				return nil
			}
			return faults.Throttled(call.Service)
		})
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		require.Equal(t, 5, refused, action)
		require.Equal(t, status.Ready, a.Status("demo").Phase)
		require.Contains(t, a.Notices(), "drover: demo is Ready\nthe cluster matches its spec")
		if action == "PutEvents" {
			require.Equal(t, []string{"Ready: the cluster matches its spec"}, a.Verdicts())
		} else {
			require.Greater(t, len(a.Verdicts()), 1, "at least once")
		}
	}
}

// An execution for a name without a spec and stacks reports that and leaves nothing, for any input and any failure.
func TestExecutionForNoCluster(t *testing.T) {
	none := func(t *testing.T, a *harness.Account) {
		entries, err := a.State().List(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, entries)
		require.Empty(t, a.Notices())
	}
	for _, name := range []string{"absent", "Ünïcode\nand \"quotes\"", strings.Repeat("x", 200)} {
		a := harness.Start(t)
		x := a.Converge(name)
		a.Settle()
		require.Equal(t, "SUCCEEDED", a.Execution(x).Status, "a failure would be an alarm: %s", a.Execution(x).Cause)
		var result events.PlanResult
		require.NoError(t, json.Unmarshal([]byte(a.Execution(x).Output), &result))
		require.Equal(t, events.OutcomeUnknown, result.Outcome)
		require.Contains(t, result.Message, "it has neither a spec")
		none(t, a)
	}
	t.Run("when planning fails", func(t *testing.T) {
		a := harness.Start(t)
		a.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "plan" && call.Action == "GetResources" {
				return &wire.Error{Code: "AccessDeniedException", Message: "not allowed", Status: 400}
			}
			return nil
		})
		x := a.Converge("absent")
		a.Settle()
		require.Equal(t, "FAILED", a.Execution(x).Status)
		require.Contains(t, a.Execution(x).Cause, `step "Plan", function drover-plan, log group /aws/lambda/drover-plan`)
		none(t, a)
	})
}
