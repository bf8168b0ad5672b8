package sweep_test

// What the audit does for a cluster whose newest spec is not deployed, or whose last converge failed.

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// unhealthy runs an audit and counts the instances that it marks for replacement.
func unhealthy(t *testing.T, a *harness.Account) (n int) {
	t.Helper()
	mark := a.Calls.Mark()
	require.NoError(t, a.AuditNow())
	for _, call := range a.Calls.Since(mark) {
		if call.Action == "SetInstanceHealth" {
			n++
		}
	}
	return n
}

func TestClusterIsAuditedInEveryPhase(t *testing.T) {
	tests := map[string]struct {
		phase             status.Phase
		bring             func(t *testing.T, a *harness.Account)
		replaced, repairs int
		finding           string
	}{
		"its newest spec is invalid": {phase: status.Ready, bring: func(_ *testing.T, a *harness.Account) {
			a.Upload("clusters/demo.yaml", "kind: Cluster")
		}, replaced: 1, repairs: 1, finding: "stack addons-on-nodes is missing"},
		"its newest spec names a release that is not there": {phase: status.Ready, bring: func(_ *testing.T, a *harness.Account) {
			a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", "  tags: {team: b}\n"), "name: r1", "name: absent", 1))
		}, replaced: 1, repairs: 1, finding: "stack addons-on-nodes is missing"},
		"its last change was rolled back": {phase: status.Failed, bring: func(_ *testing.T, a *harness.Account) {
			a.OnResource(failUpdateOf("AWS::EKS::Addon"))
			a.Upload("clusters/demo.yaml", harness.Spec("demo", "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n"))
		}, replaced: 1, finding: "stack addons-on-nodes is missing"},
		"its newest spec requests a refused change": {phase: status.Stopped, bring: func(_ *testing.T, a *harness.Account) {
			a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "10.0.0.0/16", "10.1.0.0/16", 1))
		}, replaced: 1, finding: "is not Ready since"},
		"it is being upgraded": {phase: status.Upgrading, bring: func(t *testing.T, a *harness.Account) {
			require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) { s.Phase = status.Upgrading }))
		}, replaced: 1, finding: "stack addons-on-nodes is missing"},
		"it is paused": {phase: status.Stopped, bring: func(_ *testing.T, a *harness.Account) {
			a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n"))
		}, finding: "is not Ready since"},
		"its spec is deleted, and it is protected": {phase: status.Stopped, bring: func(_ *testing.T, a *harness.Account) {
			a.Remove("clusters/demo.yaml", "")
		}, replaced: 1, finding: "is not Ready since"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			test.bring(t, a)
			a.Settle()
			require.Equal(t, test.phase, a.Status("demo").Phase, a.Status("demo").Message)
			deleteStack(t, a, names.NodeAddons)
			a.Nodes.Decide(func(_ string, n []pool.NodeHealth) ([]pool.NodeHealth, error) {
				n[0].Ready, n[0].Since = false, time.Now().Add(-21*time.Minute)
				return n, nil
			})
			before := converges(a)
			later(a, 48*time.Hour)
			require.Equal(t, test.replaced, unhealthy(t, a))
			require.Contains(t, a.Status("demo").Condition(status.InSync).Message, test.finding)
			a.Settle()
			require.Equal(t, test.repairs, converges(a)-before)
			if test.repairs == 0 {
				return
			}
			require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")[names.NodeAddons])
			s := a.Status("demo")
			require.Equal(t, status.Ready, s.Phase, s.Message)
			require.Contains(t, s.Message, "the newest spec is not used")
			require.Equal(t, "False", s.Condition(status.SpecAccepted).Status)
			require.NotContains(t, tags(a, "network"), "team", "the newest spec changes nothing")
		})
	}
}

// The audit replaces a node after growing pauses when replacing it does not help.
func TestOnlyNodeIsReplacedLessAndLessOften(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Nodes.Decide(func(_ string, n []pool.NodeHealth) ([]pool.NodeHealth, error) {
		for i := range n {
			n[i].Ready, n[i].Since = false, time.Now().Add(-21*time.Minute)
		}
		return n, nil
	})
	var at []int
	for n := range 17 { // four hours
		later(a, time.Duration(n)*15*time.Minute)
		if unhealthy(t, a) > 0 {
			at = append(at, n*15)
		} else {
			require.Contains(t, a.Status("demo").Condition(status.InSync).Message,
				"replacing the cluster's only node did not help: drover replaces it again at ")
		}
		a.Until("a replacement is in service", func() bool {
			group, _, err := a.Groups().Describe(t.Context(), "drover-demo-pool-a")
			return err == nil && len(group.Instances) == 1 && group.Instances[0].State == pool.InService && a.Idle()
		})
		a.Settle()
	}
	require.Equal(t, []int{0, 30, 90, 210}, at, "minutes")
	later(a, 70*time.Hour)
	require.Equal(t, 1, unhealthy(t, a), "what was well for two days is replaced at once")
	require.Equal(t, 1, a.Status("demo").Replaced.Count)
}

// The audit notifies once of what it finds, and once when that is over.
func TestFindingsOfTheAuditAreReported(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	notice := func() (sent []string) {
		for _, n := range a.Notices() {
			if strings.Contains(n, "in sync") {
				sent = append(sent, n)
			}
		}
		return sent
	}
	audit(t, a)
	require.Empty(t, notice())
	a.Nodes.Decide(func(string, []pool.NodeHealth) ([]pool.NodeHealth, error) {
		from := &net.TCPAddr{Port: int(time.Now().UnixNano() % 60000)}
		return nil, &net.OpError{Op: "read", Net: "tcp", Source: from, Err: errors.New("connection refused")}
	})
	for range 3 {
		audit(t, a)
	}
	require.Equal(t, []string{"drover: demo is not in sync\ndrover could not check the nodes: connection refused"}, notice())
	a.Nodes.Decide(nil)
	for range 2 {
		audit(t, a)
	}
	require.Equal(t, "drover: demo is in sync again\nthe differences that the audit found are resolved", notice()[1])
	require.Len(t, notice(), 2)
}

// A paused cluster stays paused when an invalid spec is uploaded.
func TestInvalidSpecDoesNotEndAPause(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n"))
	a.Settle()
	a.Upload("clusters/demo.yaml", "kind: Cluster")
	a.Settle()
	deleteStack(t, a, names.NodeAddons)
	audit(t, a)
	a.Converge("demo")
	a.Settle()
	require.NotContains(t, a.Stacks("demo"), names.NodeAddons)
	require.Equal(t, status.Stopped, a.Status("demo").Phase, a.Status("demo").Message)
}
