package storm

// Acts and faults of worlds whose traces are not recorded.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-run/drover/local/engine/questions"
)

// firstRecent is the first seed of these worlds. The recorded traces are of earlier ones.
const firstRecent = 1000

// addRecent adds to a plot: private clusters, endpoints that are closed outside drover, the removal of drover, an hour at the account's
// Lambda limit, recreated roles, permissions that KMS learns late, edits of more fields, and a reading of each open question.
func addRecent(seed uint64, p *plot) {
	if seed < firstRecent {
		return
	}
	if seed%2 == 0 {
		makePrivate(seed, p)
	}
	r := rand.New(rand.NewPCG(seed, 4)) // #nosec G404 -- a world, no secret
	if r.IntN(3) == 0 {
		absence := time.Duration(1+r.IntN(5)) * time.Minute
		cluster := slices.Sorted(maps.Keys(p.last))[0]
		p.acts = append(p.acts, act{
			at: p.amid(r), cluster: cluster, what: fmt.Sprintf("remove drover for %s", absence), do: func(w *world) { w.removeDrover(absence) },
		})
		p.sortActs()
	}
	if r.IntN(3) == 0 {
		p.faultRules = append(p.faultRules, fmt.Sprintf("lambda-limit after=%s for=1h", p.amid(r)))
	}
	if r.IntN(4) == 0 {
		p.recreateRole(r)
	}
	if r.IntN(3) == 0 {
		p.delayPermissions(r)
	}
	p.readings = questions.Readings{}
	for _, q := range questions.All() {
		p.readings[q.Name] = r.IntN(2) == 0
	}
	p.readings[questions.TerminateHooks] = p.hooks
	closeEndpoints(seed, p)
	editSpecs(seed, p)
}

// delayPermissions makes KMS learn new permissions five minutes late, from the beginning on and for up to three quarters of an hour. So EKS
// cannot use the key of a new cluster.
func (p *plot) delayPermissions(r *rand.Rand) {
	const late = 5 * time.Minute
	cluster := slices.Sorted(maps.Keys(p.last))[0]
	p.acts = append(p.acts,
		act{cluster: cluster, what: "delay KMS permissions", do: func(w *world) { w.Keys.Delay(late, late) }},
		act{at: time.Duration(5+r.IntN(40)) * time.Minute, cluster: cluster, what: "no longer delay KMS permissions", do: func(w *world) {
			w.Keys.Delay(0, 0)
		}},
	)
	p.sortActs()
}

// amid returns a time within half an hour after one of the acts.
func (p *plot) amid(r *rand.Rand) time.Duration {
	return p.acts[r.IntN(len(p.acts))].at + time.Duration(r.IntN(1800))*time.Second
}

// sortActs puts the acts in the order of time.
func (p *plot) sortActs() {
	slices.SortStableFunc(p.acts, func(a, b act) int { return int(a.at - b.at) })
}

// removeDrover removes drover, and deploys it again after a while. It is shorter than the heartbeat timeout of launch hooks.
func (w *world) removeDrover(absence time.Duration) {
	w.removed = true
	w.BeginRemoval()
	for w.running() {
		if w.wait(time.Since(w.began) + time.Second); w.over() {
			return
		}
	}
	if w.wait(time.Since(w.began) + absence); w.over() {
		return
	}
	w.Redeploy()
	w.removed = false
	w.record("drover is deployed again")
}
