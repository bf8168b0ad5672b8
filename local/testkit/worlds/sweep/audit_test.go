package sweep_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
)

// later moves the clock of the sweep, and of no other function, forward.
func later(a *harness.Account, by time.Duration) {
	a.Functions.Sweep.Now = func() time.Time { return time.Now().Add(by) }
}

// audit runs the audit and what it starts.
func audit(t *testing.T, a *harness.Account) {
	t.Helper()
	require.NoError(t, a.AuditNow())
	a.Settle()
}

// deleteStack deletes a stack as an operator.
func deleteStack(t *testing.T, a *harness.Account, stack string) {
	t.Helper()
	_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: names.Stack("demo", stack)})
	require.NoError(t, err)
	a.Settle()
}

// retagStack changes the tags of a stack as an operator.
func retagStack(t *testing.T, a *harness.Account, stack string, change func(tags map[string]string)) {
	t.Helper()
	require.NoError(t, a.Retag(names.Stack("demo", stack), change))
	a.Settle()
}

func tags(a *harness.Account, stack string) map[string]string {
	found := map[string]string{}
	for _, s := range a.CloudFormation.Stacks() {
		if s.StackName == names.Stack("demo", stack) {
			for _, tag := range s.Tags {
				found[tag.Key] = tag.Value
			}
		}
	}
	return found
}

// converges counts the executions of the converge machine.
func converges(a *harness.Account) (n int) {
	for _, x := range a.StepFunctions.Executions() {
		if x.MachineName == "drover-converge" {
			n++
		}
	}
	return n
}

func TestAuditWithoutFindingsChangesNothing(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before, mark := a.Status("demo"), a.Calls.Mark()
	audit(t, a)
	for _, call := range a.Calls.Since(mark) {
		require.False(t, call.Mutating, call.Action)
	}
	require.Equal(t, before, a.Status("demo"))
}

// An audit reads the status of each cluster. It reads a spec that has changed or is young, each release once, and rolls and upgrades of
// clusters that have any.
func TestReadsOfAnAudit(t *testing.T) {
	a := harness.Start(t)
	clusters := []string{"demo", "shop", "docs"}
	for _, cluster := range clusters {
		a.Cluster(cluster, "")
	}
	reads := func() (keys []string) {
		t.Helper()
		mark := a.Calls.Mark()
		require.NoError(t, a.AuditNow())
		for _, call := range a.Calls.Since(mark) {
			// Each sweep reads releases and channels that are younger than a minute: another upload may have followed in the same second.
			young := strings.Contains(call.Resource, names.ReleaseStatuses) || strings.Contains(call.Resource, "/"+names.ReleaseSpecs)
			if call.Action == "GetObject" && harness.CalledBy(call) == "sweep" && !young {
				_, key, _ := strings.Cut(strings.TrimPrefix(call.Resource, "arn:aws:s3:::"), "/")
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		return keys
	}
	var statuses []string
	for _, cluster := range clusters {
		statuses = append(statuses, names.Status(cluster))
	}
	slices.Sort(statuses)
	later(a, 2*time.Minute) // younger objects are not cached
	reads()                 // fills the cache
	require.Equal(t, statuses, reads())

	a.Upload(names.ClusterSpec("shop"), harness.Spec("shop", "  tags: {team: b}\n"))
	a.Settle()
	changed := append([]string{names.ClusterSpec("shop")}, statuses...)
	slices.Sort(changed)
	require.Equal(t, changed, reads())
	require.Equal(t, statuses, reads())
}

func TestAuditFailureOfOneClusterDelaysNoOther(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/alpha.yaml", harness.Spec("alpha", ""))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	deleteStack(t, a, "pool-a")
	a.OnCall(func(call endpoint.Call) error {
		if strings.HasSuffix(call.Resource, "status/clusters/alpha.json") && harness.CalledBy(call) == "sweep" {
			return &wire.Error{Code: "AccessDenied", Message: "not this one", Status: 403}
		}
		return nil
	})
	require.ErrorContains(t, a.AuditNow(), "auditing alpha")
	a.Settle()
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
}

// The audit does not repair paused clusters.
func TestPausedClustersAreLeftAlone(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n"))
	a.Settle()
	deleteStack(t, a, "pool-a")
	before := converges(a)
	audit(t, a)
	require.Equal(t, before, converges(a))
	require.NotContains(t, a.Stacks("demo"), "pool-a")
}
