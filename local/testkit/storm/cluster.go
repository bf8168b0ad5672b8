package storm

// What people want of a cluster, as they would write it.

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
)

// wish is a spec in the making.
type wish struct {
	name  string
	minor int
	rev   int // of its release
	// channel that it follows, and a release that it moves to at a time, since the beginning of the world.
	channel   string
	atRelease string
	at        time.Duration
	// gate is when upgrades that the spec or its channel ask for may begin; alarm that they look at an alarm, and silence it.
	gate      gate
	alarm     bool
	team      int // a tag's value: changed in place everywhere
	paused    bool
	protected bool
	pools     []wishedPool
	// flaw is what makes the spec one that cannot be used.
	flaw flaw
}

type wishedPool struct {
	name     string
	min, max int
	motd     int // a file's content: a change replaces the nodes
	// the drain policy
	timeout   time.Duration
	onTimeout string
	// the update policy: how many nodes may be out, and how many more there may be meanwhile; refresh is its strategy.
	unavailable, surge int
	refresh            bool
	// locked nodes have a taint that system pods do not tolerate.
	locked bool
	// rollAt is when its nodes are replaced, since the beginning of the world; 0 is never.
	rollAt time.Duration
}

// yaml of the wish, in a world that began then.
func (w wish) yaml(began time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  release: {name: %s}
  deletionProtection: %t
  paused: %t
  tags: {team: t%d}
  upgrade: %s
  network:
    cidr: 10.0.0.0/16
    zones: [%[7]sa, %[7]sb]
    natGateways: Single
  pools:
`, w.name, w.release(), w.protected, w.paused, w.team, w.upgrade(began), harness.Region)
	for _, p := range w.pools {
		strategy, rollAt, taints := "RollingUpdate", "", ""
		if p.refresh {
			strategy = "InstanceRefresh"
		}
		if p.rollAt > 0 {
			rollAt = fmt.Sprintf("rollAt: %q, ", began.Add(p.rollAt).UTC().Format(time.RFC3339))
		}
		if p.locked {
			taints = "taints: [{key: dedicated, value: batch, effect: NoSchedule}], "
		}
		fmt.Fprintf(&b, "    - {name: %s, instanceTypes: [m7i.large], minSize: %d, maxSize: %d, drain: {timeout: %s, onTimeout: %s}, "+
			"%s%supdate: {strategy: %s, maxUnavailable: %d, maxSurge: %d}, files: [{path: /etc/motd, content: \"%d\"}]}\n",
			p.name, p.min, p.max, p.timeout, p.onTimeout, rollAt, taints, strategy, p.unavailable, p.surge, p.motd)
	}
	b.WriteString(w.flaw.line)
	return b.String()
}

// release of a Kubernetes minor: each has two.
func release(minor, rev int) string { return fmt.Sprintf("r%d-%d", minor, rev) }

// release that the spec names.
func (w *wish) release() string { return cmp.Or(w.flaw.release, release(w.minor, w.rev)) }

// upgrade is spec.upgrade.
func (w wish) upgrade(began time.Time) string {
	fields := w.flaw.fields(w.gate.fields(began))
	switch {
	case w.atRelease != "":
		fields = append(fields, fmt.Sprintf("at: {time: %q, release: %s}", w.gate.written(began, w.at), w.atRelease))
	case w.channel != "":
		fields = append(fields, "channel: "+w.channel)
	}
	if w.alarm {
		fields = append(fields, fmt.Sprintf("alarms: [%s]", alarmOf(w.name)))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (w *wish) pool(name string) *wishedPool {
	for i := range w.pools {
		if w.pools[i].name == name {
			return &w.pools[i]
		}
	}
	return nil
}

// apps that run in a cluster. Budgets let them go one by one, or two by two.
func apps(r *rand.Rand) (all []apiserver.App) {
	for i := range 1 + r.IntN(3) {
		a := apiserver.App{
			Name: fmt.Sprintf("app%d", i), Replicas: 1 + r.IntN(3), MaxUnavailable: []int{-1, 1, 1, 1, 2}[r.IntN(5)],
			Start: time.Duration(1+r.IntN(60)) * time.Second, Stop: time.Duration(1+r.IntN(40)) * time.Second, Grace: 30 * time.Second,
		}
		all = append(all, a)
	}
	return all
}
