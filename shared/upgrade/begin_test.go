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
	hand := Start{Origin: OriginCommand, Key: "hand 1", Release: "r2"}
	first := Begin(nil, hand, spec("r1"), r1, r2, "x1", noon)
	require.Equal(t, &Record{
		Number: 1, Execution: "x1", Origin: OriginCommand, Key: "hand 1", Overridden: "r1", Before: r1, From: r1, Target: r2, State: Checking,
		Started:  noon,
		Answered: map[Origin]string{OriginCommand: "hand 1"},
	}, first)

	t.Run("keeps what was answered, by origin", func(t *testing.T) {
		next := Begin(first, Start{Origin: OriginSpec, Key: "spec v2"}, spec("r3"), r2, r1, "x2", noon)
		require.Equal(t, map[Origin]string{OriginCommand: "hand 1", OriginSpec: "spec v2"}, next.Answered)
		require.EqualValues(t, 2, next.Number)
		require.Empty(t, next.Overridden, "the spec requested it")
		require.Len(t, first.Answered, 1)
	})
	t.Run("continues a stopped upgrade", func(t *testing.T) {
		stopped := *first
		stopped.State, stopped.Step = Stopped, 1
		stopped.Steps = []Step{{Kind: StepAddons, KubernetesVersion: "1.37"}, {Kind: StepNodes, KubernetesVersion: "1.37"}}
		next := Begin(&stopped, Start{Origin: OriginSpec, Key: "spec v2"}, spec("r2"), r2, r2, "x2", noon)
		require.Equal(t, r1, next.From, "the target of a rollback")
		require.Equal(t, stopped.Steps, next.Steps)
		require.Equal(t, 1, next.Step)
		back := Begin(&stopped, Start{Origin: OriginRollback, Key: "rollback"}, spec("r2"), r2, r1, "x2", noon)
		require.Empty(t, back.Steps, "not to another target")
		require.Equal(t, r2, back.From)
		require.Equal(t, Stopped, back.Last.State, "the stopped upgrade is kept until this one changes something")
		require.Empty(t, back.Last.Answered)
		back.State = Blocked
		require.Equal(t, back.Last, back.LastChange())
		on := Begin(back, Start{Origin: OriginSpec, Key: "spec v2"}, spec("r2"), r2, r2, "x3", noon)
		require.Equal(t, stopped.Steps, on.Steps, "as without the blocked rollback")
		require.Equal(t, r1, on.From)
		require.EqualValues(t, 1, on.First)
		require.Nil(t, on.Last)
		require.EqualValues(t, 3, on.Number)
		other := Begin(back, hand, spec("r1"), r2, Target{"r3", "sha3", "1.37"}, "x3", noon)
		require.Equal(t, back.Last, other.Last, "also after several")
		moved := Begin(&stopped, hand, spec("r1"), Target{"r1", "sha1", "1.38"}, r2, "x3", noon)
		require.Empty(t, moved.Steps, "not from a version that its steps do not have")
		require.NotNil(t, moved.Last)
	})
}

// An upgrade that reverts a stopped rollback keeps the rollback's target.
func TestRollbackTargetIsKept(t *testing.T) {
	until := noon.Add(7 * 24 * time.Hour)
	back := Record{
		Number: 2, Origin: OriginRollback, From: r2, Target: r1, State: Stopped, Steps: []Step{
			{Kind: StepNodesBack, KubernetesVersion: "1.37", Started: noon},
		}, RollbackUntil: until,
	}
	hand := Start{Origin: OriginCommand, Key: "hand", Release: "r2"}
	forward := Begin(&back, hand, spec("r1"), r2, r2, "x", noon)
	require.Equal(t, r2, forward.From)
	require.Equal(t, &r1, forward.RollbackTarget)
	require.Equal(t, until, forward.RollbackUntil)
	forward.State, forward.Steps = Stopped, []Step{{Kind: StepNodes, KubernetesVersion: "1.37", Started: noon}}
	require.Equal(t, &r1, Begin(forward, hand, spec("r1"), r2, r2, "x", noon).RollbackTarget, "also if that one continues")

	r3 := Target{"r3", "sha3", "1.37"}
	require.Nil(t, Begin(&back, hand, spec("r1"), r2, r3, "x", noon).RollbackTarget, "another release rolls back to the one before it")
	require.Nil(t, Begin(&back, hand, spec("r1"), r1, r2, "x", noon).RollbackTarget,
		"the control plane was rolled back: this is a new upgrade")
	back.State = Done
	require.Nil(t, Begin(&back, hand, spec("r1"), r2, r2, "x", noon).RollbackTarget)
}

func TestPin(t *testing.T) {
	r := Record{State: Done, From: r1, Target: r2, Steps: []Step{{Kind: StepControlPlane}, {Kind: StepAddons}, {Kind: StepNodes}}, Step: 3}
	require.Equal(t, r2, r.Pin())
	r.State = Stopped
	require.Equal(t, r2, r.Pin(), "only checks were left")
	r.Step = 1
	require.Equal(t, r1, r.Pin(), "the pin moves with the nodes")
	r.Step = 2
	require.Equal(t, r1, r.Pin(), "once that step begins")
	r.Steps[2].Started = noon
	require.Equal(t, r2, r.Pin())
	next := Begin(&r, Start{Origin: OriginCommand, Key: "hand"}, spec("r1"), r2, Target{"r3", "sha3", "1.37"}, "x", noon)
	next.State = Blocked
	require.Equal(t, r2, next.Pin(), "a blocked upgrade changes nothing")
	first := Begin(nil, Start{Origin: OriginCommand, Key: "hand"}, spec("r1"), r1, r2, "x", noon)
	require.Equal(t, r1, first.Pin())
}

func TestCounts(t *testing.T) {
	done := Record{State: Done, Overridden: "r1"}
	require.True(t, done.targetApplies(spec("r1")))
	require.False(t, done.targetApplies(spec("r3")), "the spec names another")
	stated := spec("r1")
	stated.Spec.KubernetesVersion = "1.37"
	require.False(t, done.targetApplies(stated), "the spec names another version")
	require.False(t, (*Record)(nil).targetApplies(spec("r1")))
	blocked := Begin(&done, Start{Origin: OriginChannel, Key: "channel Stable r4"}, spec("r1"), r2, r1, "x", noon)
	blocked.State = Blocked
	require.True(t, blocked.targetApplies(spec("r1")), "the earlier override still applies")
	first := Begin(nil, Start{Origin: OriginCommand, Key: "hand"}, spec("r5"), r2, r1, "x", noon)
	first.State = Blocked
	require.Nil(t, first.LastChange())
	require.False(t, first.targetApplies(spec("r5")), "without an earlier override, the release of the spec applies")
}

// The spec named an unusable release when an upgrade of another origin began. A user restores the spec afterwards.
func TestCountsForARestoredSpec(t *testing.T) {
	hand := func(last *Record, named *api.Cluster, from, to Target) *Record {
		r := Begin(last, Start{Origin: OriginCommand, Key: "hand"}, named, from, to, "x", noon)
		r.State = Done
		return r
	}
	r3 := Target{"r3", "sha3", "1.37"}
	first := hand(nil, spec("lost"), r1, r2)
	require.True(t, first.targetApplies(spec("lost")))
	require.True(t, first.targetApplies(spec("r1")), "the restored spec requests no downgrade")
	require.False(t, first.targetApplies(spec("r3")))
	require.Empty(t, first.SupersededReason(spec("r1")), "and it does not stop the upgrade in flight")
	require.Contains(t, first.SupersededReason(spec("r3")), "the spec now names release r3, and no longer lost or r1")
	require.Contains(t, first.OverrideReason(Target{}), "until the spec names a release other than lost or r1")
	stated := spec("r1")
	stated.Spec.KubernetesVersion = r1.KubernetesVersion
	require.True(t, first.targetApplies(stated))
	stated.Spec.KubernetesVersion = "1.39"
	require.False(t, first.targetApplies(stated))

	second := hand(first, spec("deleted"), r2, r3)
	require.True(t, second.targetApplies(spec("r1")), "the spec named r1 before; r2 is the result of the first upgrade")
	require.False(t, second.targetApplies(spec("r2")))

	back := Begin(nil, Start{Origin: OriginRollback, Key: "rollback"}, spec("r1"), r2, r1, "x", noon)
	back.State = Done
	require.False(t, back.targetApplies(spec("r2")), "the spec named the rollback's target, and now names "+
		"the release before it: a new request")
	again := hand(back, spec("lost"), r1, r3)
	require.True(t, again.targetApplies(spec("r1")), "the rollback's target is what the spec named, and what was deployed")
}

func TestSuperseded(t *testing.T) {
	bySpec := &Record{Origin: OriginSpec, Target: r2}
	byHand := &Record{Origin: OriginCommand, Target: r2, Overridden: "r1"}
	require.Empty(t, bySpec.SupersededReason(spec("r2")))
	require.Empty(t, byHand.SupersededReason(spec("r1")))
	require.Contains(t, bySpec.SupersededReason(spec("r3")), "now names release r3, and no longer release r2 (Kubernetes 1.37)")
	require.Contains(t, byHand.SupersededReason(spec("r3")), "now names release r3, and no longer r1")
	require.Empty(t, byHand.SupersededReason(spec("r2")), "it names the target")
	stated := spec("r2")
	stated.Spec.KubernetesVersion = "1.38"
	require.Contains(t, bySpec.SupersededReason(stated), "r2 (Kubernetes 1.38)")
	stated.Spec.KubernetesVersion = "1.37"
	require.Empty(t, bySpec.SupersededReason(stated))
	require.Empty(t, byHand.SupersededReason(stated))
	stated.Spec.KubernetesVersion = "1.36"
	require.Contains(t, byHand.SupersededReason(stated), "now names release r2 (Kubernetes 1.36), and no longer r1",
		"another version of the target")
	require.Contains(t, bySpec.SupersededReason(nil), "deleted")
	paused := spec("r2")
	paused.Spec.Paused = true
	require.Contains(t, bySpec.SupersededReason(paused), "paused")
}

// A spec that names the target of the upgrade in flight requests no other upgrade.
func TestAdopt(t *testing.T) {
	began := func() *Record {
		return Begin(nil, Start{Origin: OriginCommand, Key: "hand 1"}, spec("r1"), r1, r2, "x", noon)
	}
	before := began()
	after := *before
	after.Adopt(spec("r2"), "v2")
	require.Empty(t, after.Overridden)
	require.Equal(t, map[Origin]string{OriginCommand: "hand 1", OriginSpec: "spec v2"}, after.Answered)
	require.Equal(t, OriginCommand, after.Origin, "the origin stays the same")
	require.Len(t, before.Answered, 1)
	for _, other := range []*api.Cluster{nil, spec("r1"), spec("r3")} {
		same := *before
		same.Adopt(other, "v2")
		require.Equal(t, began(), &same)
	}
	named := Begin(nil, Start{Origin: OriginCommand, Key: "hand 1"}, spec("r2"), r1, r2, "x", noon)
	named.Adopt(spec("r2"), "v2")
	require.Empty(t, named.Overridden, "the spec named it before")
	back := Begin(nil, Start{Origin: OriginRollback, Key: "rollback"}, spec("r1"), r2, r1, "x", noon)
	back.Adopt(spec("r1"), "v2")
	require.Equal(t, "r1", back.Overridden, "no spec could request the rest of the rollback")
	after.State, after.Steps = Stopped, []Step{{Kind: StepNodes, KubernetesVersion: "1.37"}}
	in := Situation{
		Spec: spec("r2"), SpecVersion: "v2", Record: &after, Deployed: Target{"r1", "sha1", "1.37"}, Now: noon,
		KubernetesVersion: func(string) (string, error) { return "1.37", nil },
	}
	d, err := Decide(in)
	require.NoError(t, err)
	require.Nil(t, d.Start, "it stopped, and waits for a new request")
	require.Equal(t, "r2", d.SpecTarget.Release)
	in.SpecVersion = "v3"
	d, err = Decide(in)
	require.NoError(t, err)
	require.Equal(t, "spec v3", d.Start.Key)
}

func TestFits(t *testing.T) {
	from, to := Target{"r35-1", "a", "1.35"}, Target{"r37-1", "b", "1.37"}
	steps := []Step{
		{Kind: StepControlPlane, KubernetesVersion: "1.36"}, {Kind: StepControlPlane, KubernetesVersion: "1.37"},
		{Kind: StepNodes, KubernetesVersion: "1.37"},
	}
	for name, test := range map[string]struct {
		step     int
		deployed string
		want     bool
	}{
		"before the first step":      {0, "1.35", true},
		"during the first step":      {0, "1.36", true},
		"not after the first step":   {0, "1.37", false},
		"between two updates":        {1, "1.36", true},
		"not before a finished step": {1, "1.35", false},
		"before the last step":       {2, "1.37", true},
		"after the last step":        {3, "1.37", true},
		"not before the last step":   {3, "1.36", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Record{State: Stopped, From: from, Target: to, Steps: steps, Step: test.step}
			deployed := from
			deployed.KubernetesVersion = test.deployed
			require.Equal(t, test.want, r.CanContinue(deployed, to))
		})
	}
}

func TestUnfinished(t *testing.T) {
	to := target("r36-1")
	for step, want := range map[int]bool{0: true, 1: true, 2: false} {
		require.Equal(t, want, (&Record{State: Stopped, Target: to, Steps: make([]Step, 2), Step: step}).StoppedBefore(to), step)
	}
	require.False(t, (&Record{State: Done, Target: to, Steps: make([]Step, 2)}).StoppedBefore(to))
	require.False(t, (&Record{State: Stopped, Target: target("r35-1"), Steps: make([]Step, 2)}).StoppedBefore(to))
}

func TestStepLimits(t *testing.T) {
	for kind, want := range map[StepKind]time.Duration{
		StepAddonsFirst: 3 * time.Hour, StepControlPlane: 4 * time.Hour, StepAddons: 3 * time.Hour, StepNodes: 120 * time.Hour,
		StepNodesBack: 120 * time.Hour,
	} {
		require.Equal(t, want, kind.Limit(), kind)
	}
}

// A spec with a time for its own release names that time. A time for another release does not concern the spec's.
func TestAgainWithATime(t *testing.T) {
	s := &api.Cluster{}
	s.Spec.Release.Name = "r36-1"
	s.Spec.Upgrade.At = &api.UpgradeAt{Time: noon.Format(time.RFC3339), Release: "r36-1"}
	require.Contains(t, RetryHint(s, OriginSpec, noon), "another time")
	require.Equal(t, "It begins when the cluster is idle", RetryHint(s, OriginChannel, noon))
	s.Spec.Upgrade.At.Release = "r37-1"
	require.Equal(t, "It begins when the cluster is idle", RetryHint(s, OriginSpec, noon))
}

func TestAgain(t *testing.T) {
	s := spec("r2")
	require.Contains(t, RetryHint(s, OriginAt, noon), "another time")
	require.Contains(t, RetryHint(s, OriginCommand, noon), "Start it again")
	require.Contains(t, RetryHint(nil, OriginSpec, noon), "Start it again")
	require.Equal(t, "It begins when the cluster is idle", RetryHint(s, OriginSpec, noon))
	nightly(s)
	require.Contains(t, RetryHint(s, OriginChannel, noon), "opens at 2026-11-22T21:00:00Z")
	require.Contains(t, RetryHint(s, OriginChannel, noon.Add(10*time.Hour)), "or in the next one, at 2026-11-23T21:00:00Z")
	s.Spec.Upgrade.NotBefore = "2026-12-01T00:00:00Z"
	require.Contains(t, RetryHint(s, OriginSpec, noon.Add(10*time.Hour)), "opens at 2026-12-01T00:00:00Z")
}

// OverrideReason describes what applies instead of the release of the spec, also after an upgrade that stopped.
func TestOverrideReason(t *testing.T) {
	record := func(change func(*Record)) *Record {
		r := &Record{
			Origin: OriginChannel, Overridden: "r36-1", From: target("r36-1"), Target: target("r37-1"), State: Done, Step: 1,
			Steps: []Step{{Kind: StepNodes}},
		}
		change(r)
		return r
	}
	stoppedAtFirst := func(named string) *Record {
		return record(func(r *Record) {
			r.Overridden, r.State, r.Step = named, Stopped, 0
			r.Steps = []Step{{Kind: StepControlPlane, KubernetesVersion: "1.37", Started: noon}, {Kind: StepNodes, KubernetesVersion: "1.37"}}
		})
	}
	tests := map[string]struct {
		record   *Record
		want     string
		deployed Target
	}{
		"no upgrade": {want: ""},
		"an upgrade of a channel": {
			record: record(func(*Record) {}), want: "release r37-1 (Kubernetes 1.37) applies, requested by its channel, until the spec names a " +
				"release other than r36-1",
		},
		"a stopped upgrade": {record: record(func(r *Record) {
			r.State, r.Step = Stopped, 0
		}), want: "the upgrade to release r37-1 (Kubernetes 1.37) stopped before its last step, and its changes stay"},
		"a stopped rollback to the release of the spec": {
			record: record(func(r *Record) {
				r.Origin, r.Overridden, r.State, r.Step = OriginRollback, "r37-1", Stopped, 0
			}), want: "the upgrade to release r37-1 (Kubernetes 1.37) stopped before its last step, and its changes stay",
		},
		"stopped before any change, and the spec names the deployed release": {
			record: stoppedAtFirst("r36-1"), deployed: target("r36-1"),
		},
		"stopped before any change, and the spec names another release": {
			record: stoppedAtFirst("r35-1"), deployed: target("r36-1"),
			want: "the upgrade to release r37-1 (Kubernetes 1.37) stopped before it changed anything",
		},
		"stopped after the update of the control plane": {
			record: stoppedAtFirst("r36-1"), deployed: Target{
				"r36-1", "", "1.37",
			}, want: "the upgrade to release r37-1 (Kubernetes 1.37) stopped before its last step, and its changes stay",
		},
		"an upgrade in flight":                      {record: record(func(r *Record) { r.State = Running })},
		"an upgrade of the spec":                    {record: record(func(r *Record) { r.Overridden = "" })},
		"the spec names the target":                 {record: record(func(r *Record) { r.Overridden = "r37-1" })},
		"the spec names the target and its version": {record: record(func(r *Record) { r.Overridden = "r37-1 (Kubernetes 1.37)" })},
		"a blocked upgrade after an override": {
			record: &Record{State: Blocked, Overridden: "r36-1", Target: target("r38-1"), Last: record(func(r *Record) {
				r.Origin = OriginRollback
			})},
			want: "release r37-1 (Kubernetes 1.37) applies, requested by a rollback, until the spec names a release other than r36-1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.record.OverrideReason(test.deployed)) })
	}
}
