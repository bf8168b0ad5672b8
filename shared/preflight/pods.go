package preflight

// Whether nodes can be drained, and their pods started elsewhere.

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// nodesCordoned finds nodes that a user cordoned, to keep or to examine them. Replacing them would interfere.
func nodesCordoned(r *report, f *Facts, p *Plan) {
	var ours, others []string
	for _, n := range f.Survey.Nodes {
		switch {
		case !n.Cordoned || n.Leaving:
		case n.Pool != "" && p.replaces():
			ours = append(ours, n.Name)
		default:
			others = append(others, n.Name)
		}
	}
	if len(ours) > 0 {
		r.block("Find out who cordoned them. Then run `kubectl uncordon`, or terminate their instances.",
			"nodes were cordoned outside drover, and the upgrade would replace %s: %s", count(len(ours), "node"), list(ours))
	}
	if len(others) > 0 {
		r.warn("The upgrade does not replace them. Run `kubectl uncordon` for those that should take pods.",
			"nodes were cordoned outside drover: %s", list(others))
	}
}

// workloadPods warns of pods that did not run before the upgrade, so that they are not taken for its effect.
func workloadPods(r *report, f *Facts, _ *Plan) {
	var bad []string
	for _, p := range f.Survey.Pods {
		if p.Namespace != system && p.State != NotReady && f.ReadAt.Sub(p.Since) >= settling {
			bad = append(bad, fmt.Sprintf("%s/%s is %s", p.Namespace, p.Name, p.State))
		}
	}
	if len(bad) > 0 {
		r.warn("The upgrade continues. Pending pods need more capacity; for crash-looping pods run `kubectl logs --previous`.",
			"%s not running: %s", count(len(bad), "pod"), list(bad))
	}
}

// NotReady is the state of a running pod that is not Ready.
const NotReady = "NotReady"

// budgetsAllow finds budgets that never let a drain finish. If the pool's drain continues after its timeout (Force, Continue), they cost
// time: a warning. If it waits, the upgrade would stop there: a blocking finding.
func budgetsAllow(r *report, f *Facts, p *Plan) {
	if !p.replaces() {
		return
	}
	b := &budgetFindings{}
	for i := range f.Survey.Budgets {
		b.check(&f.Survey.Budgets[i], f, p)
	}
	for _, o := range f.Survey.Overlaps {
		b.add(waits(p, o.Pool), fmt.Sprintf("pod %s/%s is under %s: the eviction API refuses it", o.Namespace, o.Pod, list(o.Budgets)))
	}
	const next = "Change the budget, or its workload, so that one pod can leave: more replicas, a smaller minAvailable, one budget per pod. " +
		"Or set the pool's drain.onTimeout to Force."
	if len(b.blocking) > 0 {
		r.block(next, "%s", list(b.blocking))
	}
	if len(b.forced) > 0 {
		r.warn(next, "pods will be removed against their budgets after drain.timeout: %s", list(b.forced))
	}
	if len(b.passing) > 0 {
		r.warn("Nothing, if it is temporary: drains wait for it.", "%s", list(b.passing))
	}
	if len(b.idle) > 0 {
		r.warn("Correct the selector, or delete the budget: it protects nothing.", "budgets that select no pod: %s", list(b.idle))
	}
}

// budgetFindings are the findings by consequence.
type budgetFindings struct{ blocking, forced, passing, idle []string }

func (b *budgetFindings) add(waits bool, finding string) {
	if waits {
		b.blocking = append(b.blocking, finding)
	} else {
		b.forced = append(b.forced, finding)
	}
}

func (b *budgetFindings) check(budget *Budget, f *Facts, p *Plan) {
	name := budget.Namespace + "/" + budget.Name
	if budget.Expected == 0 && len(budget.Covered) == 0 && !budget.Stale && budget.Failed == "" {
		b.idle = append(b.idle, name)
		return
	}
	if len(budget.Covered) == 0 || budget.Allowed > 0 {
		return
	}
	// The strictest policy of the pools that run its pods applies.
	wait := slices.ContainsFunc(sortedKeys(budget.Covered), func(pool string) bool { return waits(p, pool) })
	switch {
	case budget.Failed != "":
		b.add(wait, fmt.Sprintf("%s (%s) allows nothing: %s", name, budget.Rule, budget.Failed))
	case budget.Stale:
		b.passing = append(b.passing, fmt.Sprintf("%s (%s) was just changed", name, budget.Rule))
	case budget.Expected == 0:
		b.add(wait, fmt.Sprintf("%s (%s) counts none of its pods, because no scalable controller owns them, and refuses every eviction",
			name, budget.Rule))
	case budget.Desired >= budget.Expected:
		b.add(wait, fmt.Sprintf("%s (%s) can never allow a disruption: it requires %d of %d pods", name, budget.Rule, budget.Desired,
			budget.Expected))
	case budget.Unhealthy > 0 && f.ReadAt.Sub(budget.Since) >= settling:
		b.add(wait, fmt.Sprintf("%s (%s) allows nothing while only %d of %d pods are healthy, since %s",
			name, budget.Rule, budget.Healthy, budget.Expected, budget.Since.UTC().Format(time.RFC3339)))
	default:
		b.passing = append(b.passing, fmt.Sprintf("%s (%s) allows nothing at the moment: %d of %d pods are healthy", name, budget.Rule,
			budget.Healthy, budget.Expected))
	}
}

// waits reports whether the drain of a pool's nodes has no deadline.
func waits(p *Plan, pool string) bool {
	spec := p.pool(pool)
	return spec == nil || spec.Drain.OnTimeout == "" || spec.Drain.OnTimeout == api.OnTimeoutWait
}
