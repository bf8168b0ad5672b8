package handler

// What fails for one cluster holds up no other, and fails the sweep.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// listed are objects of a bucket, by prefix.
type listed map[string][]store.Entry

func (l listed) List(_ context.Context, prefix string) ([]store.Entry, error) { return l[prefix], nil }

type listedSpecs struct {
	Specs
	listed
	version string
}

func (l listedSpecs) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return l.listed.List(ctx, prefix)
}

func (l listedSpecs) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{Version: l.version}, nil
}

type listedState struct {
	sweptState
	listed
}

func (l listedState) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return l.listed.List(ctx, prefix)
}

func (l listedState) Waiter(_ context.Context, stackName string) (store.Waiter, error) {
	return store.Waiter{StackName: stackName, Execution: stackName}, nil
}

func (l listedState) Status(context.Context, string) (*status.Cluster, error) {
	return &status.Cluster{Status: l.status}, l.failing["status"]
}

func (s *swept) Admit(_ context.Context, cluster string) error { return s.did("admit %s", cluster) }

func TestSweepGoesOnAfterAFailure(t *testing.T) {
	t.Run("of a waiter", func(t *testing.T) {
		s := &swept{
			running: true, began: true, stack: stack.Deployed{Status: "UPDATE_COMPLETE"}, failing: map[string]error{"resume": errThrottled},
		}
		h := s.handler()
		h.State = listedState{sweptState{swept: s}, listed{names.Waiters: {{Key: names.Waiters + "a.json"}, {Key: names.Waiters + "b.json"}}}}
		_, err := h.waiters(t.Context())
		require.ErrorIs(t, err, errThrottled)
		require.Len(t, s.calls, 2)
	})
}

func TestSweepAdmitsSpecs(t *testing.T) {
	at := noon.Add(-time.Hour)
	spec := func(cluster string, modified time.Time) store.Entry {
		return store.Entry{Key: names.ClusterSpec(cluster), Modified: modified}
	}
	document := func(cluster string, modified time.Time) store.Entry {
		return store.Entry{Key: names.Status(cluster), Modified: modified}
	}
	for name, test := range map[string]struct {
		specs, statuses []store.Entry
		observed        string
		failing         map[string]error
		want            []string
	}{
		"that no status is about":             {[]store.Entry{spec("a", at)}, nil, "", nil, []string{"admit a"}},
		"not while they are new":              {[]store.Entry{spec("a", noon)}, nil, "", nil, nil},
		"not when a status is newer":          {[]store.Entry{spec("a", at)}, []store.Entry{document("a", at.Add(time.Second))}, "", nil, nil},
		"not when a status is about them":     {[]store.Entry{spec("a", at)}, []store.Entry{document("a", at)}, "v1", nil, nil},
		"when a status of then is of another": {[]store.Entry{spec("a", at)}, []store.Entry{document("a", at)}, "v0", nil, []string{"admit a"}},
		"not when that status is not read": {
			[]store.Entry{spec("a", at)}, []store.Entry{document("a", at)}, "v0", map[string]error{"status": errThrottled}, nil,
		},
		"not what is no cluster's": {[]store.Entry{{Key: names.ClusterSpecs + "readme.txt", Modified: at}}, nil, "", nil, nil},
		"each, whatever fails for another": {
			[]store.Entry{spec("a", at), spec("b", at)}, nil, "", map[string]error{"admit a": errThrottled}, []string{"admit a", "admit b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{status: status.Status{ObservedVersion: test.observed}, failing: test.failing}
			h := s.handler()
			h.State = listedState{sweptState{swept: s}, listed{names.Statuses: test.statuses}}
			h.Specs, h.Admit, h.Patience = listedSpecs{listed: listed{names.ClusterSpecs: test.specs}, version: "v1"}, s, 5*time.Minute
			err := h.missed(t.Context())
			require.Equal(t, test.failing != nil, err != nil)
			require.Equal(t, test.want, s.calls)
		})
	}
}

func TestAuditStartsOverdueUpgrades(t *testing.T) {
	at := noon.Add(-period)
	for name, test := range map[string]struct {
		phase    status.Phase
		accepted string
		due      bool
		want     []string
	}{
		"of a cluster that is ready": {status.Ready, "True", false, []string{"start: its upgrade did not begin 2026-11-26T12:00:00Z"}},
		"of a cluster that waits for one": {
			status.Upgrading, "True", false, []string{"start: its upgrade did not begin 2026-11-26T12:00:00Z"},
		},
		"not of one that stopped":               {status.Stopped, "True", false, nil},
		"not of one whose spec is not accepted": {status.Ready, "False", false, nil},
		"not of one that a sweep starts":        {status.Ready, "True", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &audited{status: &status.Status{
				Phase: test.phase, Conditions: []status.Condition{condition(status.SpecAccepted, test.accepted, "x")},
				Upgrade: &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "At", At: &at},
			}}
			r := a.round()
			r.due = map[string]bool{demo: test.due}
			_, err := r.upgrading(t.Context(), demo, a.status)
			require.NoError(t, err)
			require.Equal(t, test.want, a.calls)
		})
	}
	t.Run("not before it is late", func(t *testing.T) {
		soon := noon.Add(-period + 1)
		missed := status.Upgrade{Phase: status.UpgradeMissed, At: &at}
		for _, u := range []status.Upgrade{
			{Phase: status.UpgradeScheduled, At: &soon}, {Phase: status.UpgradeScheduled}, missed, {Phase: "Done", At: &at},
		} {
			require.False(t, (&audited{}).round().waits(&u), u.Phase)
		}
		require.False(t, (&audited{}).round().waits(nil))
		require.False(t, underWay(&status.Upgrade{Phase: "Running"}), "whoever leads it is unknown")
	})
}
