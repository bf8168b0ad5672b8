package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/leftover"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// account is a fake of everything that the clean function reads: the spec, the state and what Kubernetes created in the account.
type account struct {
	// spec is the error of reading the spec, nil if it exists.
	spec error
	// leases has the results of CheckLease in order. The last one is repeated.
	leases []error
	status *status.Status
	// unreadable and unwritable are the errors of reading and of writing the status.
	unreadable, unwritable error
	eks                    bool
	eksError               error
	found                  []leftover.Resource
	findError              error
	// outcomes of removals, by resource. The default is Removed.
	outcomes   map[string]leftover.Outcome
	failing    map[string]error
	kept       []string
	keptError  error
	removed    []string
	keptCalls  int
	leaseCalls int
}

func (a *account) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{}, a.spec
}

func (a *account) CheckLease(_ context.Context, cluster, execution string, fence int64) error {
	if cluster != "demo" || execution != "x" || fence != 7 {
		return fmt.Errorf("unexpected holder: %s %s %d", cluster, execution, fence)
	}
	i := min(a.leaseCalls, len(a.leases)-1)
	a.leaseCalls++
	return a.leases[i]
}

func (a *account) Status(context.Context, string) (*status.Cluster, error) {
	c := status.New("demo")
	switch {
	case a.unreadable != nil:
		return c, a.unreadable
	case a.status == nil:
		return c, store.ErrNotFound
	}
	c.Status = *a.status
	return c, nil
}

func (a *account) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	if a.unwritable != nil {
		return a.unwritable
	}
	if a.status == nil {
		a.status = &status.Status{}
	}
	change(a.status)
	return nil
}

func (a *account) Exists(_ context.Context, eksCluster string) (bool, error) {
	if eksCluster != "drover-demo" {
		return false, fmt.Errorf("unexpected cluster %s", eksCluster)
	}
	return a.eks, a.eksError
}

func (a *account) Find(context.Context, string) ([]leftover.Resource, error) {
	return a.found, a.findError
}

func (a *account) Remove(_ context.Context, cluster string, r leftover.Resource) (leftover.Outcome, string, error) {
	if err := a.failing[r.String()]; err != nil || cluster != "demo" {
		return leftover.Remains, "", err
	}
	a.removed = append(a.removed, r.String())
	return a.outcomes[r.String()], "in use", nil
}

func (a *account) Kept(context.Context, string) ([]string, error) {
	a.keptCalls++
	return a.kept, a.keptError
}

// newAccount returns an account whose cluster's spec was deleted. Kubernetes created a network interface and two
// volumes. The survey retains vol-b.
func newAccount() *account {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return &account{
		spec: store.ErrNotFound, leases: []error{nil},
		status: &status.Status{Phase: status.Deleting, Fence: 7, Deletion: &status.Deletion{Surveyed: true, Retain: []string{"vol-b"}}},
		found: []leftover.Resource{
			{Kind: "network interface", ID: "eni-a"},
			{Kind: "volume", ID: "vol-a"},
			{Kind: "volume", ID: "vol-b"},
		},
	}
}

func (a *account) clean(t *testing.T, last bool) (events.CleanResult, error) {
	h := &Handler{Specs: a, State: a, Clusters: a, Leftovers: a}
	return h.Handle(t.Context(), events.CleanRequest{Cluster: "demo", Execution: "x", Fence: 7, Last: last})
}

// Volumes hold data. Only a survey of the cluster's API decides which may be deleted.
func TestCleanVolumes(t *testing.T) {
	const card, a, b = "network interface eni-a", "volume vol-a", "volume vol-b"
	for name, c := range map[string]struct {
		status        *status.Status
		removed, kept []string
	}{
		"deletes those that the survey does not retain": {
			&status.Status{Fence: 7, Deletion: &status.Deletion{Surveyed: true, Retain: []string{"vol-b"}}}, []string{card, a}, []string{b},
		},
		"deletes all if the survey retains none": {
			&status.Status{Fence: 7, Deletion: &status.Deletion{Surveyed: true}}, []string{card, a, b}, nil,
		},
		"keeps all if there was no survey": {&status.Status{Fence: 7}, []string{card}, []string{a, b}},
		"keeps all if the survey did not finish": {
			&status.Status{Fence: 7, Deletion: &status.Deletion{Removed: []string{"volume vol-0"}}}, []string{card}, []string{a, b},
		},
		"keeps all of a cluster without a status": {nil, []string{card}, []string{a, b}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccount()
			w.status = c.status
			result, err := w.clean(t, false)
			require.NoError(t, err)
			require.Equal(t, events.CleanResult{Outcome: events.CleanDone}, result)
			require.Equal(t, c.removed, w.removed)
			require.Equal(t, c.kept, w.status.Deletion.Kept)
			require.Subset(t, w.status.Deletion.Removed, c.removed)
		})
	}
	t.Run("keeps all if the status cannot be read", func(t *testing.T) {
		w := newAccount()
		w.unreadable = errors.New("AccessDenied")
		_, err := w.clean(t, false)
		require.ErrorIs(t, err, w.unreadable)
		require.Empty(t, w.removed)
	})
}

func TestCleanRemovesNothing(t *testing.T) {
	taken := &fault.LeaseLost{Cause: errors.New("taken over")}
	for name, c := range map[string]struct {
		change  func(*account)
		outcome events.CleanOutcome
		err     string
	}{
		"when another execution has the lease":         {func(a *account) { a.leases = []error{taken} }, "", "taken over"},
		"when the lease is lost just before a removal": {func(a *account) { a.leases = []error{nil, taken} }, "", "taken over"},
		"when the spec exists again":                   {func(a *account) { a.spec = nil }, events.CleanSuperseded, ""},
		"when the spec exists again, but is too large": {func(a *account) { a.spec = &store.TooLarge{} }, events.CleanSuperseded, ""},
		"when the spec cannot be read": {func(a *account) {
			a.spec = errors.New("AccessDenied")
		}, events.CleanSuperseded, "AccessDenied"},
		"while the EKS cluster exists":    {func(a *account) { a.eks = true }, "", "EKS cluster drover-demo is there"},
		"when EKS cannot be read":         {func(a *account) { a.eksError = errors.New("throttled") }, "", "throttled"},
		"when leftovers cannot be listed": {func(a *account) { a.findError = errors.New("no index") }, "", "no index"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccount()
			c.change(w)
			result, err := w.clean(t, false)
			require.Empty(t, w.removed)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.outcome, result.Outcome)
		})
	}
	t.Run("and names the fault while the EKS cluster exists", func(t *testing.T) {
		w := newAccount()
		w.eks = true
		_, err := w.clean(t, false)
		require.Equal(t, "LeftoversRemain", fault.NameOf(err))
	})
}

func TestCleanChecksTheLeaseBeforeEachRemoval(t *testing.T) {
	w := newAccount()
	w.leases = []error{nil, nil, &fault.LeaseLost{Cause: errors.New("taken over")}}
	_, err := w.clean(t, false)
	require.Equal(t, "LeaseLost", fault.NameOf(err))
	require.Equal(t, []string{"network interface eni-a"}, w.removed, "the lease was lost afterwards")
	require.Equal(t, w.removed, w.status.Deletion.Removed, "the status has it")
}

func TestCleanReports(t *testing.T) {
	t.Run("what remains, with the reason, and waits", func(t *testing.T) {
		w := newAccount()
		w.outcomes = map[string]leftover.Outcome{"network interface eni-a": leftover.Remains, "volume vol-a": leftover.Absent}
		result, err := w.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, events.CleanResult{Outcome: events.CleanWaiting, Message: "network interface eni-a: in use"}, result)
		require.Equal(t, []string{"network interface eni-a: in use"}, w.status.Deletion.Remaining)
		require.Empty(t, w.status.Deletion.Removed, "drover did not remove what was absent")
	})
	t.Run("ten of many", func(t *testing.T) {
		w := newAccount()
		w.found, w.outcomes = nil, map[string]leftover.Outcome{}
		for i := range 12 {
			r := leftover.Resource{Kind: "security group", ID: fmt.Sprintf("sg-%02d", i)}
			w.found, w.outcomes[r.String()] = append(w.found, r), leftover.Remains
		}
		result, err := w.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, events.CleanWaiting, result.Outcome)
		require.Len(t, strings.Split(result.Message, "\n"), 11)
		require.True(t, strings.HasSuffix(result.Message, "\nand 2 more"), result.Message)
		require.Len(t, w.status.Deletion.Remaining, 12)
	})
	t.Run("a failed removal, and the removals before it", func(t *testing.T) {
		w := newAccount()
		w.failing = map[string]error{"volume vol-a": errors.New("InternalError")}
		_, err := w.clean(t, false)
		require.ErrorContains(t, err, "InternalError")
		require.Equal(t, []string{"network interface eni-a"}, w.status.Deletion.Removed)
	})
	t.Run("what earlier calls removed, once", func(t *testing.T) {
		w := newAccount()
		w.status.Deletion.Removed = []string{"volume vol-0", "volume vol-a"}
		_, err := w.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, []string{"network interface eni-a", "volume vol-0", "volume vol-a"}, w.status.Deletion.Removed)
		require.True(t, w.status.Deletion.Surveyed, "the survey stays for the next call")
		require.Equal(t, []string{"vol-b"}, w.status.Deletion.Retain)
	})
	t.Run("an error of writing the status", func(t *testing.T) {
		w := newAccount()
		w.unwritable = errors.New("AccessDenied")
		_, err := w.clean(t, false)
		require.ErrorIs(t, err, w.unwritable)
	})
	t.Run("nothing if a later holder has written the status", func(t *testing.T) {
		w := newAccount()
		w.status.Fence = 8
		_, err := w.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, &status.Deletion{Surveyed: true, Retain: []string{"vol-b"}}, w.status.Deletion)
	})
	t.Run("that nothing remains", func(t *testing.T) {
		w := newAccount()
		w.found, w.status.Deletion.Remaining, w.status.Deletion.Kept = nil, []string{"network interface eni-a: in use"}, []string{"volume vol-b"}
		_, err := w.clean(t, false)
		require.NoError(t, err)
		require.Empty(t, w.status.Deletion.Remaining)
		require.Empty(t, w.status.Deletion.Kept)
	})
	t.Run("nothing if a cluster has no leftovers", func(t *testing.T) {
		w := newAccount()
		w.found, w.status.Deletion = nil, nil
		_, err := w.clean(t, false)
		require.NoError(t, err)
		require.Nil(t, w.status.Deletion)
	})
}

func TestCleanListsRetainedResources(t *testing.T) {
	const message = "role r: deletion protection kept it when its stack was deleted: delete it"
	t.Run("once the last stack is deleted", func(t *testing.T) {
		w := newAccount()
		w.kept = []string{"role r"}
		result, err := w.clean(t, true)
		require.NoError(t, err)
		require.Equal(t, events.CleanResult{Outcome: events.CleanWaiting, Message: message}, result)
		require.Equal(t, []string{message}, w.status.Deletion.Remaining)
	})
	t.Run("not while a stack may own it", func(t *testing.T) {
		w := newAccount()
		w.kept = []string{"role r"}
		result, err := w.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, events.CleanDone, result.Outcome)
		require.Zero(t, w.keptCalls)
	})
	t.Run("and fails if they cannot be listed", func(t *testing.T) {
		w := newAccount()
		w.keptError = errors.New("no index")
		_, err := w.clean(t, true)
		require.ErrorIs(t, err, w.keptError)
	})
	t.Run("not after a failed removal", func(t *testing.T) {
		w := newAccount()
		w.failing = map[string]error{"volume vol-a": errors.New("InternalError")}
		_, err := w.clean(t, true)
		require.ErrorContains(t, err, "InternalError")
		require.Zero(t, w.keptCalls)
	})
}
