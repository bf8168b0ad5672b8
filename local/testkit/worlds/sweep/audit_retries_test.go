package sweep_test

// What the audit starts again: failed tries, executions that never started, and executions whose waiter is lost.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

func TestReleaseIsUploadedLate(t *testing.T) {
	upload := func(a *harness.Account) { a.Upload("releases/r1.yaml", harness.Release()) }
	t.Run("starts by itself", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		require.Equal(t, status.ReasonReleaseUnusable, a.Status("demo").Condition(status.SpecAccepted).Reason)
		a.Upload("releases/another.yaml", strings.Replace(harness.Release(), "name: r1", "name: another", 1))
		a.Settle()
		require.Equal(t, 1, converges(a), "it waits for r1")
		upload(a)
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	})
	t.Run("although its event was lost", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		losing(a, "aws.s3")
		upload(a)
		audit(t, a)
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	})
	t.Run("after an invalid one", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("releases/r1.yaml", "kind: Release")
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		require.Equal(t, status.ReasonReleaseUnusable, a.Status("demo").Condition(status.SpecAccepted).Reason)
		upload(a)
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	})
}

func TestTriesAgainAfterGrowingPauses(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	reason := "The maximum number of VPCs has been reached."
	a.OnResource(func(step string, r resource.Request) error {
		if step != "create" || r.Type != "AWS::EC2::VPC" {
			return nil
		}
		// Resource handlers add ids that differ in each try.
		return &wire.Error{Code: "VpcLimitExceeded", Status: 400,
			Message: fmt.Sprintf("%s (Service: Ec2, Status Code: 400, Request ID: %s) (SDK Attempt Count: 1) (RequestToken: %s, HandlerErrorCode: "+
				"ServiceLimitExceeded)",
				reason, uuid.NewString(), uuid.NewString())}
	})
	sent := func() (phases []string) {
		for _, n := range a.Notices() {
			if phase, ok := strings.CutPrefix(n, "drover: demo is "); ok {
				phase, _, _ = strings.Cut(phase, "\n")
				phases = append(phases, phase)
			}
		}
		return phases
	}
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	first := []string{"Pending", "Converging", "Failed"}
	require.Equal(t, first, sent())
	at := time.Duration(0)
	for n, pause := range []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		s := a.Status("demo")
		require.Equal(t, n+1, s.Failures)
		require.WithinDuration(t, time.Now().Add(pause), *s.RetryAt, time.Minute, "report's clock is real")
		before := converges(a)
		later(a, pause-time.Minute)
		audit(t, a)
		require.Equal(t, before, converges(a), "not yet")
		later(a, pause+time.Minute)
		audit(t, a)
		require.Equal(t, before+1, converges(a), "now")
		at += pause
	}
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Nil(t, s.RetryAt, "the user must act")
	later(a, 1000*time.Hour)
	before := converges(a)
	audit(t, a)
	require.Equal(t, before, converges(a))
	require.Equal(t, first, sent(), "automatic tries that end the same way send no notice")
	a.Converge("demo")
	a.Settle()
	byHand := append(first, "Converging", "Failed")
	require.Equal(t, byHand, sent(), "a requested try notifies of its end")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: two}\n"))
	a.Settle()
	uploaded := append(byHand, "Pending", "Converging", "Failed")
	require.Equal(t, uploaded, sent())
	reason = "The account is suspended."
	later(a, 16*time.Minute)
	audit(t, a)
	require.Equal(t, append(uploaded, "Failed"), sent(), "another reason sends one")
	a.OnResource(nil)
	later(a, 2*time.Hour)
	audit(t, a)
	require.Equal(t, append(uploaded, "Failed", "Ready"), sent())
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	require.Zero(t, a.Status("demo").Failures)
	require.Nil(t, a.Status("demo").NotifiedFailure)
}

// Each retry of a rolled back change could replace nodes, and replace them again in its rollback.
func TestRolledBackChangeIsNotRetried(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.OnResource(failUpdateOf("AWS::EKS::Addon"))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n"))
	a.Settle()
	require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", a.Stacks("demo")["addons"])
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Nil(t, s.RetryAt)
	require.Contains(t, s.Message, "drover does not retry by itself")
	before := converges(a)
	later(a, 100*time.Hour)
	audit(t, a)
	require.Equal(t, before, converges(a))
}

func TestThrottledClusterIsRetried(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "CreateChangeSet" {
			return faults.Throttled("cloudformation")
		}
		return nil
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Until("its execution backs off", func() bool { return a.Status("demo").Phase == status.Failed && a.Idle() })
	require.Equal(t, "Throttled", a.Status("demo").Condition(status.Converged).Reason)
	a.OnCall(nil)
	later(a, 16*time.Minute)
	require.NoError(t, a.AuditNow())
	require.Equal(t, 1, converges(a), "the execution itself retries")
	a.StepFunctions.StopAll("Stopped", "by an operator")
	a.Settle()
	audit(t, a)
	require.Equal(t, 2, converges(a), "the audit retries after it was stopped")
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

func TestUnobservedExecution(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	losing(a, "aws.s3")
	version := a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Phase, s.ObservedVersion = status.Pending, version
	}))
	audit(t, a)
	require.Zero(t, converges(a), "it may still come")
	later(a, 11*time.Minute)
	audit(t, a)
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// The waiter is deleted, so neither an event nor a sweep resumes the step.
func TestIdleExecutionIsReplaced(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.cloudformation")
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	waiting(t, a, "network")
	later(a, 2*time.Hour)
	require.NoError(t, a.AuditNow())
	require.Equal(t, 1, converges(a), "it waits for a stack: the sweep resumes it")
	w, err := a.State().Waiter(t.Context(), "drover-demo-network")
	require.NoError(t, err)
	require.NoError(t, a.State().DeleteWaiter(t.Context(), w))
	later(a, time.Minute)
	require.NoError(t, a.AuditNow())
	require.Equal(t, 1, converges(a), "it may be between two steps")
	a.Events.Decide(nil)
	later(a, 2*time.Hour)
	audit(t, a)
	require.Equal(t, "ABORTED", a.Execution(w.Execution).Status)
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

func TestIdleDeletionContinues(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  deletionProtection: false\n")
	losing(a, "aws.cloudformation")
	a.Remove("clusters/demo.yaml", "")
	a.Until("the pool is deleted, and its event is lost", func() bool {
		_, found := a.Stacks("demo")["pool-a"]
		return !found && a.Still()
	})
	w, err := a.State().Waiter(t.Context(), "drover-demo-pool-a")
	require.NoError(t, err)
	require.NoError(t, a.State().DeleteWaiter(t.Context(), w))
	a.Events.Decide(nil)
	later(a, 2*time.Hour)
	require.NoError(t, a.AuditNow())
	require.Equal(t, "RUNNING", a.Execution(w.Execution).Status, "a deletion pauses between tries")
	later(a, 4*time.Hour)
	audit(t, a)
	require.Equal(t, "ABORTED", a.Execution(w.Execution).Status)
	require.Equal(t, status.Deleted, a.Status("demo").Phase, a.Status("demo").Message)
	require.Empty(t, a.Stacks("demo"))
}

func TestUnreportedDeletion(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  deletionProtection: false\n")
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.DetailType == "Object Deleted" {
			return harness.Lost
		}
		return harness.Delivered
	})
	a.Remove("clusters/demo.yaml", "")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase)
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Equal(t, status.Deleted, a.Status("demo").Phase, a.Status("demo").Message)
	require.Empty(t, a.Stacks("demo"))
}
