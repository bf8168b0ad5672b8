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

// later has the sweep, and it alone, live that much later.
func later(a *harness.Account, by time.Duration) {
	a.Functions.Sweep.Now = func() time.Time { return time.Now().Add(by) }
}

// audit runs the audit and what it starts.
func audit(t *testing.T, a *harness.Account) {
	t.Helper()
	require.NoError(t, a.AuditNow())
	a.Settle()
}

// deleted deletes a stack by hand.
func deleted(t *testing.T, a *harness.Account, stack string) {
	t.Helper()
	_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: names.Stack("demo", stack)})
	require.NoError(t, err)
	a.Settle()
}

// retagged changes the tags of a stack by hand.
func retagged(t *testing.T, a *harness.Account, stack string, change func(tags map[string]string)) {
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

// converges is how many executions of the converge machine there were.
func converges(a *harness.Account) (n int) {
	for _, x := range a.States.Executions() {
		if x.MachineName == "drover-converge" {
			n++
		}
	}
	return n
}

func TestAnAuditThatFindsNothingChangesNothing(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before, mark := a.Status("demo"), a.Calls.Mark()
	audit(t, a)
	for _, call := range a.Calls.Since(mark) {
		require.False(t, call.Mutating, call.Action)
	}
	require.Equal(t, before, a.Status("demo"))
}

// Of each cluster an audit reads the status. Specs are read when they have changed or are young, releases once for
// all, rolls and upgrades of clusters

// that have any.
func TestWhatAnAuditReads(t *testing.T) {
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
			// What was uploaded within the last minute may be another by now: releases and channels are looked at in each sweep until then.
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
	later(a, 2*time.Minute) // what is younger is not remembered
	reads()                 // what it has not read since the last of them was made
	require.Equal(t, statuses, reads())

	a.Upload(names.ClusterSpec("shop"), harness.Spec("shop", "  tags: {team: b}\n"))
	a.Settle()
	changed := append([]string{names.ClusterSpec("shop")}, statuses...)
	slices.Sort(changed)
	require.Equal(t, changed, reads())
	require.Equal(t, statuses, reads())
}

// A new drover renders something else from the same spec: that is for people to roll out.

// A change set by which a stack was to be created, and that nobody executed, leaves a stack in review.

// What repairing does not mend is not repaired by every audit.

// What is only told, for however long, does not put off what can be repaired.

// Whoever takes the tags of a pool away that was rolled by hand takes the time of that with them. It is put back, and no node is replaced.

// A change that was taken back would replace nodes, and take them back, with every try.

// Somebody deleted the waiter: no event and no sweep would ever resume the step.
func TestWhatAnAuditCannotDoForOneClusterHoldsUpNoOther(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/alpha.yaml", harness.Spec("alpha", ""))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	deleted(t, a, "pool-a")
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

// Clusters that are paused or failed are nobody's to repair.
func TestPausedClustersAreLeftAlone(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n"))
	a.Settle()
	deleted(t, a, "pool-a")
	before := converges(a)
	audit(t, a)
	require.Equal(t, before, converges(a))
	require.NotContains(t, a.Stacks("demo"), "pool-a")
}
