package storm

// Random actions of operators.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
)

// act is one action.
type act struct {
	at      time.Duration
	cluster string
	what    string
	// spec to upload, or nil.
	spec *wish
	// remove deletes the spec. converge starts an execution, which replaces the nodes of the pool roll, if set.
	remove, converge bool
	roll             string
	// deletedStack is a stack that an operator deletes.
	deletedStack string
	// upgrade starts the upgrade machine, times often. cancel stops the running one.
	upgrade *events.Upgrade
	times   int
	cancel  bool
	// channels moves every channel to its next release.
	channels bool
	// kubernetes creates the resources that Kubernetes creates in an account.
	kubernetes bool
	// do is any other action: conditions that begin and end, and changes outside drover.
	do func(*world)
}

// firstMinor is the oldest Kubernetes minor version of a life, lastMinor the newest.
const firstMinor, lastMinor = 34, 36

// lives returns the acts of several clusters in the order of time, and the final desired state of each.
func lives(r *rand.Rand, clusters int, c clocks) (acts []act, last map[string]*wish) {
	last = map[string]*wish{}
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		mine, end := life(r, name, c)
		acts = append(acts, mine...)
		last[name] = end
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	return acts, last
}

// pause returns the time between two acts of a life: most follow the end of the previous operation, some come during it,
// some immediately.
func pause(r *rand.Rand) time.Duration {
	switch r.IntN(4) {
	case 0:
		return time.Duration(r.IntN(20)) * time.Second
	case 1:
		return time.Duration(1+r.IntN(10)) * time.Minute
	}
	return time.Duration(10+r.IntN(40)) * time.Minute
}

// somePool returns a pool with a drain policy that it keeps.
func somePool(r *rand.Rand, name string, least, most int) wishedPool {
	p := wishedPool{
		name: name, min: least, max: most, timeout: time.Duration(10+10*r.IntN(6)) * time.Minute,
		onTimeout: pick(r, "Wait", "Wait", "Force", "Continue"), surge: 1,
	}
	switch r.IntN(6) {
	case 0:
		p.unavailable, p.surge = 1, 0
	case 1:
		p.unavailable = 1
	case 2:
		p.surge = 2
	}
	p.refresh = r.IntN(5) == 0
	return p
}

// lifeBuilder draws the acts of one cluster.
type lifeBuilder struct {
	random  *rand.Rand
	cluster string
	clocks  clocks
	// spec is the newest desired state. pool is the one of its pools that the present act changes.
	spec wish
	pool *wishedPool
	// at is the time of the next act.
	at   time.Duration
	acts []act
	// upgraded reports whether an act has requested an upgrade. A life has one, because it ends at an unknown time.
	upgraded bool
	// ended reports whether no other act may follow. deleted reports whether no spec exists then.
	ended, deleted bool
}

// life returns the acts of a cluster, and its final desired state; nil if it is deleted.
func life(r *rand.Rand, name string, c clocks) (acts []act, end *wish) {
	b := &lifeBuilder{random: r, cluster: name, clocks: c, spec: wish{
		name: name, minor: firstMinor + r.IntN(2), pools: []wishedPool{somePool(r, "a", 1+r.IntN(2), 3)}, protected: r.IntN(2) == 0,
	}}
	if r.IntN(2) == 0 {
		b.spec.pools = append(b.spec.pools, somePool(r, "b", r.IntN(2), 2))
	}
	if r.IntN(6) == 0 {
		b.spec.channel = pick(r, "Stable", "Rapid", "Nodes")
	}
	if r.IntN(4) == 0 || c.zone != "" {
		b.spec.gate = someGate(r, c)
	}
	b.spec.alarm = r.IntN(3) == 0
	b.at = time.Duration(r.IntN(120)) * time.Second
	b.upload("create")
	for count := 1 + r.IntN(4); count > 0 && !b.ended; count-- {
		b.pause()
		b.pool = &b.spec.pools[r.IntN(len(b.spec.pools))]
		someKind(r).add(b)
	}
	if b.deleted {
		return b.acts, nil
	}
	return b.acts, &b.spec
}

// pause moves the next act by a random pause.
func (b *lifeBuilder) pause() { b.at += pause(b.random) }

// add adds an act at the present time.
func (b *lifeBuilder) add(a act) {
	a.at, a.cluster = b.at, b.cluster
	b.acts = append(b.acts, a)
}

// upload uploads the spec.
func (b *lifeBuilder) upload(what string) {
	spec := b.spec
	spec.pools = slices.Clone(b.spec.pools)
	b.add(act{what: what, spec: &spec})
}

// do adds any other action.
func (b *lifeBuilder) do(what string, do func(*world)) { b.add(act{what: what, do: do}) }

// replaceNodes uploads a change that replaces the nodes of the pool.
func (b *lifeBuilder) replaceNodes() {
	b.pool.motd++
	b.upload("replace the nodes of " + b.pool.name)
}

// interruptUpgrade stops some upgrades after their begin, and rolls some back.
func (b *lifeBuilder) interruptUpgrade() {
	switch b.random.IntN(6) {
	case 0:
		b.at += time.Duration(b.random.IntN(25)) * time.Minute
		b.add(act{what: "stop the upgrade", cancel: true})
	case 1:
		b.at += time.Duration(20+b.random.IntN(60)) * time.Minute
		b.add(act{what: "roll back", upgrade: &events.Upgrade{Cluster: b.cluster, Rollback: true}, times: 1})
	}
}

// beginCondition begins a condition of the cluster, which operators repair before the end most of the time.
func (b *lifeBuilder) beginCondition(what, repaired string, set func(w *world, on bool)) {
	b.do(what, func(w *world) { set(w, true) })
	if b.random.IntN(3) > 0 {
		b.acts = append(b.acts, act{
			at: b.at + pause(b.random) + pause(b.random), cluster: b.cluster, what: repaired, do: func(w *world) { set(w, false) },
		})
	}
}

// uploadInvalid uploads an invalid spec, which operators fix later.
func (b *lifeBuilder) uploadInvalid(what string, by flaw) {
	b.spec.flaw = by
	b.upload(what)
	b.pause()
	b.spec.flaw = flaw{}
	b.upload("fix the spec")
}

// requestUnreachable requests a release that the cluster cannot reach: by the spec, at a time or by an operator.
func (b *lifeBuilder) requestUnreachable(what, to string) {
	switch how := b.random.IntN(3); {
	case how == 0:
		b.uploadInvalid(what+" by the spec", flaw{release: to})
	case how == 1 && b.spec.channel == "" && b.spec.atRelease == "":
		b.uploadWithTime(what, to)
		if b.random.IntN(3) > 0 {
			b.pause()
			b.pause()
			b.spec.atRelease, b.spec.at = "", 0
			b.upload("fix the spec")
		}
	default:
		b.add(act{what: what + " by hand", upgrade: &events.Upgrade{Cluster: b.cluster, Release: to}, times: 1})
	}
}

// uploadWithTime uploads a spec that requests a release for a time in the next minutes.
func (b *lifeBuilder) uploadWithTime(what, to string) {
	b.spec.atRelease, b.spec.at = to, b.at+time.Duration(1+b.random.IntN(20))*time.Minute
	b.spec.gate = b.spec.gate.letting(b.spec.at)
	b.upload(what + " at a time")
}
