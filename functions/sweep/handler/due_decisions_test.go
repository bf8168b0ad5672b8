package handler

// What a sweep starts of what is due, and what it leaves for the next one.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// agenda is what is due, and which clusters are held by an execution.
type agenda struct {
	sweptState
	dues    []store.Due
	holders map[string]string
	missing bool
}

func (a agenda) Dues(context.Context, time.Time) ([]store.Due, error) {
	return a.dues, a.failing["dues"]
}

func (a agenda) Holder(_ context.Context, cluster string, _ func(context.Context, string) (bool, error)) (string, error) {
	return a.holders[cluster], a.failing["holder "+cluster]
}

func (a agenda) Done(_ context.Context, due store.Due) error {
	if due.Inspect {
		return a.did("done inspecting %s", due.Cluster)
	}
	return a.did("done %s %s", due.Cluster, due.At.Format("15:04"))
}

func (a agenda) Status(_ context.Context, cluster string) (*status.Cluster, error) {
	if a.missing {
		return nil, store.ErrNotFound
	}
	err := a.did("read %s", cluster)
	return &status.Cluster{Status: a.status}, err
}

func (s *swept) ConvergeDue(_ context.Context, cluster string, at time.Time) error {
	return s.did("start %s %s", cluster, at.Format("15:04"))
}

func (s sweptExecutions) Converge(_ context.Context, cluster, version, after string) error {
	return s.did("converge %s %s %s", cluster, version, after)
}

// Look, All and List are what an audit lists.
func (s *swept) Refresh(context.Context) error { return s.failing["overview"] }

func (s sweptStacks) All(context.Context) (map[string]stack.Deployed, error) {
	return nil, s.failing["stacks"]
}

type noGroups struct {
	Groups
	err error
}

func (g noGroups) All(context.Context) ([]pool.Group, error) { return nil, g.err }

func (a agenda) handler(specs ...string) *Handler {
	h := a.swept.handler()
	h.State, h.Start, h.Snapshot, h.Groups = a, a.swept, a.swept, noGroups{}
	var entries []store.Entry
	for _, cluster := range specs {
		entries = append(entries, store.Entry{Key: "clusters/" + cluster + ".yaml", Modified: noon.Add(-time.Hour)})
	}
	h.Specs = listedSpecs{listed: listed{"clusters/": entries}}
	return h
}

func due(cluster string, ago time.Duration) store.Due {
	return store.Due{Cluster: cluster, At: noon.Add(-ago)}
}

func TestSweepStartsWhatIsDue(t *testing.T) {
	for name, test := range map[string]struct {
		dues    []store.Due
		holders map[string]string
		failing map[string]error
		want    []string
	}{
		"once for several times, and forgets them in order": {
			[]store.Due{due("a", 2*time.Minute), due("a", time.Minute)}, nil, nil, []string{"start a 11:59", "done a 11:58", "done a 11:59"},
		},
		"not while the cluster is busy": {[]store.Due{due("a", time.Minute)}, map[string]string{"a": "x"}, nil, []string{"read a"}},
		"and does not forget what it could not start": {
			[]store.Due{due("a", time.Minute), due("b", time.Minute)}, nil, map[string]error{"start a": errThrottled},
			[]string{"start a 11:59", "start b 11:59", "done b 11:59"},
		},
		"and keeps the newest when an older one cannot be forgotten": {
			[]store.Due{due("a", 2*time.Minute), due("a", time.Minute)}, nil, map[string]error{"done a 11:58": errThrottled},
			[]string{"start a 11:59", "done a 11:58"},
		},
		"not when its holder is unknown": {
			[]store.Due{due("a", time.Minute), due("b", time.Minute)}, nil, map[string]error{"holder a": errThrottled},
			[]string{"start b 11:59", "done b 11:59"},
		},
		"and records all that is late of a busy cluster, whatever fails": {
			[]store.Due{due("a", 31*time.Minute), due("a", time.Minute), due("b", time.Minute)}, map[string]string{"a": "x"},
			map[string]error{"write a": errThrottled}, []string{"write a", "read a", "start b 11:59", "done b 11:59"},
		},
		"nothing when that cannot be listed": {[]store.Due{due("a", time.Minute)}, nil, map[string]error{"dues": errThrottled}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{failing: test.failing}
			err := agenda{sweptState: sweptState{swept: s}, dues: test.dues, holders: test.holders}.handler().due(t.Context())
			if test.failing == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, errThrottled)
			}
			require.Equal(t, test.want, s.calls)
		})
	}
	t.Run("up to a bound, which counts failures but no busy cluster", func(t *testing.T) {
		s := &swept{failing: map[string]error{"start c01": errThrottled}}
		a := agenda{sweptState: sweptState{swept: s}, holders: map[string]string{"c00": "x"}}
		for i := range startsAtOnce + 3 {
			a.dues = append(a.dues, due(fmt.Sprintf("c%02d", i), time.Minute))
		}
		require.ErrorIs(t, a.handler().due(t.Context()), errThrottled)
		require.Equal(t, 1+2*startsAtOnce-1, len(s.calls))
		require.Equal(t, fmt.Sprintf("done c%02d 11:59", startsAtOnce), s.calls[len(s.calls)-1])
	})
}

func TestSweepInspectsChangedClusters(t *testing.T) {
	inspect := func(clusters ...string) (dues []store.Due) {
		for _, cluster := range clusters {
			dues = append(dues, store.Due{Cluster: cluster, Inspect: true})
		}
		return dues
	}
	for name, test := range map[string]struct {
		dues    []store.Due
		failing map[string]error
		want    []string
	}{
		"those alone": {inspect("b"), nil, []string{"read b", "done inspecting b"}},
		"after what is due": {
			append([]store.Due{due("a", time.Minute)}, inspect("b")...), nil,
			[]string{"start a 11:59", "done a 11:59", "read b", "done inspecting b"},
		},
		"none without requests": {nil, map[string]error{}, nil},
		"each, and leaves what fails to the next audit": {
			inspect("a", "b"), map[string]error{"read a": errThrottled, "done inspecting a": errThrottled},
			[]string{"read a", "read b", "done inspecting a", "done inspecting b"},
		},
		"and fails when a request cannot be deleted": {
			inspect("b"), map[string]error{"done": errThrottled}, []string{"read b", "done inspecting b"},
		},
		"none that cannot be listed": {inspect("b"), map[string]error{"overview": errThrottled}, []string{"done inspecting b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{failing: test.failing}
			s.status = status.Status{Phase: status.Deleted}
			a := agenda{sweptState: sweptState{swept: s}, dues: test.dues}
			h := a.handler("a", "b", "c")
			h.Patience = 2 * time.Hour // the specs are new
			if test.dues == nil {
				h.Specs = listedSpecs{} // whatever is listed panics no audit
				h.Snapshot = nil
			}
			err := h.due(t.Context())
			require.Equal(t, len(test.failing) > 0, err != nil)
			require.Equal(t, test.want, s.calls)
		})
	}
}

func TestInspectionStartsAnOverdueUpgrade(t *testing.T) {
	at := noon.Add(-20 * time.Minute)
	for name, test := range map[string]struct {
		due  []store.Due
		want []string
	}{
		"that no sweep starts":        {nil, []string{"read a", "again a"}},
		"not one that a sweep starts": {[]store.Due{due("a", time.Minute)}, []string{"read a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{status: status.Status{Phase: status.Ready, Upgrade: &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", At: &at}}}
			s.status.UpdatedAt = noon.Add(time.Second) // compared by the next audit
			a := agenda{sweptState: sweptState{swept: s}, dues: append(test.due, store.Due{Cluster: "a", Inspect: true})}
			require.NoError(t, a.handler("a").auditOf(t.Context(), map[string]bool{"a": true}))
			require.Equal(t, test.want, s.calls)
		})
	}
}

func (s sweptExecutions) Again(_ context.Context, cluster, _, _ string) (bool, error) {
	return true, s.did("again %s", cluster)
}

func TestUpgradeWhoseClusterIsBusy(t *testing.T) {
	running := status.Status{SpecVersion: "v1", Upgrade: &status.Upgrade{Phase: "Running", Execution: "x"}}
	behind := running
	behind.NextUpgrade = &status.Upgrade{To: "r2"}
	for name, test := range map[string]struct {
		status  status.Status
		missing bool
		failing map[string]error
		want    []string
	}{
		"is planned behind the one that runs":  {running, false, nil, []string{"read a", "converge a v1 behind 2026-11-26T11:59:00Z"}},
		"once":                                 {behind, false, nil, []string{"read a"}},
		"not while the cluster only converges": {status.Status{}, false, nil, []string{"read a"}},
		"not of a cluster without a status":    {running, true, nil, nil},
		"not when its status cannot be read":   {running, false, map[string]error{"read": errThrottled}, []string{"read a"}},
		"and fails when that cannot be started": {
			running, false, map[string]error{"converge": errThrottled}, []string{"read a", "converge a v1 behind 2026-11-26T11:59:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{status: test.status, failing: test.failing}
			a := agenda{sweptState: sweptState{swept: s}, missing: test.missing}
			require.Equal(t, test.failing != nil, a.handler().busy(t.Context(), due("a", time.Minute), "x") != nil)
			require.Equal(t, test.want, s.calls)
		})
	}
	t.Run("is not planned when its lateness cannot be recorded", func(t *testing.T) {
		s := &swept{status: running, failing: map[string]error{"write": errThrottled}}
		require.ErrorIs(t, agenda{sweptState: sweptState{swept: s}}.handler().busy(t.Context(), due("a", time.Hour), "x"), errThrottled)
		require.Equal(t, []string{"write a"}, s.calls)
	})
}
