package preflight

// The result of an upgrade.

import (
	"fmt"
	"slices"

	"github.com/drover-run/drover/shared/upgrade"
)

// Baseline is the state of the workloads before an upgrade, with which After compares. drover keeps it while the upgrade runs.
type Baseline struct {
	Workloads []Workload `json:"workloads,omitempty"`
	// Lost reports that the baseline is no longer stored.
	Lost bool `json:"-"`
}

// Baseline returns the baseline from these facts.
func (f *Facts) Baseline() Baseline { return Baseline{Workloads: f.Survey.Workloads} }

// versionsReached checks the versions of the control plane and of each add-on in EKS.
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
			switch version, ok := installed[a.Name]; {
			case !ok:
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
		r.block(again+" continues with the open step.", "%s", list(wrong))
	}
}

// nodesReplaced checks that every node runs its group's current launch template and the pool's image. A kubelet that is newer than the
// control plane, or too old for it, has another source. An older kubelet is expected in a pool with an image of its own.
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
		finding := fmt.Sprintf("%s of pool %s has kubelet %s", n.Name, n.Pool, n.Kubelet)
		switch apart := minor(p.To.KubernetesVersion) - minor(n.Kubelet); {
		case apart < 0 || apart > upgrade.Skew || apart > 0 && p.replaces() && p.isImageNewEnough(n.Pool, f):
			wrong = append(wrong, finding)
			if again := fmt.Sprintf("`drover roll %s %s`", p.Cluster, n.Pool); !slices.Contains(roll, again) {
				roll = append(roll, again)
			}
		case apart > 0:
			older = append(older, finding)
		}
	}
	if len(wrong) > 0 {
		r.block("Find out which image and launch template the instances have, then roll their pools: "+list(roll)+".",
			"nodes that do not match Kubernetes %s: %s", p.To.KubernetesVersion, list(wrong))
	}
	if len(older) > 0 {
		r.warn("Name a newer image in the pool's imageID.", "nodes older than Kubernetes %s, because of their images: %s", p.To.KubernetesVersion,
			list(older))
	}
}

// strangers returns the instances of a pool with another image than the pool's that their group does not count as outdated.
func (p *Plan) strangers(pool string, f *Facts) (all []string) {
	spec := p.pool(pool)
	if spec == nil || !p.replaces() {
		return nil
	}
	for _, id := range f.Groups[pool].Instances {
		if image := f.ImageOfInstance[id]; image != "" && image != spec.ImageID && !slices.Contains(f.Groups[pool].Outdated, id) {
			all = append(all, fmt.Sprintf("%s of pool %s was started from %s, not from %s", id, pool, image, spec.ImageID))
		}
	}
	return all
}

// isImageNewEnough reports whether a pool's image, by its name, has at least the target's version. Its kubelet should have it too.
func (p *Plan) isImageNewEnough(pool string, f *Facts) bool {
	spec := p.pool(pool)
	if spec == nil {
		return false
	}
	name := eksImage.FindStringSubmatch(f.Images[spec.ImageID].Name)
	return name != nil && minor(name[1]) >= minor(p.To.KubernetesVersion)
}

// workloadsReady checks that no workload has more missing pods than before. Workloads that a user scaled, deleted or created since are
// not the upgrade's effect.
func workloadsReady(r *report, before Baseline, f *Facts) {
	if before.Lost {
		r.warn("Check the workloads yourself: `kubectl get deployments,statefulsets,daemonsets -A`.",
			"the state of the workloads before the upgrade is no longer known")
		return
	}
	type key struct{ kind, namespace, name string }
	previous := map[key]Workload{}
	for _, w := range before.Workloads {
		previous[key{w.Kind, w.Namespace, w.Name}] = w
	}
	var worse []string
	for _, w := range f.Survey.Workloads {
		old, found := previous[key{w.Kind, w.Namespace, w.Name}]
		// A scaled-up workload may wait for its new pods. Those that were ready must stay ready.
		if found && w.missing() > old.missing() && w.Ready < old.Ready {
			worse = append(worse, fmt.Sprintf("%s %s/%s: %d of %d ready, %d of %d before", w.Kind, w.Namespace, w.Name, w.Ready, w.Desired,
				old.Ready, old.Desired))
		}
	}
	if len(worse) > 0 {
		r.block("See `kubectl describe` and the logs of their pods.", "%s with fewer ready pods than before: %s", count(len(worse), "workload"),
			list(worse))
	}
}

// missing returns the number of pods that are not ready.
func (w Workload) missing() int { return max(0, w.Desired-w.Ready) }
