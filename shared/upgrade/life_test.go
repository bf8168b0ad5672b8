package upgrade

// Lives of a cluster: specs, channels and times come and go at random, upgrades are blocked, stop, and end. Whatever happens, what must
// hold does.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// life of a cluster, in steps of minutes.
type life struct {
	*testing.T
	*rand.Rand
	in Situation
	// image of the pool, and add-ons, as they are deployed.
	image     string
	addons    map[string]string
	uploads   int
	rollbacks int
	started   map[string]int // by key, since another of its origin
	word      int64          // of the upgrade since which a spec named what the cluster is, and was converged to; -1 when none was
	latest    map[Origin]string
}

// catalogRelease is a release as the specs bucket has it: its image and kube-proxy are of its Kubernetes version.
func catalogRelease(name string) *api.Release {
	version, _ := kubernetes(name)
	return release(name, version, "ami-"+version, "v"+version+".0")
}

// proxies are kube-proxy's versions as EKS has them: each runs on its own minor and on the three after it.
// https://github.com/awsdocs/amazon-eks-user-guide/issues/790
func proxies() Compat {
	var all []AddonVersion
	for minor := 42; minor >= 33; minor-- {
		v := AddonVersion{Version: fmt.Sprintf("v1.%d.0", minor)}
		for runs := minor; runs <= minor+Skew; runs++ {
			v.Kubernetes = append(v.Kubernetes, version(runs))
		}
		all = append(all, v)
	}
	return Compat{kubeProxy: all}
}

func FuzzLives(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	for _, seed := range []uint64{805, 968, 1160, 1346} { // stopped when the control plane had moved, and upgraded from there
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		l := &life{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), started: map[string]int{}, latest: map[Origin]string{}, word: -1}
		l.in = Situation{Spec: spec("r36-1"), SpecVersion: "v0", Deployed: target("r36-1"), Now: noon, KubernetesVersion: kubernetes}
		l.in.Spec.Spec.Pools[1], l.in.Spec.Spec.Addons = api.Pool{Name: "added", Architecture: api.AMD64}, nil // it is not there yet
		l.in.Channels = &api.ChannelsSpec{}
		l.image, l.addons = "ami-1.36", map[string]string{"kube-proxy": "v1.36.0"}
		for range 300 {
			l.in.Now = l.in.Now.Add(time.Duration(1+l.IntN(90)) * time.Minute)
			l.actOfUsers()
			l.converge()
			l.machine()
		}
	})
}

func (l *life) name() string { return fmt.Sprintf("r%d-%d", 35+l.IntN(5), l.IntN(3)) }

// actOfUsers does something now and then.
func (l *life) actOfUsers() {
	s := *l.in.Spec
	switch l.IntN(24) {
	case 6:
		l.back()
		return
	case 0:
		s.Spec.Release.Name = l.name()
	case 1:
		s.Spec.Upgrade.At = &api.UpgradeAt{
			Time: l.in.Now.Add(time.Duration(l.IntN(300)-30) * time.Minute).Format(time.RFC3339), Release: l.name(),
		}
	case 2:
		s.Spec.Upgrade.Channel = []api.Channel{api.ChannelStable, api.ChannelRapid, api.ChannelNodes, api.ChannelNone}[l.IntN(4)]
	case 3:
		if s.Spec.Upgrade.Window == nil {
			nightly(&s)
		} else {
			s.Spec.Upgrade.Window = nil
		}
	case 4:
		s.Spec.KubernetesVersion = []string{"", "", "1.36", "1.37", "1.38"}[l.IntN(5)]
	case 5:
		channels := api.ChannelsSpec{Stable: l.name(), Rapid: l.name(), Nodes: map[string]string{"1.36": "r36-2", "1.37": "r37-2"}}
		l.in.Channels = &channels
		return
	default:
		return
	}
	l.uploads++
	l.in.Spec, l.in.SpecVersion = &s, fmt.Sprint("v", l.uploads)
}

// converge once, as planning decides.
func (l *life) converge() {
	d, err := Decide(l.in)
	require.NoError(l, err)
	l.hasTheWord(d)
	if d.SpecTarget != nil && Minor(d.SpecTarget.KubernetesVersion) < Minor(l.in.Deployed.KubernetesVersion) {
		return // the spec is refused
	}
	var next *api.Release
	pin := d.Old
	if d.Next != nil {
		next = catalogRelease(d.Next.Release)
		if d.Step.AppliesRelease() {
			pin = *d.Next
		}
	}
	resolved, errs := Effective(l.in.Spec, catalogRelease(d.Old.Release), next, d.Step)
	require.Nil(l, errs)
	d.Keep.Apply(l.in.Spec, resolved, d.Step, map[string]string{"a": l.image}, l.addons)

	before, after := Minor(l.in.Deployed.KubernetesVersion), Minor(resolved.Spec.KubernetesVersion)
	if d.Step.NodesRolledBack {
		require.Contains(l, []int{before, before - 1}, after, "a rollback takes the control plane one minor version back, or resumes")
	} else {
		require.Contains(l, []int{before, before + 1}, after, "the control plane moves one minor version at a time, and never back")
	}
	nodes, proxy := Minor(resolved.Spec.Pools[0].ImageID[4:]), Minor(resolved.Spec.Addons[0].Version[1:])
	for what, minor := range map[string]int{"kubelets": nodes, "kube-proxy": proxy} {
		require.LessOrEqual(l, minor, min(before, after), "%s are never newer than the control plane, also while it moves", what)
		require.GreaterOrEqual(l, minor, max(before, after)-Skew, "%s are never too old", what)
	}
	require.LessOrEqual(l, Minor(resolved.Spec.Pools[1].ImageID[4:]), after,
		"nor are kubelets of a pool that is added, which comes after the control plane")
	if l.IntN(6) > 0 || !l.in.Record.inFlight() { // or the converge fails at once
		l.in.Deployed = Target{pin.Release, pin.SHA256, resolved.Spec.KubernetesVersion}
		l.image, l.addons = resolved.Spec.Pools[0].ImageID, addonVersions(resolved)
		// one that stopped may not have moved it yet
		if last := l.in.Record.LastChange(); l.in.Record != nil && (last == nil || last.State == Done || last.State == Running ||
			!last.openStep().AppliesRelease()) {
			require.Equal(l, [2]string{pin.Release, pin.SHA256}, [2]string{l.in.Record.Pin().Release, l.in.Record.Pin().SHA256}, "%+v", l.in.Record)
		}
	}
	if d.Pending != nil {
		require.Nil(l, d.Start)
	}
	if !d.RecheckAt.IsZero() {
		require.True(l, d.RecheckAt.After(l.in.Now))
	}
	if d.Start != nil {
		l.start(d)
	}
}

// hasTheWord holds a decision to what specs may expect: what one named, and the cluster became, stands in for no other spec from then on.
func (l *life) hasTheWord(d Decision) {
	if l.in.Record.inFlight() {
		return
	}
	number := int64(0)
	if l.in.Record != nil {
		number = l.in.Record.Number
	}
	wants, err := l.in.specTarget()
	require.NoError(l, err)
	switch {
	case sameTarget(wants, l.in.Deployed) && d.SpecTarget == nil && !l.in.Record.targetApplies(l.in.Spec) &&
		l.IntN(3) > 0: // or it is not converged
		if d.OverrideCleared {
			record := *l.in.Record
			if record.Last != nil {
				last := *record.Last
				record.Last = &last
			}
			record.ClearOverride()
			l.in.Record = &record
		}
		l.word = number
	case !sameTarget(wants, l.in.Deployed) && l.word == number:
		require.NotNil(l, d.SpecTarget, "another spec requests something, though the one before the last upgrade named the same")
	}
}

// start what was decided.
func (l *life) start(d Decision) {
	require.False(l, l.in.Record.inFlight(), "one at a time")
	s := d.Start
	open, _ := l.in.Spec.Spec.Upgrade.Open(l.in.Now)
	early, inTime := false, false // of spec.upgrade.at, when that is about this release
	if at := l.in.Spec.Spec.Upgrade.At; at != nil && at.Release == s.Release {
		t, err := time.Parse(time.RFC3339, at.Time)
		require.NoError(l, err)
		late := l.in.Now.Sub(t)
		early, inTime = late < 0, late >= 0 && late < MissedAfter
	}
	switch s.Origin {
	case OriginAt:
		require.True(l, inTime)
	case OriginSpec:
		require.False(l, early, "not before its time")
		require.True(l, open || inTime, "never outside a window, unless it has a time")
	default:
		require.True(l, open, "never outside a window")
	}
	if l.latest[s.Origin] != s.Key && s.Origin == OriginChannel {
		delete(l.started, s.Key) // another came between
	}
	blocked := l.in.Record != nil && l.in.Record.State == Blocked && l.in.Record.Key == s.Key && s.Origin == OriginChannel
	require.True(l, l.started[s.Key] == 0 || blocked, "%s: each key fires once", s.Key)
	l.started[s.Key]++
	l.latest[s.Origin] = s.Key

	to := target(s.Release)
	if to.Release == l.in.Deployed.Release {
		to = l.in.Deployed
	}
	to.KubernetesVersion, _ = kubernetes(s.Release)
	if s.KubernetesVersion != "" {
		to.KubernetesVersion = s.KubernetesVersion
	}
	changed := l.in.Record.LastChange()
	l.in.Record = Begin(l.in.Record, *s, l.in.Spec, l.in.Deployed, to, "x", l.in.Now)
	image, _ := kubernetes(s.Release)
	from, to2 := at(l.in.Deployed.KubernetesVersion, "kube-proxy "+l.addons["kube-proxy"]), at(to.KubernetesVersion, "kube-proxy v"+image+".0")
	if steps := l.in.Record.Steps; len(steps) > 0 {
		way := Steps
		if steps[0].NodesRolledBack {
			way = RollbackSteps
		}
		l.replan(func() ([]Step, error) { return way(from, to2, proxies()) })
		return
	}
	if changed != nil {
		require.Equal(l, changed.Steps, l.in.Record.LastChange().Steps, "what changed the cluster is known until something else does")
	}
	if Minor(image) > Minor(to.KubernetesVersion) {
		l.end(Blocked) // the nodes would be newer: a check says so
		return
	}
	steps, err := Steps(from, to2, proxies())
	// A check finds components that are too old: a stopped upgrade may have left old nodes, or an old kube-proxy.
	if err != nil || Minor(to.KubernetesVersion)-min(Minor(l.image[4:]), Minor(l.addons["kube-proxy"][1:])) > Skew {
		l.end(Blocked)
		return
	}
	l.in.Record.Steps = steps
}

// back requests a rollback.
func (l *life) back() {
	last := l.in.Record.LastChange()
	if l.in.Record.inFlight() || last == nil || last.Origin == OriginRollback && last.State == Done {
		return
	}
	to := last.From
	switch {
	case last.Origin == OriginRollback:
		to = last.Target
	case last.RollbackTarget != nil:
		to = *last.RollbackTarget
	}
	l.rollbacks++
	l.in.Record = Begin(l.in.Record, Start{Origin: OriginRollback, Key: fmt.Sprint("rollback ", l.rollbacks)}, l.in.Spec, l.in.Deployed,
		to, "x", l.in.Now)
	image, _ := kubernetes(to.Release)
	back := func() ([]Step, error) {
		return RollbackSteps(at(l.in.Deployed.KubernetesVersion, "kube-proxy "+l.addons["kube-proxy"]),
			at(to.KubernetesVersion, "kube-proxy v"+image+".0"), proxies())
	}
	if len(l.in.Record.Steps) > 0 {
		l.replan(back)
		return
	}
	steps, err := back()
	if err != nil || Minor(image) > Minor(to.KubernetesVersion) {
		l.end(Blocked)
		return
	}
	l.in.Record.Steps = steps
}

// replan the steps of an upgrade that continues, where the control plane has yet to move: another spec may have brought
// nodes or kube-proxy elsewhere.
func (l *life) replan(plan func() ([]Step, error)) {
	r := l.in.Record
	if from := FirstToReplan(r.Steps, r.Step, l.in.Deployed.KubernetesVersion); from >= 0 {
		steps, err := plan()
		require.NoError(l, err)
		r.Steps, r.Step = Replan(r.Steps, from, steps), from
	}
}

func (l *life) end(state State) {
	l.in.Record.State, l.in.Record.Ended = state, l.in.Now
}

// machine advances the upgrade in flight by one step.
func (l *life) machine() {
	r := l.in.Record
	if !r.inFlight() {
		return
	}
	again := *r
	again.Answered = maps.Clone(r.Answered)
	l.in.Record = &again
	switch {
	case r.State == Checking && l.IntN(4) == 0 && r.LastChange() != r:
		l.end(Blocked)
	case r.State == Checking:
		again.State, again.Last, again.Steps = Running, nil, slices.Clone(r.Steps)
		again.Steps[0].Started = l.in.Now
	case l.IntN(8) == 0 || r.SupersededReason(l.in.Spec) != "":
		l.end(Stopped)
	case r.Step == len(r.Steps):
		l.end(Done)
		again.Adopt(l.in.Spec, l.in.SpecVersion)
	case l.wasMade(r.openStep()):
		if again.Step++; again.Step < len(again.Steps) {
			again.Steps = slices.Clone(again.Steps)
			again.Steps[again.Step].Started = l.in.Now
		}
	}
}

// wasMade reports whether a step was made.
func (l *life) wasMade(s Step) bool {
	switch s.Kind {
	case StepControlPlane:
		return l.in.Deployed.KubernetesVersion == s.KubernetesVersion
	case StepNodes:
		return l.in.Deployed.Release == l.in.Record.Target.Release
	case StepNodesBack:
		image, _ := kubernetes(l.in.Record.Target.Release)
		return l.image == "ami-"+image
	}
	return true
}
