package storm

// Random actions of operators.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
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

// kindsOfActs is the number of cases of a life.
const kindsOfActs = 45

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

func life(r *rand.Rand, name string, c clocks) (acts []act, end *wish) {
	w := wish{name: name, minor: firstMinor + r.IntN(2), pools: []wishedPool{somePool(r, "a", 1+r.IntN(2), 3)}, protected: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		w.pools = append(w.pools, somePool(r, "b", r.IntN(2), 2))
	}
	if r.IntN(6) == 0 {
		w.channel = pick(r, "Stable", "Rapid", "Nodes")
	}
	if r.IntN(4) == 0 || c.zone != "" {
		w.gate = someGate(r, c)
	}
	w.alarm = r.IntN(3) == 0
	at := time.Duration(r.IntN(120)) * time.Second
	upload := func(what string) {
		spec := w
		spec.pools = slices.Clone(w.pools)
		acts = append(acts, act{at: at, cluster: name, what: what, spec: &spec})
	}
	upgraded := false // one release after another, at unknown times
	// after an upgrade began, some are stopped and some are rolled back
	after := func() {
		switch r.IntN(6) {
		case 0:
			at += time.Duration(r.IntN(25)) * time.Minute
			acts = append(acts, act{at: at, cluster: name, what: "stop the upgrade", cancel: true})
		case 1:
			at += time.Duration(20+r.IntN(60)) * time.Minute
			acts = append(acts, act{at: at, cluster: name, what: "roll back", upgrade: &events.Upgrade{Cluster: name, Rollback: true}, times: 1})
		}
	}
	// ill begins a condition of the cluster, which operators repair before the end most of the time.
	ill := func(what, repaired string, befall func(w *world, on bool)) {
		acts = append(acts, act{at: at, cluster: name, what: what, do: func(w *world) { befall(w, true) }})
		if r.IntN(3) > 0 {
			acts = append(acts, act{at: at + pause(r) + pause(r), cluster: name, what: repaired, do: func(w *world) { befall(w, false) }})
		}
	}
	// spoil uploads an invalid spec, which operators fix later.
	spoil := func(what string, by flaw) {
		w.flaw = by
		upload(what)
		at += pause(r)
		w.flaw = flaw{}
		upload("mend the spec")
	}
	// ask requests a release that the cluster cannot reach: by the spec, at a time or by an operator.
	ask := func(what, to string) {
		switch how := r.IntN(3); {
		case how == 0:
			spoil(what+" by the spec", flaw{release: to})
		case how == 1 && w.channel == "" && w.atRelease == "":
			w.atRelease, w.at = to, at+time.Duration(1+r.IntN(20))*time.Minute
			w.gate = w.gate.letting(w.at)
			upload(what + " at a time")
			if r.IntN(3) > 0 {
				at += pause(r) + pause(r)
				w.atRelease, w.at = "", 0
				upload("mend the spec")
			}
		default:
			acts = append(acts, act{at: at, cluster: name, what: what + " by hand", upgrade: &events.Upgrade{Cluster: name, Release: to}, times: 1})
		}
	}
	upload("create")
	for range 1 + r.IntN(4) {
		at += pause(r)
		p := &w.pools[r.IntN(len(w.pools))]
		switch r.IntN(kindsOfActs) {
		case 0:
			w.team++
			upload("tags")
		case 1:
			p.motd++
			upload("replace the nodes of " + p.name)
		case 2:
			p.min = r.IntN(3)
			p.max = max(p.max, p.min, 1)
			upload("resize " + p.name)
		case 3:
			if w.pool("c") == nil {
				w.pools = append(w.pools, somePool(r, "c", 1, 2))
				upload("add pool c")
			}
		case 4:
			if len(w.pools) > 1 {
				removed := w.pools[len(w.pools)-1].name
				w.pools = w.pools[:len(w.pools)-1]
				upload("remove pool " + removed)
			}
		case 5:
			if w.minor < lastMinor && !upgraded {
				upgraded = true
				if leap := r.IntN(2) == 0 && w.minor+2 <= lastMinor; leap {
					w.minor, w.rev = w.minor+2, 1
					upload("leap by the spec")
				} else {
					w.minor++
					upload("upgrade")
				}
				after()
			}
		case 6:
			spoil("break the spec", someFlaw(r, "break the spec"))
		case 7:
			w.paused = true
			upload("pause")
			at += pause(r)
			w.team++
			upload("change while paused")
			acts = append(acts, act{at: at, cluster: name, what: "roll " + p.name + " by hand while paused", roll: p.name})
			at += pause(r)
			w.paused = false
			upload("go on")
		case 9, 10:
			acts = append(acts, act{at: at, cluster: name, what: "delete", remove: true})
			if r.IntN(2) == 0 {
				return acts, nil
			}
			at += pause(r)
			upload("create anew")
		case 8:
			acts = append(acts, act{at: at, cluster: name, what: "converge by hand", converge: true})
			if w.channel == "" && w.atRelease == "" && !upgraded {
				same := events.Upgrade{Cluster: name, Release: release(w.minor, w.rev)}
				acts = append(acts, act{at: at, cluster: name, what: "upgrade by hand to what it is", do: func(w *world) { w.upgrade(same) }})
			}
		case 11:
			acts = append(acts, act{at: at, cluster: name, what: "roll " + p.name + " by hand", converge: true, roll: p.name})
		case 12:
			p.rollAt = at + time.Duration(1+r.IntN(20))*time.Minute
			upload("replace the nodes of " + p.name + " later")
		case 13:
			stack := pick(r, names.PoolStack(p.name), names.PoolStack(p.name), names.Addons, names.NodeAddons)
			acts = append(acts, act{at: at, cluster: name, what: "unstack " + stack + " by hand", deletedStack: stack})
		case 15:
			if w.channel == "" && !upgraded {
				upgraded = true
				w.rev++
				upload("upgrade within its minor")
				after()
			}
		case 16:
			if w.channel == "" && w.minor < lastMinor && !upgraded {
				upgraded = true
				what, to := "upgrade", release(w.minor+1, r.IntN(2))
				if r.IntN(2) == 0 && w.minor+2 <= lastMinor {
					what, to = "leap", release(w.minor+2, 1)
				}
				if r.IntN(2) == 0 {
					w.atRelease, w.at = to, at+time.Duration(1+r.IntN(20))*time.Minute
					w.gate = w.gate.letting(w.at)
					upload(what + " at a time")
					if r.IntN(2) == 0 {
						acts = append(acts, act{
							at: w.at + time.Duration(r.IntN(300))*time.Second, cluster: name, what: "fire the schedule twice", do: (*world).fireTwice,
						})
					}
				} else {
					acts = append(acts, act{
						at: at, cluster: name, what: what + " by hand", upgrade: &events.Upgrade{Cluster: name, Release: to}, times: 1 + r.IntN(2),
					})
				}
				after()
			}
		case 17:
			acts = append(acts, act{at: at, cluster: name, what: "channels move", channels: true})
			after()
		case 18, 19:
			ill("block by a budget", "unblock", func(w *world, on bool) { w.block(name, on) })
			if r.IntN(2) == 0 {
				at += time.Duration(r.IntN(10)) * time.Minute
				p.motd++
				upload("replace the nodes of " + p.name)
			}
		case 20:
			if w.alarm {
				ill("alarm", "quiet", func(w *world, on bool) { w.ring(name, on) })
			}
		case 21:
			w.gate = someGate(r, c)
			if w.atRelease != "" {
				w.gate = w.gate.letting(w.at)
			}
			upload("window of upgrades")
		case 14:
			acts = append(acts, act{at: at, cluster: name, what: "kubernetes makes load balancers and volumes", kubernetes: true})
		case 22:
			if was := p.name; len(was) == 1 {
				p.name += "x"
				upload("rename pool " + was + " to " + p.name)
			}
		case 23:
			w.protected = !w.protected
			upload(map[bool]string{true: "protect", false: "unprotect"}[w.protected])
		case 24, 25:
			pool, share := p.name, r.Float64()
			if r.IntN(2) == 0 { // among nodes that are replaced
				p.motd++
				upload("replace the nodes of " + pool)
				at += time.Duration(r.IntN(600)) * time.Second
			}
			acts = append(acts, act{at: at, cluster: name, what: "autoscale " + pool, do: func(w *world) { w.autoscale(name, pool, share) }})
		case 26:
			stack := pick(r, names.PoolStack(p.name), names.Addons, names.Network, names.ControlPlane)
			acts = append(acts, act{at: at, cluster: name, what: "untag " + stack + " by hand", do: func(w *world) { w.removeTag(name, stack) }})
		case 27, 28:
			pool, which := p.name, r.IntN(3)
			ill("silence a node of "+pool, "its kubelet speaks", func(w *world, on bool) { w.silence(name, pool, which, on) })
		case 38:
			pool, which := p.name, r.IntN(3)
			acts = append(acts, act{at: at, cluster: name, what: "delete a Node of " + pool + " by hand", do: func(w *world) {
				w.deleteNode(name, pool, which)
			}})
		case 29:
			ill("use up the quota", "a quota is raised", func(w *world, on bool) { w.useUp(name, on) })
		case 30:
			removed := [2]int{w.minor, w.rev}
			ill("delete the release "+release(removed[0], removed[1]), "the release is back", func(w *world, on bool) {
				w.withdraw(name, removed, on)
			})
		case 31:
			what := pick(r, "cron that AWS refuses", "shut window for ever")
			spoil(what, someFlaw(r, what))
		case 32:
			ask("unknown release", unknown)
		case 33:
			ask("downgrade", release(w.minor-1, 0))
		case 34, 35:
			if w.minor+2 <= lastMinor && !upgraded && w.channel == "" { // the channel may have moved it by one version
				upgraded = true // whatever its outcome
				ask("skip a minor", release(w.minor+2, 0))
			}
		case 36:
			acts = append(acts, act{at: at, cluster: name, what: "fire the schedule twice", do: (*world).fireTwice})
		case 39:
			stack := pick(r, names.Network, names.ControlPlane)
			acts = append(acts, act{at: at, cluster: name, what: "lose " + stack + " by hand", do: func(w *world) {
				w.deleteLiveStack(name, stack)
			}})
			return acts, &w
		case 41:
			if w.protected {
				w.protected = false
				upload("unprotect")
				at += pause(r)
			}
			acts = append(acts, act{at: at, cluster: name, what: "kubernetes makes load balancers and volumes", kubernetes: true})
			at += pause(r)
			acts = append(acts, act{at: at, cluster: name, what: "lose control-plane by hand", do: func(w *world) { w.loseUnprotected(name) }})
			at += time.Duration(r.IntN(40)) * time.Minute
			acts = append(acts, act{at: at, cluster: name, what: "delete", remove: true})
			return acts, nil
		case 42:
			if !w.protected {
				w.protected = true
				upload("protect")
				at += pause(r)
			}
			acts = append(acts, act{at: at, cluster: name, what: "turn termination protection off by hand", do: func(w *world) { w.unguard(name) }})
			at += time.Duration(r.IntN(60)) * time.Second
			acts = append(acts, act{at: at, cluster: name, what: "delete", remove: true})
			return acts, nil
		case 40:
			if w.minor < lastMinor && !upgraded {
				upgraded = true
				to := w.minor + 1
				acts = append(acts, act{at: at, cluster: name, what: "move the control plane by hand", do: func(w *world) {
					w.changeVersion(name, to)
				}})
				if r.IntN(3) > 0 {
					at += pause(r)
					w.minor = to
					upload("follow the control plane")
					after()
				}
			}
		case 43, 44:
			w.lock(true)
			upload("lock all pools by a taint")
			for range r.IntN(3) {
				at += pause(r)
				switch r.IntN(3) {
				case 0:
					w.team++
					upload("tags")
				case 1:
					p.motd++
					upload("replace the nodes of " + p.name)
				case 2:
					acts = append(acts, act{at: at, cluster: name, what: "roll " + p.name + " by hand", converge: true, roll: p.name})
				}
			}
			at += pause(r)
			w.lock(false)
			upload("unlock all pools")
		case 37:
			addon := pick(r, slices.Sorted(maps.Keys(altered))...)
			ill("alter "+addon, addon+" is restored", func(w *world, on bool) { w.alter(name, addon, on) })
		}
	}
	return acts, &w
}
