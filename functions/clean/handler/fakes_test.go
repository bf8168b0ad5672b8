package handler

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/leftover"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

// account is an account with a cluster that the execution x deletes. It implements Clusters and Leftovers.
type account struct {
	specs, objects *storetest.Bucket
	state          *store.State
	// fence is the number of x's lease.
	fence    int64
	eks      bool
	eksError error
	// found are what Kubernetes created. outcomes and failing are the results of removals, by resource. The default outcome is Removed.
	found     []leftover.Resource
	findError error
	outcomes  map[string]leftover.Outcome
	failing   map[string]error
	kept      []string
	keptError error
	// afterFind and afterRemoval happen at the end of such a call.
	afterFind, afterRemoval func()

	removed   []string
	keptCalls int
}

const (
	card    = "network interface eni-a"
	volumeA = "volume vol-a"
	volumeB = "volume vol-b"
)

// newAccount returns an account whose cluster's spec was deleted. Kubernetes created a network interface and two volumes. The list
// retains vol-b.
func newAccount(t *testing.T) *account {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	a := &account{
		specs: storetest.NewBucket("specs"), objects: storetest.NewBucket("state"),
		found:     []leftover.Resource{{Kind: "network interface", ID: "eni-a"}, {Kind: "volume", ID: "vol-a"}, {Kind: "volume", ID: "vol-b"}},
		afterFind: func() {}, afterRemoval: func() {},
	}
	a.state = store.NewState(a.objects, store.Silent, func() time.Time { return time.Unix(1000, 0) })
	lease, err := a.state.Acquire(t.Context(), "demo", store.Lease{Fence: 6}, "x")
	require.NoError(t, err)
	a.fence = lease.Fence
	a.set(t, func(s *status.Status) {
		s.Phase, s.Fence, s.Deletion = status.Deleting, a.fence, &status.Deletion{RetainListed: true, Retain: []string{"vol-b"}}
	})
	return a
}

func (a *account) set(t *testing.T, change func(*status.Status)) {
	t.Helper()
	require.NoError(t, a.state.UpdateStatus(t.Context(), "demo", change))
}

// deletion is the part of the status that shows the deletion.
func (a *account) deletion(t *testing.T) *status.Deletion {
	t.Helper()
	document, err := a.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	return document.Status.Deletion
}

// takeOver takes the lease for another execution, after x has ended.
func (a *account) takeOver(t *testing.T) {
	t.Helper()
	lease, err := a.state.Lease(t.Context(), "demo")
	require.NoError(t, err)
	_, err = a.state.Acquire(t.Context(), "demo", lease, "y")
	require.NoError(t, err)
}

// refuse refuses the calls of an operation on the status.
func (a *account) refuse(operation string) {
	a.objects.OnCall = func(call storetest.Call) error {
		if call.Operation == operation && call.Key == names.Status("demo") {
			return storetest.Refusal("AccessDenied")
		}
		return nil
	}
}

func (a *account) Exists(_ context.Context, eksCluster string) (bool, error) {
	if eksCluster != "drover-demo" {
		return false, fmt.Errorf("unexpected cluster %s", eksCluster)
	}
	return a.eks, a.eksError
}

func (a *account) Find(_ context.Context, cluster string) ([]leftover.Resource, error) {
	if cluster != "demo" {
		return nil, fmt.Errorf("unexpected cluster %s", cluster)
	}
	a.afterFind()
	return a.found, a.findError
}

func (a *account) Remove(_ context.Context, cluster string, r leftover.Resource) (leftover.Outcome, string, error) {
	if cluster != "demo" {
		return leftover.Remains, "", fmt.Errorf("unexpected cluster %s", cluster)
	}
	if err := a.failing[r.String()]; err != nil {
		return leftover.Remains, "", err
	}
	a.removed = append(a.removed, r.String())
	a.afterRemoval()
	return a.outcomes[r.String()], "in use", nil
}

func (a *account) RetainedByStacks(context.Context, string) ([]string, error) {
	a.keptCalls++
	return a.kept, a.keptError
}

func (a *account) clean(t *testing.T, last bool) (events.CleanResult, error) {
	h := &Handler{Specs: a.specs, State: a.state, Clusters: a, Leftovers: a}
	return h.Handle(t.Context(), events.CleanRequest{Cluster: "demo", Execution: "x", Fence: a.fence, Last: last})
}
