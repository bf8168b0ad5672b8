package handler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/leftover"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// Volumes hold data. Only the cluster's API decides which may be deleted.
func TestCleanVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		deletion      *status.Deletion
		removed, kept []string
	}{
		"deletes those that the list does not have": {
			&status.Deletion{RetainListed: true, Retain: []string{"vol-b"}}, []string{card, volumeA}, []string{volumeB},
		},
		"deletes all if the list is empty": {&status.Deletion{RetainListed: true}, []string{card, volumeA, volumeB}, nil},
		"keeps all if there is no list":    {nil, []string{card}, []string{volumeA, volumeB}},
		"keeps all if the list was not made": {
			&status.Deletion{Removed: []string{"volume vol-0"}}, []string{card}, []string{volumeA, volumeB},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t)
			a.set(t, func(s *status.Status) { s.Deletion = c.deletion })
			result, err := a.clean(t, false)
			require.NoError(t, err)
			require.Equal(t, events.CleanResult{Outcome: events.CleanDone}, result)
			require.Equal(t, c.removed, a.removed)
			require.Equal(t, c.kept, a.deletion(t).Retained)
			require.Subset(t, a.deletion(t).Removed, c.removed)
		})
	}
	t.Run("keeps all of a cluster without a status", func(t *testing.T) {
		a := newAccount(t)
		a.objects.Delete(names.Status("demo"))
		_, err := a.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, []string{card}, a.removed)
		require.Equal(t, []string{volumeA, volumeB}, a.deletion(t).Retained)
	})
	t.Run("keeps all if the status cannot be read", func(t *testing.T) {
		a := newAccount(t)
		a.refuse("Get")
		_, err := a.clean(t, false)
		require.Equal(t, "AccessDenied", fault.Code(err))
		require.Empty(t, a.removed)
	})
}

func TestCleanRemovesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*account)
		outcome events.CleanOutcome
		err     string
	}{
		"when another execution has the lease":         {func(a *account) { a.takeOver(t) }, "", "taken over by y"},
		"when its lease has an older number":           {func(a *account) { a.fence-- }, "", "taken over"},
		"when the lease is lost just before a removal": {func(a *account) { a.afterFind = func() { a.takeOver(t) } }, "", "taken over by y"},
		"when the lease cannot be read":                {func(a *account) { a.objects.Refuse("Get", "SlowDown") }, "", "SlowDown"},
		"when the spec exists again": {
			func(a *account) { a.specs.Upload(names.ClusterSpec("demo"), "spec") }, events.CleanSuperseded, "",
		},
		"when the spec exists again, but is too large": {func(a *account) {
			a.specs.Upload(names.ClusterSpec("demo"), strings.Repeat("#", api.MaxFile+1))
		}, events.CleanSuperseded, ""},
		"when the spec cannot be read":    {func(a *account) { a.specs.Refuse("Get", "AccessDenied") }, "", "AccessDenied"},
		"while the EKS cluster exists":    {func(a *account) { a.eks = true }, "", "EKS cluster drover-demo still exists"},
		"when EKS cannot be read":         {func(a *account) { a.eksError = errors.New("throttled") }, "", "throttled"},
		"when leftovers cannot be listed": {func(a *account) { a.findError = errors.New("no index") }, "", "no index"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t)
			c.change(a)
			result, err := a.clean(t, false)
			require.Empty(t, a.removed)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.outcome, result.Outcome)
		})
	}
	t.Run("of another cluster's spec", func(t *testing.T) {
		a := newAccount(t)
		a.specs.Upload(names.ClusterSpec("other"), "spec")
		result, err := a.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, events.CleanDone, result.Outcome)
	})
	t.Run("names the fault while the EKS cluster exists", func(t *testing.T) {
		a := newAccount(t)
		a.eks = true
		_, err := a.clean(t, false)
		require.Equal(t, "LeftoversRemain", fault.NameOf(err))
	})
}

func TestCleanChecksTheLeaseBeforeEachRemoval(t *testing.T) {
	a := newAccount(t)
	a.afterRemoval = func() { a.takeOver(t) }
	_, err := a.clean(t, false)
	require.Equal(t, "LeaseLost", fault.NameOf(err))
	require.Equal(t, []string{card}, a.removed, "the lease was lost afterwards")
	require.Equal(t, a.removed, a.deletion(t).Removed, "the status has it")
}

func TestCleanReports(t *testing.T) {
	t.Run("what remains, with the reason, and waits", func(t *testing.T) {
		a := newAccount(t)
		a.outcomes = map[string]leftover.Outcome{card: leftover.Remains, volumeA: leftover.Absent}
		result, err := a.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, events.CleanResult{Outcome: events.CleanWaiting, Message: card + ": in use"}, result)
		require.Equal(t, []string{card + ": in use"}, a.deletion(t).Remaining)
		require.Empty(t, a.deletion(t).Removed, "drover did not remove what was absent")
	})
	for count, last := range map[int]string{9: "sg-08: in use", 10: "sg-09: in use", 11: "and 1 more", 12: "and 2 more"} {
		t.Run(fmt.Sprintf("at most ten of %d", count), func(t *testing.T) {
			a := newAccount(t)
			a.found, a.outcomes = nil, map[string]leftover.Outcome{}
			for i := range count {
				r := leftover.Resource{Kind: "security group", ID: fmt.Sprintf("sg-%02d", i)}
				a.found, a.outcomes[r.String()] = append(a.found, r), leftover.Remains
			}
			result, err := a.clean(t, false)
			require.NoError(t, err)
			require.Equal(t, events.CleanWaiting, result.Outcome)
			lines := strings.Split(result.Message, "\n")
			require.Len(t, lines, min(count, 11))
			require.True(t, strings.HasSuffix(lines[len(lines)-1], last), result.Message)
			require.Len(t, a.deletion(t).Remaining, count)
		})
	}
	t.Run("a failed removal, and the removals before it", func(t *testing.T) {
		a := newAccount(t)
		a.failing = map[string]error{volumeA: errors.New("InternalError")}
		_, err := a.clean(t, false)
		require.ErrorContains(t, err, "InternalError")
		require.Equal(t, []string{card}, a.deletion(t).Removed)
	})
	t.Run("what earlier calls removed, once", func(t *testing.T) {
		a := newAccount(t)
		a.set(t, func(s *status.Status) { s.Deletion.Removed = []string{"volume vol-0", volumeA} })
		_, err := a.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, []string{card, "volume vol-0", volumeA}, a.deletion(t).Removed)
		require.True(t, a.deletion(t).RetainListed, "the list stays for the next call")
		require.Equal(t, []string{"vol-b"}, a.deletion(t).Retain)
	})
	t.Run("as much removed as kept", func(t *testing.T) {
		a := newAccount(t)
		a.set(t, func(s *status.Status) { s.Deletion = nil })
		a.found = a.found[:2]
		_, err := a.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, &status.Deletion{Removed: []string{card}, Retained: []string{volumeA}}, a.deletion(t))
	})
	t.Run("as much removed as remains", func(t *testing.T) {
		a := newAccount(t)
		a.set(t, func(s *status.Status) { s.Deletion = nil })
		a.found = []leftover.Resource{{Kind: "security group", ID: "sg-a"}, {Kind: "network interface", ID: "eni-a"}}
		a.outcomes = map[string]leftover.Outcome{card: leftover.Remains}
		_, err := a.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, &status.Deletion{Removed: []string{"security group sg-a"}, Remaining: []string{card + ": in use"}}, a.deletion(t))
	})
	t.Run("an error of writing the status", func(t *testing.T) {
		a := newAccount(t)
		a.refuse("Put")
		result, err := a.clean(t, false)
		require.Equal(t, "AccessDenied", fault.Code(err))
		require.Empty(t, result)
	})
	t.Run("the errors of a removal and of writing the status", func(t *testing.T) {
		a := newAccount(t)
		a.failing = map[string]error{volumeA: errors.New("InternalError")}
		a.refuse("Put")
		_, err := a.clean(t, false)
		require.ErrorContains(t, err, "InternalError")
		require.ErrorContains(t, err, "AccessDenied")
	})
	t.Run("not over the status of a later holder", func(t *testing.T) {
		a := newAccount(t)
		a.set(t, func(s *status.Status) { s.Fence = a.fence + 1 })
		_, err := a.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, &status.Deletion{RetainListed: true, Retain: []string{"vol-b"}}, a.deletion(t))
	})
	t.Run("that nothing remains", func(t *testing.T) {
		a := newAccount(t)
		a.found = nil
		a.set(t, func(s *status.Status) {
			s.Deletion.Remaining, s.Deletion.Retained = []string{card + ": in use"}, []string{volumeB}
		})
		_, err := a.clean(t, false)
		require.NoError(t, err)
		require.Empty(t, a.deletion(t).Remaining)
		require.Empty(t, a.deletion(t).Retained)
	})
	t.Run("nothing if a cluster has no leftovers", func(t *testing.T) {
		a := newAccount(t)
		a.found = nil
		a.set(t, func(s *status.Status) { s.Deletion = nil })
		_, err := a.clean(t, false)
		require.NoError(t, err)
		require.Nil(t, a.deletion(t))
	})
}

func TestCleanListsRetainedResources(t *testing.T) {
	const message = "role r: deletion protection retained it when its stack was deleted: delete it"
	t.Run("once the last stack is deleted", func(t *testing.T) {
		a := newAccount(t)
		a.kept = []string{"role r"}
		result, err := a.clean(t, true)
		require.NoError(t, err)
		require.Equal(t, events.CleanResult{Outcome: events.CleanWaiting, Message: message}, result)
		require.Equal(t, []string{message}, a.deletion(t).Remaining)
	})
	t.Run("not while a stack may own it", func(t *testing.T) {
		a := newAccount(t)
		a.kept = []string{"role r"}
		result, err := a.clean(t, false)
		require.NoError(t, err)
		require.Equal(t, events.CleanDone, result.Outcome)
		require.Zero(t, a.keptCalls)
	})
	t.Run("fails if they cannot be listed", func(t *testing.T) {
		a := newAccount(t)
		a.keptError = errors.New("no index")
		_, err := a.clean(t, true)
		require.ErrorIs(t, err, a.keptError)
	})
	t.Run("not after a failed removal", func(t *testing.T) {
		a := newAccount(t)
		a.failing = map[string]error{volumeA: errors.New("InternalError")}
		_, err := a.clean(t, true)
		require.ErrorContains(t, err, "InternalError")
		require.Zero(t, a.keptCalls)
	})
}
