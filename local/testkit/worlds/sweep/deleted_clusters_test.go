package sweep_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// A sweep does not read the statuses of deleted clusters again.
func TestStatusesOfClustersThatAreGoneAreReadOnce(t *testing.T) {
	a := harness.Start(t)
	const many = 30
	is := func(n int, version string) {
		require.NoError(t, a.State().UpdateStatus(t.Context(), fmt.Sprintf("deleted%d", n), func(s *status.Status) {
			s.Phase, s.ObservedVersion = status.Deleted, version
		}))
	}
	for n := range many {
		is(n, "")
	}
	reads := func() (n int) {
		mark := a.Calls.Mark()
		require.NoError(t, a.SweepNow())
		for _, call := range a.Calls.Since(mark) {
			if call.Action == "GetObject" && strings.Contains(call.Resource, names.Statuses) {
				n++
			}
		}
		return n
	}
	require.Equal(t, many, reads())
	require.Zero(t, reads())
	kept, err := a.State().List(t.Context(), names.Statuses)
	require.NoError(t, err)
	require.Len(t, kept, many, "statuses outlive their clusters")
	// The status of one names a spec that the bucket does not hold. The sweep handles the deletion.
	is(7, "an upload")
	require.NotZero(t, reads())
	require.Empty(t, a.Status("deleted7").ObservedVersion)
	require.Equal(t, 1, reads())
	require.Zero(t, reads())
}

// An operator's deletion of the stack is in flight. CloudFormation joins drover's deletion to it, and its events
// carry the operator's token.
func TestOperationThatNeverBeganIsRetried(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  deletionProtection: false\n")
	asked := make(chan struct{})
	var failed, theirs atomic.Bool
	a.OnResource(func(step string, r resource.Request) error {
		if step != "delete" || r.Type != "AWS::AutoScaling::AutoScalingGroup" || failed.Swap(true) {
			return nil
		}
		<-asked
		return &wire.Error{Code: "InternalFailure", Message: "not now", Status: 400}
	})
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "DeleteStack" && strings.Contains(call.Resource, "pool-a") && harness.CalledBy(call) == "change" && !theirs.Swap(true) {
			_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: "drover-demo-pool-a"})
			require.NoError(t, err)
		}
		return nil
	})
	a.Remove("clusters/demo.yaml", "")
	a.Until("both deletions are requested", func() bool {
		_, err := a.State().Waiter(t.Context(), "drover-demo-pool-a")
		return theirs.Load() && err == nil && a.Running() == 0
	})
	close(asked)
	a.Until("the operator's deletion has failed", func() bool { return a.Stacks("demo")["pool-a"] == "DELETE_FAILED" && a.Still() })
	require.NoError(t, a.SweepNow())
	require.True(t, a.Still(), "it may be about to begin")
	later(a, 16*time.Minute)
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Equal(t, status.Deleted, a.Status("demo").Phase, a.Status("demo").Message)
	require.Empty(t, a.Stacks("demo"))
}

// The sweep deletes the status of a deleted cluster after 30 days. It keeps the status of a cluster with leftovers, and one that was
// written since.
func TestDeletedClustersAreForgotten(t *testing.T) {
	a := harness.Start(t)
	set := func(cluster string, change func(*status.Status)) {
		require.NoError(t, a.State().UpdateStatus(t.Context(), cluster, change))
	}
	set("deleted", func(s *status.Status) { s.Phase = status.Deleted })
	set("never", func(s *status.Status) {
		s.Phase = status.Stopped
		s.Set(status.Condition{Type: status.SpecAccepted, Status: "False", Reason: status.ReasonSpecAbsent}, time.Now())
	})
	set("protected", func(s *status.Status) {
		s.Phase = status.Stopped
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: status.ReasonDeletionProtected}, time.Now())
	})
	set("new", func(s *status.Status) { s.Phase = status.Deleted })
	there := func() (clusters []string) {
		entries, err := a.State().List(t.Context(), names.Statuses)
		require.NoError(t, err)
		for _, entry := range entries {
			clusters = append(clusters, strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Statuses), ".json"))
		}
		return clusters
	}
	later(a, 29*24*time.Hour)
	require.NoError(t, a.SweepNow())
	require.Len(t, there(), 4)
	later(a, 31*24*time.Hour)
	// A cluster of the same name is made between the listing and the deletion.
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "DeleteObject" && strings.HasSuffix(call.Resource, names.Status("new")) {
			set("new", func(s *status.Status) { s.Phase = status.Pending })
		}
		return nil
	})
	require.NoError(t, a.SweepNow())
	require.Equal(t, []string{"new", "protected"}, there())
	a.OnCall(nil)
	mark := a.Calls.Mark()
	require.NoError(t, a.SweepNow())
	require.NoError(t, a.SweepNow())
	reads := 0
	for _, call := range a.Calls.Since(mark) {
		if call.Action == "GetObject" && strings.HasSuffix(call.Resource, names.Status("protected")) {
			reads++
		}
	}
	require.Zero(t, reads, "what stays is read once")
}
