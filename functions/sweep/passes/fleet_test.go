package passes

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
)

// fleet is a cell with rollouts.
type fleet struct {
	active  rollout.Active
	desired rollout.DesiredState
	report  *rollout.Report
	looks   rollout.Looks
	nodes   map[string][]pool.NodeHealth
	failing map[string]error
	calls   []string
	// payloads are those of the function fleet.
	payloads []string
}

func (f *fleet) did(what string) error {
	f.calls = append(f.calls, what)
	return f.failing[what]
}

func (f *fleet) ActiveRuns(context.Context) (*rollout.Active, string, error) {
	return &f.active, "", f.did("active runs")
}

func (f *fleet) DesiredState(context.Context, string) (*rollout.DesiredState, string, error) {
	return &f.desired, "", f.did("desired state")
}

func (f *fleet) CellReport(context.Context, string) (*rollout.Report, string, error) {
	return f.report, "", f.did("report")
}

func (f *fleet) Looks(context.Context) (*rollout.Looks, error) { return &f.looks, f.did("looks") }

func (f *fleet) PutLooks(_ context.Context, looks *rollout.Looks) error {
	f.looks = *looks
	return f.did("put looks")
}

func (f *fleet) Describe(_ context.Context, name string) (stack.Deployed, error) {
	return stack.Deployed{Outputs: map[string]string{stack.OutputEndpoint: "https://" + name}}, f.failing["describe"]
}

func (f *fleet) Health(_ context.Context, cluster string, _ stack.API) ([]pool.NodeHealth, error) {
	return f.nodes[cluster], f.did("observe " + cluster)
}

func (f *fleet) Start(_ context.Context, function string, payload []byte) error {
	if function == names.Function("fleet") {
		f.payloads = append(f.payloads, string(payload))
	}
	return f.did("start " + function)
}

func (f *fleet) pass() Fleet {
	sweeptest.Quiet()
	return Fleet{State: f, Stacks: f, Nodes: f, Functions: f, Cell: "cell", Now: func() time.Time { return noon }}
}

func fact(cluster string, state rollout.AttemptState) rollout.Fact {
	return rollout.Fact{Cluster: cluster, Attempt: &rollout.Attempt{State: state}}
}

// newFleet is a run whose members are a, begun, and b, done. It watches them.
func newFleet() *fleet {
	return &fleet{
		active: rollout.Active{Runs: []rollout.ActiveRun{{Rollout: "next"}}},
		desired: rollout.DesiredState{Sections: map[string]rollout.Section{"next": {
			Claims: []string{"a", "b", "c"}, Watches: []rollout.Watch{{Until: noon.Add(time.Minute)}},
			Assignments: []rollout.Assignment{{Cluster: "a"}, {Cluster: "b"}, {Cluster: "c"}},
		}}},
		report: &rollout.Report{Facts: []rollout.Fact{
			fact("a", rollout.AttemptBegun), fact("b", rollout.AttemptDone), fact("c", rollout.AttemptOpen), fact("d", rollout.AttemptDone),
		}},
		nodes:   map[string][]pool.NodeHealth{"a": {{Ready: true}}, "b": {{Ready: true}, {}}},
		failing: map[string]error{},
	}
}

func TestFleetPass(t *testing.T) {
	started, ticked := "start "+names.Function("fleet"), "start "+names.Function("rollout")
	seen := func(cluster string, ago time.Duration) func(*fleet) {
		return func(f *fleet) {
			f.looks.Clusters = map[string]rollout.Look{cluster: {At: noon.Add(-ago), Nodes: 9}}
		}
	}
	all := []string{"active runs", "desired state", "report", "looks", "observe a", "observe b", "put looks", started, ticked}
	without := func(calls ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(call string) bool { return slices.Contains(calls, call) })
	}
	for name, test := range map[string]struct {
		given func(*fleet)
		want  []string
	}{
		"costs one read without an active run": {func(f *fleet) { f.active = rollout.Active{} }, all[:1]},
		"evaluates a run that has assigned nothing": {
			func(f *fleet) { f.desired = rollout.DesiredState{} }, []string{"active runs", "desired state", ticked},
		},
		"observes upgrades that begun and at members": {func(*fleet) {}, all},
		"starts the function for what is open after another run": {func(f *fleet) {
			f.desired.Sections, f.report.Open = map[string]rollout.Section{"last": {}}, map[string]int64{"a": 1}
		}, []string{"active runs", "desired state", "report", started, ticked}},
		"observes members again after four minutes": {seen("b", lookEvery), []string{
			"active runs", "desired state", "report", "looks", "observe a", "observe b", "put looks", started, ticked,
		}},
		"does not observe members earlier": {seen("b", lookEvery-1), without("observe b")},
		"observes upgrades in flight each time": {seen("a", time.Second), []string{
			"active runs", "desired state", "report", "looks", "observe b", "observe a", "put looks", started, ticked,
		}},
		"does not observe members that no run watches": {func(f *fleet) {
			section := f.desired.Sections["next"]
			section.Watches = []rollout.Watch{{Until: noon}}
			f.desired.Sections["next"] = section
		}, without("observe b")},
		"does not observe rollbacks": {func(f *fleet) {
			f.desired.Sections["next"].Assignments[1].Rollback = true
		}, without("observe b")},
		"continues where an API server does not answer": {func(f *fleet) { f.failing["observe a"] = errThrottled }, all},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet()
			test.given(f)
			require.NoError(t, f.pass().Run(t.Context()))
			require.Equal(t, test.want, f.calls)
			if slices.Contains(f.calls, started) {
				require.Equal(t, []string{`{"sweep":true}`}, f.payloads)
			}
		})
	}
	t.Run("counts nodes, and keeps what it saw of others", func(t *testing.T) {
		f := newFleet()
		seen("a", time.Minute)(f)
		f.failing["observe a"] = errThrottled
		require.NoError(t, f.pass().Run(t.Context()))
		require.Equal(t, map[string]rollout.Look{
			"a": {At: noon.Add(-time.Minute), Nodes: 9}, "b": {At: noon, Nodes: 2, NotReady: 1},
		}, f.looks.Clusters)
	})
	t.Run("observes a limited number", func(t *testing.T) {
		f := newFleet()
		section := rollout.Section{}
		f.report = &rollout.Report{}
		for i := range maxLooks + 1 {
			cluster := string(rune('a'+i/26)) + string(rune('a'+i%26))
			section.Claims = append(section.Claims, cluster)
			section.Assignments = append(section.Assignments, rollout.Assignment{Cluster: cluster})
			f.report.Facts = append(f.report.Facts, fact(cluster, rollout.AttemptBegun))
		}
		f.desired.Sections = map[string]rollout.Section{"next": section}
		require.NoError(t, f.pass().Run(t.Context()))
		require.Len(t, f.looks.Clusters, maxLooks)
	})
	t.Run("observes only the clusters of a requested look, and starts the function for each", func(t *testing.T) {
		for _, test := range []struct {
			look, looked []string
		}{
			{[]string{"a"}, []string{"a"}}, {[]string{"b", "a"}, []string{"a", "b"}}, {[]string{"c", "d", "absent"}, nil},
		} {
			f := newFleet()
			seen("b", time.Hour)(f)
			require.NoError(t, f.pass().Look(t.Context(), test.look))
			var want []string
			for _, cluster := range test.looked {
				want = append(want, `{"cluster":"`+cluster+`"}`)
				require.Equal(t, noon, f.looks.Clusters[cluster].At)
			}
			require.Equal(t, want, f.payloads)
			require.Contains(t, f.looks.Clusters, "b", "those of other clusters stay")
			require.NotContains(t, f.calls, ticked)
		}
		f := newFleet()
		f.report = nil
		require.NoError(t, f.pass().Look(t.Context(), []string{"a"}))
		require.Empty(t, f.payloads)
		f = newFleet()
		f.failing["put looks"] = errThrottled
		require.ErrorIs(t, f.pass().Look(t.Context(), []string{"a"}), errThrottled)
		require.Empty(t, f.payloads, "the function would request a look again, at once")
	})
	for _, failing := range []string{"active runs", "desired state", "report", "looks", "describe", "put looks", started, ticked} {
		t.Run("fails without: "+failing, func(t *testing.T) {
			f := newFleet()
			f.failing[failing] = errThrottled
			require.ErrorIs(t, f.pass().Run(t.Context()), errThrottled)
		})
	}
}
