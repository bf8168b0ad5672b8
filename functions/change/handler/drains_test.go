package handler

// How long the first batch of a roll waits for drains, what the status shows, and when it passes them.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// rolls returns an account whose change replaces the nodes of a pool with two instances in service, while i-old is being drained. The drain
// may take 75 minutes.
func rolls(t *testing.T) *account {
	a := accountWithPool(t)
	a.change.Tags = map[string]string{"a": "2"}
	a.change.Pace.DrainSeconds = 3600
	a.changes = []stack.ResourceChange{{Action: stack.ActionModify, Type: "AWS::EC2::LaunchTemplate"}}
	a.stacks[a.change.StackName] = deployedFor(2)
	a.group = pool.Group{Desired: 2, Instances: []pool.Instance{
		{ID: "i-1", State: pool.InService}, {ID: "i-2", State: pool.InService}, {ID: "i-old", State: pool.TerminatingWait},
	}}
	return a
}

// needsNode lets a pod of the drained instance have no other node.
func needsNode(t *testing.T, a *account) {
	a.amend(t, func(s *status.Status) {
		s.Nodes = []status.Node{{
			Instance: "i-old", State: status.NodeBlocked, Pending: []events.PendingPod{{Pod: "shop/web", Why: "no node has room"}},
		}}
	})
}

func TestWaitForDrains(t *testing.T) {
	ago := func(d time.Duration) map[string]time.Time { return map[string]time.Time{"i-old": noon.Add(-d)} }
	for name, test := range map[string]struct {
		waited  int64
		began   map[string]time.Time
		pause   int64
		message string
		until   time.Time
	}{
		"waits while an instance is being drained": {
			began: ago(10 * time.Minute), pause: 10, message: "nodes are replaced when i-old has been drained", until: noon.Add(65 * time.Minute),
		},
		"waits longer when it has waited long": {
			waited: 40 * 60, pause: 300, message: "nodes are replaced when i-old has been drained", until: noon.Add(35 * time.Minute),
		},
		"waits no longer than a drain may take": {
			began: ago(74*time.Minute + 55*time.Second), pause: 5, message: "nodes are replaced when i-old has been drained",
			until: noon.Add(5 * time.Second),
		},
		"proceeds when the drain took too long": {
			began:   ago(75*time.Minute + 500*time.Millisecond),
			message: "nodes are replaced although i-old is still being drained: the wait took 1h15m0s", until: time.Time{},
		},
		"proceeds when the drain may take no second longer": {
			began: ago(75 * time.Minute), message: "nodes are replaced although i-old is still being drained: the wait took 1h15m0s",
			until: time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := rolls(t)
			*a.waited, a.began = test.waited, test.began
			require.NoError(t, a.handle(t))
			require.Equal(t, &status.Delay{Message: test.message, Until: test.until}, a.status(t).Delay)
			if test.pause == 0 {
				require.Equal(t, []string{"prepare", "drains", "status", "register", "execute"}, a.calls)
				return
			}
			require.Equal(t, []string{"prepare", "drains", "status", "resume"}, a.calls)
			require.Equal(t, []events.ChangeResult{{
				Stack: "pool-a", Status: "UPDATE_COMPLETE", Again: true, WaitSeconds: test.pause, WaitedSeconds: test.waited + test.pause,
			}}, a.results)
		})
	}
	for name, test := range map[string]struct {
		given func(*account)
		calls []string
	}{
		"does not wait in a task that cannot": {
			func(a *account) { a.waited = nil }, []string{"prepare", "register", "execute"},
		},
		"does not wait when no instance is being drained": {
			func(a *account) { a.group.Instances = a.group.Instances[:2] }, []string{"prepare", "register", "execute"},
		},
		"clears its wait when no instance is being drained any longer": {
			func(a *account) { *a.waited, a.group.Instances = 10, a.group.Instances[:2] }, []string{"prepare", "status", "register", "execute"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := rolls(t)
			a.amend(t, func(s *status.Status) { s.SetDelay("pool-a", &status.Delay{Message: "waits"}) })
			test.given(a)
			require.NoError(t, a.handle(t))
			require.Equal(t, test.calls, a.calls)
			require.Equal(t, len(test.calls) == 4, a.status(t).Delay == nil)
		})
	}
	for _, call := range []string{"drains", "status", "resume"} {
		t.Run("fails when this call fails: "+call, func(t *testing.T) {
			a := rolls(t)
			a.failing[call] = errThrottled
			require.ErrorIs(t, a.handle(t), errThrottled)
			require.NotContains(t, a.calls, "execute")
			require.Equal(t, call == "resume", a.calls[len(a.calls)-2] == "resume")
		})
	}
}

func TestPassedDrains(t *testing.T) {
	const passes = "i-old: their pods need a node that this change adds"
	for name, test := range map[string]struct {
		given  func(*account)
		passes bool
	}{
		"passes them when their pods need a node": {func(*account) {}, true},
		"waits when the roll changes nothing else": {
			func(a *account) { a.change.Reasons = []status.Reason{{Field: "spec.pools[a].rollAt"}} }, false,
		},
		"passes them when the roll changes something else": {func(a *account) {
			a.change.Reasons = []status.Reason{{Field: "spec.pools[a].rollAt"}, {Field: "spec.pools[a].labels"}}
		}, true},
		"waits when the group launches a node already": {func(a *account) { a.group.Desired = 3 }, false},
		"waits when the change adds no node": {
			func(a *account) { a.change.Pace.MaxUnavailable, a.change.Pace.MaxSurge = "1", "0" }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := rolls(t)
			needsNode(t, a)
			test.given(a)
			require.NoError(t, a.handle(t))
			require.Equal(t, test.passes, strings.HasSuffix(a.status(t).Delay.Message, passes), a.status(t).Delay.Message)
			require.Equal(t, test.passes, len(a.results) == 0)
		})
	}
	t.Run("waits when the pods leave", func(t *testing.T) {
		a := rolls(t)
		require.NoError(t, a.handle(t))
		require.Len(t, a.results, 1)
	})
	t.Run("waits when the cluster has no status", func(t *testing.T) {
		a := rolls(t)
		a.bucket.Delete(names.Status("demo"))
		require.NoError(t, a.handle(t))
		require.Len(t, a.results, 1)
	})
	for name, test := range map[string]struct {
		waited int64
		began  time.Duration
		waits  string
	}{
		"proceeds without them when the drain took too long":      {0, 75 * time.Minute, "the wait took 1h15m0s"},
		"proceeds without them when the task has waited too long": {75 * 60, 10 * time.Minute, "the wait took 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			a := rolls(t)
			needsNode(t, a)
			*a.waited, a.began = test.waited, map[string]time.Time{"i-old": noon.Add(-test.began)}
			require.NoError(t, a.handle(t))
			require.Contains(t, a.status(t).Delay.Message, test.waits)
		})
	}
	t.Run("fails when the status cannot be read", func(t *testing.T) {
		a := rolls(t)
		needsNode(t, a)
		a.failing["read status"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Equal(t, []string{"prepare", "drains", "delete waiter"}, a.calls)
	})
}
