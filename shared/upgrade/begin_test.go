package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

var (
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	r1   = Target{"r1", "sha1", "1.36"}
	r2   = Target{"r2", "sha2", "1.37"}
)

func TestBegin(t *testing.T) {
	hand := Start{Origin: OriginHand, Key: "hand 1", Release: "r2"}
	first := Begin(nil, hand, spec("r1"), r1, r2, "x1", noon)
	require.Equal(t, &Record{
		Number: 1, Execution: "x1", Origin: OriginHand, Key: "hand 1", Over: "r1", Before: r1, From: r1, Target: r2, State: Checking,
		Started:  noon,
		Answered: map[Origin]string{OriginHand: "hand 1"},
	}, first)

	t.Run("what was answered stays so, each by its origin", func(t *testing.T) {
		next := Begin(first, Start{Origin: OriginSpec, Key: "spec v2"}, spec("r3"), r2, r1, "x2", noon)
		require.Equal(t, map[Origin]string{OriginHand: "hand 1", OriginSpec: "spec v2"}, next.Answered)
		require.EqualValues(t, 2, next.Number)
		require.Empty(t, next.Over, "the spec itself says so")
		require.Len(t, first.Answered, 1)
	})
	t.Run("one that was stopped goes on", func(t *testing.T) {
		stopped := *first
		stopped.State, stopped.Step = Stopped, 1
		stopped.Steps = []Step{{Kind: StepAddons, KubernetesVersion: "1.37"}, {Kind: StepNodes, KubernetesVersion: "1.37"}}
		next := Begin(&stopped, Start{Origin: OriginSpec, Key: "spec v2"}, spec("r2"), r2, r2, "x2", noon)
		require.Equal(t, r1, next.From, "to go back to")
		require.Equal(t, stopped.Steps, next.Steps)
		require.Equal(t, 1, next.Step)
		back := Begin(&stopped, Start{Origin: OriginRollback, Key: "rollback"}, spec("r2"), r2, r1, "x2", noon)
		require.Empty(t, back.Steps, "but not to another target")
		require.Equal(t, r2, back.From)
		require.Equal(t, Stopped, back.Last.State, "what it leaves is kept until it changes something")
		require.Empty(t, back.Last.Answered)
		back.State = Blocked
		require.Equal(t, back.Last, back.Changed())
		on := Begin(back, Start{Origin: OriginSpec, Key: "spec v2"}, spec("r2"), r2, r2, "x3", noon)
		require.Equal(t, stopped.Steps, on.Steps, "as if the other had not been")
		require.Equal(t, r1, on.From)
		require.EqualValues(t, 1, on.First)
		require.Nil(t, on.Last)
		require.EqualValues(t, 3, on.Number)
		other := Begin(back, hand, spec("r1"), r2, Target{"r3", "sha3", "1.37"}, "x3", noon)
		require.Equal(t, back.Last, other.Last, "however often")
		moved := Begin(&stopped, hand, spec("r1"), Target{"r1", "sha1", "1.38"}, r2, "x3", noon)
		require.Empty(t, moved.Steps, "not from where its steps do not lead")
		require.NotNil(t, moved.Last)
	})
}

// Who takes back a rollback that stopped does not lose what it was to lead to.
func TestWhereARollbackLeadsThatWasTakenBack(t *testing.T) {
	until := noon.Add(7 * 24 * time.Hour)
	back := Record{
		Number: 2, Origin: OriginRollback, From: r2, Target: r1, State: Stopped, Steps: []Step{
			{Kind: StepNodesBack, KubernetesVersion: "1.37", Started: noon},
		}, BackUntil: until,
	}
	hand := Start{Origin: OriginHand, Key: "hand", Release: "r2"}
	forward := Begin(&back, hand, spec("r1"), r2, r2, "x", noon)
	require.Equal(t, r2, forward.From)
	require.Equal(t, &r1, forward.Back)
	require.Equal(t, until, forward.BackUntil)
	forward.State, forward.Steps = Stopped, []Step{{Kind: StepNodes, KubernetesVersion: "1.37", Started: noon}}
	require.Equal(t, &r1, Begin(forward, hand, spec("r1"), r2, r2, "x", noon).Back, "nor by going on with that")

	r3 := Target{"r3", "sha3", "1.37"}
	require.Nil(t, Begin(&back, hand, spec("r1"), r2, r3, "x", noon).Back, "another release has the one before it to go back to")
	require.Nil(t, Begin(&back, hand, spec("r1"), r1, r2, "x", noon).Back, "the control plane went back: it is upgraded once more")
	back.State = Done
	require.Nil(t, Begin(&back, hand, spec("r1"), r2, r2, "x", noon).Back)
}

func TestWhatAClusterIsPinnedTo(t *testing.T) {
	r := Record{State: Done, From: r1, Target: r2, Steps: []Step{{Kind: StepControlPlane}, {Kind: StepAddons}, {Kind: StepNodes}}, Step: 3}
	require.Equal(t, r2, r.Pin())
	r.State = Stopped
	require.Equal(t, r2, r.Pin(), "nothing but checks was left")
	r.Step = 1
	require.Equal(t, r1, r.Pin(), "the pin moves with the nodes")
	r.Step = 2
	require.Equal(t, r1, r.Pin(), "once that begins")
	r.Steps[2].Started = noon
	require.Equal(t, r2, r.Pin())
	next := Begin(&r, Start{Origin: OriginHand, Key: "hand"}, spec("r1"), r2, Target{"r3", "sha3", "1.37"}, "x", noon)
	next.State = Blocked
	require.Equal(t, r2, next.Pin(), "what is blocked moves nothing")
	first := Begin(nil, Start{Origin: OriginHand, Key: "hand"}, spec("r1"), r1, r2, "x", noon)
	require.Equal(t, r1, first.Pin())
}

func TestWhatCountsOverTheSpec(t *testing.T) {
	done := Record{State: Done, Over: "r1"}
	require.True(t, done.counts(spec("r1")))
	require.False(t, done.counts(spec("r3")), "the spec names another")
	stated := spec("r1")
	stated.Spec.KubernetesVersion = "1.37"
	require.False(t, done.counts(stated), "or another version")
	require.False(t, (*Record)(nil).counts(spec("r1")))
	blocked := Begin(&done, Start{Origin: OriginChannel, Key: "channel Stable r4"}, spec("r1"), r2, r1, "x", noon)
	blocked.State = Blocked
	require.True(t, blocked.counts(spec("r1")), "what counted before still does")
	first := Begin(nil, Start{Origin: OriginHand, Key: "hand"}, spec("r5"), r2, r1, "x", noon)
	first.State = Blocked
	require.Nil(t, first.Changed())
	require.False(t, first.counts(spec("r5")), "nothing did, and the spec's own release is still to come")
}

// Somebody may have changed the spec to what comes to nothing just before an upgrade that was asked for otherwise
// began, and put it back after.
func TestWhatCountsOverASpecThatIsPutBack(t *testing.T) {
	hand := func(last *Record, named *api.Cluster, from, to Target) *Record {
		r := Begin(last, Start{Origin: OriginHand, Key: "hand"}, named, from, to, "x", noon)
		r.State = Done
		return r
	}
	r3 := Target{"r3", "sha3", "1.37"}
	first := hand(nil, spec("lost"), r1, r2)
	require.True(t, first.counts(spec("lost")))
	require.True(t, first.counts(spec("r1")), "put back, it does not ask for a downgrade")
	require.False(t, first.counts(spec("r3")))
	require.Empty(t, first.Superseded(spec("r1")), "nor does that stop the upgrade on its way")
	require.Contains(t, first.Superseded(spec("r3")), "the spec names release r3 by now, and no longer lost or r1")
	require.Contains(t, first.OverrideReason(Target{}), "until the spec names another than lost or r1")
	stated := spec("r1")
	stated.Spec.KubernetesVersion = r1.KubernetesVersion
	require.True(t, first.counts(stated))
	stated.Spec.KubernetesVersion = "1.39"
	require.False(t, first.counts(stated))

	second := hand(first, spec("gone"), r2, r3)
	require.True(t, second.counts(spec("r1")), "what was put back is what the spec named, and not what the first upgrade made of the cluster")
	require.False(t, second.counts(spec("r2")))

	back := Begin(nil, Start{Origin: OriginRollback, Key: "rollback"}, spec("r1"), r2, r1, "x", noon)
	back.State = Done
	require.False(t, back.counts(spec("r2")), "the spec names what was taken back, once it named what it was taken back "+
		"to: it asks for it anew")
	again := hand(back, spec("lost"), r1, r3)
	require.True(t, again.counts(spec("r1")), "what the rollback led to is what the spec named before, and what the cluster was")
}

func TestSuperseded(t *testing.T) {
	bySpec := &Record{Origin: OriginSpec, Target: r2}
	byHand := &Record{Origin: OriginHand, Target: r2, Over: "r1"}
	require.Empty(t, bySpec.Superseded(spec("r2")))
	require.Empty(t, byHand.Superseded(spec("r1")))
	require.Contains(t, bySpec.Superseded(spec("r3")), "names release r3 by now, and no longer release r2 (Kubernetes 1.37)")
	require.Contains(t, byHand.Superseded(spec("r3")), "names release r3 by now, and no longer r1")
	require.Empty(t, byHand.Superseded(spec("r2")), "it names what is being made")
	stated := spec("r2")
	stated.Spec.KubernetesVersion = "1.38"
	require.Contains(t, bySpec.Superseded(stated), "r2 (Kubernetes 1.38)")
	stated.Spec.KubernetesVersion = "1.37"
	require.Empty(t, bySpec.Superseded(stated))
	require.Empty(t, byHand.Superseded(stated))
	stated.Spec.KubernetesVersion = "1.36"
	require.Contains(t, byHand.Superseded(stated), "names release r2 (Kubernetes 1.36) by now, and no longer r1", "another version of it")
	require.Contains(t, bySpec.Superseded(nil), "deleted")
	paused := spec("r2")
	paused.Spec.Paused = true
	require.Contains(t, bySpec.Superseded(paused), "paused")
}

// A spec that names what is being made already has its answer in what becomes of that.
func TestASpecThatNamesWhatIsUnderWay(t *testing.T) {
	began := func() *Record {
		return Begin(nil, Start{Origin: OriginHand, Key: "hand 1"}, spec("r1"), r1, r2, "x", noon)
	}
	before := began()
	after := *before
	after.Adopt(spec("r2"), "v2")
	require.Empty(t, after.Over)
	require.Equal(t, map[Origin]string{OriginHand: "hand 1", OriginSpec: "spec v2"}, after.Answered)
	require.Equal(t, OriginHand, after.Origin, "who asked first stays to be read")
	require.Len(t, before.Answered, 1)
	for _, other := range []*api.Cluster{nil, spec("r1"), spec("r3")} {
		same := *before
		same.Adopt(other, "v2")
		require.Equal(t, began(), &same)
	}
	named := Begin(nil, Start{Origin: OriginHand, Key: "hand 1"}, spec("r2"), r1, r2, "x", noon)
	named.Adopt(spec("r2"), "v2")
	require.Empty(t, named.Over, "it named it before")
	back := Begin(nil, Start{Origin: OriginRollback, Key: "rollback"}, spec("r1"), r2, r1, "x", noon)
	back.Adopt(spec("r1"), "v2")
	require.Equal(t, "r1", back.Over, "no spec could ask for the rest of the way back")
	after.State, after.Steps = Stopped, []Step{{Kind: StepNodes, KubernetesVersion: "1.37"}}
	in := Situation{
		Spec: spec("r2"), SpecVersion: "v2", Record: &after, Deployed: Target{"r1", "sha1", "1.37"}, Now: noon,
		KubernetesVersion: func(string) (string, error) { return "1.37", nil },
	}
	d, err := Decide(in)
	require.NoError(t, err)
	require.Nil(t, d.Start, "it stopped, and waits for somebody")
	require.Equal(t, "r2", d.Wants.Release)
	in.SpecVersion = "v3"
	d, err = Decide(in)
	require.NoError(t, err)
	require.Equal(t, "spec v3", d.Start.Key)
}

func TestWhenWhatWasMissedBegins(t *testing.T) {
	s := spec("r2")
	require.Contains(t, Again(s, OriginAt, noon), "another time")
	require.Contains(t, Again(s, OriginHand, noon), "Start it again")
	require.Contains(t, Again(nil, OriginSpec, noon), "Start it again")
	require.Equal(t, "It begins when the cluster is free", Again(s, OriginSpec, noon))
	nightly(s)
	require.Contains(t, Again(s, OriginChannel, noon), "opens at 2026-11-22T21:00:00Z")
	require.Contains(t, Again(s, OriginChannel, noon.Add(10*time.Hour)), "or in the next, at 2026-11-23T21:00:00Z")
	s.Spec.Upgrade.NotBefore = "2026-12-01T00:00:00Z"
	require.Contains(t, Again(s, OriginSpec, noon.Add(10*time.Hour)), "opens at 2026-12-01T00:00:00Z")
}

// What counts instead of the release that a spec names is told, also where an upgrade was stopped on its way.
func TestWhatCountsInsteadOfTheSpecs(t *testing.T) {
	record := func(change func(*Record)) *Record {
		r := &Record{
			Origin: OriginChannel, Over: "r36-1", From: target("r36-1"), Target: target("r37-1"), State: Done, Step: 1,
			Steps: []Step{{Kind: StepNodes}},
		}
		change(r)
		return r
	}
	stoppedAtFirst := func(named string) *Record {
		return record(func(r *Record) {
			r.Over, r.State, r.Step = named, Stopped, 0
			r.Steps = []Step{{Kind: StepControlPlane, KubernetesVersion: "1.37", Started: noon}, {Kind: StepNodes, KubernetesVersion: "1.37"}}
		})
	}
	tests := map[string]struct {
		record   *Record
		want     string
		deployed Target
	}{
		"nothing, without an upgrade": {want: ""},
		"what a channel asked for": {
			record: record(func(*Record) {}), want: "release r37-1 (Kubernetes 1.37) counts, which its channel asked for, until the spec names " +
				"another than r36-1",
		},
		"what was stopped": {record: record(func(r *Record) {
			r.State, r.Step = Stopped, 0
		}), want: "the upgrade to release r37-1 (Kubernetes 1.37) stopped on its way, and what it moved stays"},
		"what was stopped on the way back to what it names": {
			record: record(func(r *Record) {
				r.Origin, r.Over, r.State, r.Step = OriginRollback, "r37-1", Stopped, 0
			}), want: "the upgrade to release r37-1 (Kubernetes 1.37) stopped on its way, and what it moved stays",
		},
		"nothing, when the control plane was to come first and is where it was, which the spec names": {
			record: stoppedAtFirst("r36-1"), deployed: target("r36-1"),
		},
		"what was stopped before it moved anything, when the spec names yet another": {
			record: stoppedAtFirst("r35-1"), deployed: target("r36-1"),
			want: "the upgrade to release r37-1 (Kubernetes 1.37) stopped before it had moved anything",
		},
		"what was stopped when the control plane was there": {
			record: stoppedAtFirst("r36-1"), deployed: Target{
				"r36-1", "", "1.37",
			}, want: "the upgrade to release r37-1 (Kubernetes 1.37) stopped on its way, and what it moved stays",
		},
		"nothing, while it is under way":          {record: record(func(r *Record) { r.State = Running })},
		"nothing, when the spec asked for it":     {record: record(func(r *Record) { r.Over = "" })},
		"nothing, when the spec names it":         {record: record(func(r *Record) { r.Over = "r37-1" })},
		"nothing, when it names the version, too": {record: record(func(r *Record) { r.Over = "r37-1 (Kubernetes 1.37)" })},
		"what counted before one that was blocked": {
			record: &Record{State: Blocked, Over: "r36-1", Target: target("r38-1"), Last: record(func(r *Record) { r.Origin = OriginRollback })},
			want:   "release r37-1 (Kubernetes 1.37) counts, which a rollback asked for, until the spec names another than r36-1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.record.OverrideReason(test.deployed)) })
	}
}
