package preflight

// What an upgrade came to.

import (
	"fmt"
	"slices"

	"github.com/drover-run/drover/shared/upgrade"
)

// Baseline is how the workloads were before: what After compares with. It is kept while the upgrade runs.
type Baseline struct {
	Workloads []Workload `json:"workloads,omitempty"`
	// Lost says that it is not kept any more.
	Lost bool `json:"-"`
}

// Baseline of what was found.
func (f *Facts) Baseline() Baseline { return Baseline{Workloads: f.Survey.Workloads} }

// versionsReached: what EKS says that the control plane and each add-on are.
func versionsReached(r *report, f *Facts, p *Plan) {
	var wrong []string
	if f.ControlPlane.Version != p.To.KubernetesVersion {
		wrong = append(wrong, fmt.Sprintf("the control plane is at %s, not %s", f.ControlPlane.Version, p.To.KubernetesVersion))
	}
	installed := map[string]string{}
	for _, a := range f.Addons {
		installed[a.Name] = a.Version
	}
	if p.After != nil {
		for _, a := range p.After.Spec.Addons {
			switch version, there := installed[a.Name]; {
			case !there:
				wrong = append(wrong, fmt.Sprintf("add-on %s is not installed", a.Name))
			case a.Version != "" && version != a.Version:
				wrong = append(wrong, fmt.Sprintf("add-on %s is at %s, not %s", a.Name, version, a.Version))
			}
		}
	}
	if len(wrong) > 0 {
		again := fmt.Sprintf("`drover upgrade %s`", p.Cluster)
		if p.Rollback {
			again = fmt.Sprintf("`drover upgrade %s --rollback`", p.Cluster)
		}
		r.block(again+" goes on from the step that is open.", "%s", list(wrong))
	}
}

// nodesReplaced: every node of a pool runs what its group launches now, and was started from the pool's image. A
// kubelet newer than the control plane, or too old for it, came from somewhere else; an older one is what a pool with
// an image of its own has.
func nodesReplaced(r *report, f *Facts, p *Plan) {
	var wrong, older, roll []string
	for _, pool := range sortedKeys(f.Groups) {
		before := len(wrong)
		if outdated := f.Groups[pool].Outdated; len(outdated) > 0 && p.replaces() {
			wrong = append(wrong, fmt.Sprintf("pool %s has %s of an older launch template: %s", pool, count(len(outdated), "instance"),
				list(outdated)))
		}
		wrong = append(wrong, p.strangers(pool, f)...)
		if len(wrong) > before {
			roll = append(roll, fmt.Sprintf("`drover roll %s %s`", p.Cluster, pool))
		}
	}
	for _, n := range f.Survey.Nodes {
		if n.Pool == "" || minor(n.Kubelet) < 0 || n.Leaving {
			continue
		}
		said := fmt.Sprintf("%s of pool %s has kubelet %s", n.Name, n.Pool, n.Kubelet)
		switch apart := minor(p.To.KubernetesVersion) - minor(n.Kubelet); {
		case apart < 0 || apart > upgrade.Skew || apart > 0 && p.replaces() && p.released(n.Pool, f):
			wrong = append(wrong, said)
			if again := fmt.Sprintf("`drover roll %s %s`", p.Cluster, n.Pool); !slices.Contains(roll, again) {
				roll = append(roll, again)
			}
		case apart > 0:
			older = append(older, said)
		}
	}
	if len(wrong) > 0 {
		r.block("See what the instances were started from, and roll what is wrong: "+list(roll)+".",
			"not what they should be for Kubernetes %s: %s", p.To.KubernetesVersion, list(wrong))
	}
	if len(older) > 0 {
		r.warn("Name a newer image in the pool's imageID.", "older than Kubernetes %s, as their images are: %s", p.To.KubernetesVersion,
			list(older))
	}
}

// strangers are the instances of a pool that were started from another image than the pool's, and that its group takes for new.
func (p *Plan) strangers(pool string, f *Facts) (all []string) {
	of := p.pool(pool)
	if of == nil || !p.replaces() {
		return nil
	}
	for _, id := range f.Groups[pool].Instances {
		if image := f.Started[id]; image != "" && image != of.ImageID && !slices.Contains(f.Groups[pool].Outdated, id) {
			all = append(all, fmt.Sprintf("%s of pool %s was started from %s, not from %s", id, pool, image, of.ImageID))
		}
	}
	return all
}

// released says that a pool's image is not older than the target by its own name, so that its kubelet ought not to be either.
func (p *Plan) released(pool string, f *Facts) bool {
	of := p.pool(pool)
	if of == nil {
		return false
	}
	name := eksImage.FindStringSubmatch(f.Images[of.ImageID].Name)
	return name != nil && minor(name[1]) >= minor(p.To.KubernetesVersion)
}

// workloadsReady: no workload may have more pods missing than it had. One that was scaled or deleted meanwhile is
// somebody else's doing, and so is a new one.
func workloadsReady(r *report, before Baseline, f *Facts) {
	if before.Lost {
		r.warn("Look at the workloads yourself: `kubectl get deployments,statefulsets,daemonsets -A`.",
			"how ready workloads were before the upgrade is not known any more")
		return
	}
	type key struct{ kind, namespace, name string }
	was := map[key]Workload{}
	for _, w := range before.Workloads {
		was[key{w.Kind, w.Namespace, w.Name}] = w
	}
	var worse []string
	for _, w := range f.Survey.Workloads {
		old, there := was[key{w.Kind, w.Namespace, w.Name}]
		// Whoever asks for more pods waits for them; those that were ready must be.
		if there && w.missing() > old.missing() && w.Ready < old.Ready {
			worse = append(worse, fmt.Sprintf("%s %s/%s: %d of %d ready, %d of %d before", w.Kind, w.Namespace, w.Name, w.Ready, w.Desired,
				old.Ready, old.Desired))
		}
	}
	if len(worse) > 0 {
		r.block("See `kubectl describe` and the logs of their pods.", "%s with fewer ready pods than before: %s", count(len(worse), "workload"),
			list(worse))
	}
}

// missing pods of a workload.
func (w Workload) missing() int { return max(0, w.Desired-w.Ready) }
