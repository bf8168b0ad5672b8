package storm

// Desired states of clusters, and their specs.

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/drover-run/drover/local/kubernetes/apiserver"
)

// wish is the desired state of a cluster, from which a spec is written.
type wish struct {
	name string
	// labels end the metadata, if any.
	labels string
	minor  int
	rev    int // of its release
	// channel that it follows, and a scheduled release with its time since the beginning of the world.
	channel   string
	atRelease string
	at        time.Duration
	// gate is when upgrades of the spec or its channel may begin. alarm means that they check an alarm and disable its
	// actions.
	gate      gate
	alarm     bool
	team      int // a tag's value, which changes in place everywhere
	edits     edits
	paused    bool
	protected bool
	private   bool // the endpoint
	pools     []wishedPool
	// flaw makes the spec invalid.
	flaw flaw
}

type wishedPool struct {
	name     string
	min, max int
	motd     int // a file's content; a change replaces the nodes
	// the drain policy
	timeout   time.Duration
	onTimeout string
	// the update policy: how many nodes may be out and how many are added during it; refresh is its strategy
	unavailable, surge int
	refresh            bool
	// locked nodes have a taint that system pods do not tolerate.
	locked bool
	// rollAt is when its nodes are replaced, since the beginning of the world; 0 means never.
	rollAt time.Duration
}

// yaml returns the spec of the wish, in a world that began at a time.
func (w wish) yaml(began time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: %s%s}
spec:
  release: {name: %s}
  deletionProtection: %t
  paused: %t
  tags: {team: t%d}
  upgrade: %s
  network:
    cidr: 10.0.0.0/16
    zones: [%s]
    natGateways: Single
%s  pools:
`, w.name, w.labels, w.release(), w.protected, w.paused, w.team, w.upgrade(began), w.edits.zones(), w.edits.poolDefaults())
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
			"%s%s%supdate: {strategy: %s, maxUnavailable: %d, maxSurge: %d}, %s}\n",
			p.name, p.min, p.max, p.timeout, p.onTimeout, rollAt, taints, w.edits.pool(), strategy, p.unavailable, p.surge, w.edits.motd(p.motd))
	}
	b.WriteString(w.edits.controlPlane(w.private))
	b.WriteString(w.flaw.line)
	return b.String()
}

// release returns the name of a release of a Kubernetes minor version. Each has two.
func release(minor, rev int) string { return fmt.Sprintf("r%d-%d", minor, rev) }

// release returns the release in the spec.
func (w *wish) release() string { return cmp.Or(w.flaw.release, release(w.minor, w.rev)) }

// upgrade returns spec.upgrade.
func (w wish) upgrade(began time.Time) string {
	fields := w.flaw.fields(w.gate.fields(began))
	switch {
	case w.atRelease != "":
		fields = append(fields, fmt.Sprintf("at: {time: %q, release: %s}", w.gate.textAt(began, w.at), w.atRelease))
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

// apps returns the apps of a cluster. Their budgets allow one or two disruptions at a time.
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
