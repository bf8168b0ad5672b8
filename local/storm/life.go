package storm

// What people do to a cluster, at random.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
)

// act is one thing that somebody does.
type act struct {
	at      time.Duration
	cluster string
	what    string
	// spec to be uploaded; nil when nothing is.
	spec *wish
	// remove deletes the spec; converge starts an execution by hand, which replaces the nodes of roll, if that is a pool.
	remove, converge bool
	roll             string
	// unstack is a stack that somebody deletes by hand.
	unstack string
	// upgrade starts the upgrade machine by hand, as often as times says; cancel stops the one that runs.
	upgrade *events.Upgrade
	times   int
	cancel  bool
	// channels moves every channel on.
	channels bool
	// kubernetes makes what Kubernetes makes in an account.
	kubernetes bool
}

// firstMinor is the oldest Kubernetes minor of a life, lastMinor the newest.
const firstMinor, lastMinor = 34, 36

// lives are the acts of several clusters in the order of time, ending with what each is to be in the end.
func lives(r *rand.Rand, clusters int) (acts []act, last map[string]*wish) {
	last = map[string]*wish{}
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		mine, end := life(r, name)
		acts = append(acts, mine...)
		last[name] = end
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	return acts, last
}

// pauses between two acts of a life: most changes come when the last one is done, some while it is under way, some at once.
func pause(r *rand.Rand) time.Duration {
	switch r.IntN(4) {
	case 0:
		return time.Duration(r.IntN(20)) * time.Second
	case 1:
		return time.Duration(1+r.IntN(10)) * time.Minute
	}
	return time.Duration(10+r.IntN(40)) * time.Minute
}

// somePool with a drain policy that it keeps.
func somePool(r *rand.Rand, name string, least, most int) wishedPool {
	p := wishedPool{name: name, min: least, max: most, timeout: time.Duration(10+10*r.IntN(6)) * time.Minute, onTimeout: pick(r, "Wait", "Wait", "Force", "Continue"), surge: 1}
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

func life(r *rand.Rand, name string) (acts []act, end *wish) {
	w := wish{name: name, minor: firstMinor + r.IntN(2), pools: []wishedPool{somePool(r, "a", 1+r.IntN(2), 3)}, protected: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		w.pools = append(w.pools, somePool(r, "b", r.IntN(2), 2))
	}
	if r.IntN(6) == 0 {
		w.channel = pick(r, "Stable", "Rapid", "Nodes")
	}
	at := time.Duration(r.IntN(120)) * time.Second
	upload := func(what string) {
		spec := w
		spec.pools = slices.Clone(w.pools)
		acts = append(acts, act{at: at, cluster: name, what: what, spec: &spec})
	}
	upgraded := false // one release after another, and who knows when
	// after an upgrade began some are stopped, and some taken back.
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
	upload("create")
	for range 1 + r.IntN(4) {
		at += pause(r)
		p := &w.pools[r.IntN(len(w.pools))]
		switch r.IntN(18) {
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
				gone := w.pools[len(w.pools)-1].name
				w.pools = w.pools[:len(w.pools)-1]
				upload("remove pool " + gone)
			}
		case 5:
			if w.minor < lastMinor && !upgraded {
				upgraded = true
				w.minor++
				upload("upgrade")
				after()
			}
		case 6:
			w.broken = true
			upload("break the spec")
			at += pause(r)
			w.broken = false
			upload("mend the spec")
		case 7:
			w.paused = true
			upload("pause")
			at += pause(r)
			w.team++
			upload("change while paused")
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
		case 11:
			acts = append(acts, act{at: at, cluster: name, what: "roll " + p.name + " by hand", converge: true, roll: p.name})
		case 12:
			p.rollAt = at + time.Duration(1+r.IntN(20))*time.Minute
			upload("replace the nodes of " + p.name + " later")
		case 13:
			stack := pick(r, names.PoolStack(p.name), names.PoolStack(p.name), names.Addons, names.NodeAddons)
			acts = append(acts, act{at: at, cluster: name, what: "unstack " + stack + " by hand", unstack: stack})
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
				to := release(w.minor+1, r.IntN(2))
				if r.IntN(2) == 0 {
					w.atRelease, w.at = to, at+time.Duration(1+r.IntN(20))*time.Minute
					upload("upgrade at a time")
				} else {
					acts = append(acts, act{at: at, cluster: name, what: "upgrade by hand", upgrade: &events.Upgrade{Cluster: name, Release: to}, times: 1 + r.IntN(2)})
				}
				after()
			}
		case 17:
			acts = append(acts, act{at: at, cluster: name, what: "channels move", channels: true})
			after()
		case 14:
			acts = append(acts, act{at: at, cluster: name, what: "kubernetes makes load balancers and volumes", kubernetes: true})
		}
	}
	return acts, &w
}
