package upgrade

// In which steps a cluster is brought from one release to another.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// Skew is how many minor versions kubelets and kube-proxy may be older than the control plane. They are never newer.
// https://kubernetes.io/releases/version-skew-policy/
const Skew = 3

// kubeProxy is the add-on whose version is the minor version that it was made for.
const kubeProxy = "kube-proxy"

// Compat says which versions of each add-on there are, by the add-on's name, the newest first as EKS lists them.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
type Compat map[string][]AddonVersion

// AddonVersion is a version of an add-on and the Kubernetes versions that it runs on, such as "1.36".
type AddonVersion struct {
	Version    string
	Kubernetes []string
}

// Fits says whether a version of an add-on runs on a Kubernetes version. What EKS does not list is not judged: it fits.
func (c Compat) Fits(addon, version, kubernetes string) bool {
	if addon == kubeProxy {
		if own := Minor(strings.TrimPrefix(version, "v")); own >= 0 && (own > Minor(kubernetes) || own < Minor(kubernetes)-Skew) {
			return false
		}
	}
	for _, v := range c[addon] {
		if v.Version == version {
			return slices.Contains(v.Kubernetes, kubernetes)
		}
	}
	return true
}

// between is a version of an add-on for the move from one Kubernetes version to the next: the wanted one if it runs on both, else
// the newest that does. "" when there is none: then the add-on is moved after the control plane.
func (c Compat) between(addon, wanted, present, next string) string {
	if wanted != "" && c.Fits(addon, wanted, present) && c.Fits(addon, wanted, next) {
		return wanted
	}
	for _, v := range c[addon] {
		if c.Fits(addon, v.Version, present) && c.Fits(addon, v.Version, next) {
			return v.Version
		}
	}
	if wanted != "" && c.Fits(addon, wanted, present) {
		return wanted
	}
	return ""
}

// Steps from a cluster as it is to what it is to be, both resolved: the control plane one minor version at a time, before each the
// add-ons that would not run on it, then all add-ons, then the nodes. The error says why there is no such way.
func Steps(from, to *api.Cluster, compat Compat) ([]Step, error) {
	now, then := Minor(from.Spec.KubernetesVersion), Minor(to.Spec.KubernetesVersion)
	switch {
	case now < 0 || then < 0:
		return nil, fmt.Errorf("Kubernetes %q to %q: not two minor versions", from.Spec.KubernetesVersion, to.Spec.KubernetesVersion)
	case then < now:
		return nil, fmt.Errorf("the cluster runs Kubernetes %s, and %s is older: Kubernetes is not downgraded but by a rollback",
			from.Spec.KubernetesVersion, to.Spec.KubernetesVersion)
	case then-now > Skew:
		return nil, &TooFar{From: from.Spec.KubernetesVersion, To: to.Spec.KubernetesVersion}
	}
	return walk(from, to, compat, false), nil
}

// StepsBack are those of a rollback: the nodes first, as none may be newer than its control plane. EKS takes a control plane back by
// one minor version at most.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
func StepsBack(from, to *api.Cluster, compat Compat) ([]Step, error) {
	now, then := Minor(from.Spec.KubernetesVersion), Minor(to.Spec.KubernetesVersion)
	if now < 0 || then < 0 || now < then || now-then > 1 {
		return nil, fmt.Errorf("Kubernetes %s back to %s: EKS takes a control plane back by one minor version: go on with %[1]s. The nodes "+
			"alone can have their old images: name them in the pools' imageID",
			from.Spec.KubernetesVersion, to.Spec.KubernetesVersion)
	}
	return walk(from, to, compat, true), nil
}

// TooFar is that no nodes of one Kubernetes version could be there until the control plane is at another.
type TooFar struct {
	From, To string
	// Offered are the versions that EKS offers, when that is known.
	Offered []string
}

func (e *TooFar) Error() string {
	first, newest := Minor(e.From)+Skew, -1
	for _, v := range e.Offered {
		newest = max(newest, Minor(v))
	}
	said := fmt.Sprintf("from Kubernetes %s to %s are more than %d minor versions, and the nodes would be too old on the way: ",
		e.From, e.To, Skew)
	if newest >= 0 && newest < Minor(e.To) {
		said += fmt.Sprintf("EKS offers up to 1.%d here, ", newest)
		if first = min(first, newest); first <= Minor(e.From) {
			return said + "which the cluster has"
		}
	}
	return said + fmt.Sprintf("upgrade to 1.%d first", first)
}

func walk(from, to *api.Cluster, compat Compat, back bool) []Step {
	var steps []Step
	at, last := Minor(from.Spec.KubernetesVersion), Minor(to.Spec.KubernetesVersion)
	forced, installed, wanted := map[string]string{}, addonVersions(from), addonVersions(to)
	add := func(kind StepKind) {
		s := Step{Kind: kind, KubernetesVersion: version(at), NodesBack: back}
		if kind != StepAddons && kind != StepNodes {
			s.Addons = maps.Clone(forced)
		}
		steps = append(steps, s)
	}
	if back {
		add(StepNodesBack)
	}
	for at != last {
		next := at + 1
		if back {
			next = at - 1
		}
		first := false
		for _, addon := range slices.Sorted(maps.Keys(installed)) {
			if compat.Fits(addon, installed[addon], version(next)) {
				continue
			}
			if v := compat.between(addon, wanted[addon], version(at), version(next)); v != "" && v != installed[addon] {
				forced[addon], installed[addon], first = v, v, true
			}
		}
		if first {
			add(StepAddonsFirst)
		}
		at = next
		add(StepControlPlane)
	}
	add(StepAddons)
	add(StepNodes)
	return steps
}

// SkipReached removes pending steps that the control plane has passed, because EKS or an external change updated it.
// The step to the running version stays: the stack must learn that version, and the step has the add-ons of the steps
// before it. In a rollback the nodes stay first.
func SkipReached(steps []Step, open int, runs string) []Step {
	at := slices.IndexFunc(steps[open:], func(s Step) bool {
		return s.Kind == StepControlPlane && !s.NodesBack && s.KubernetesVersion == runs
	})
	if at <= 0 {
		return steps
	}
	return slices.Concat(steps[:open], steps[open+at:])
}

// FirstToReplan returns the first step after the last update of the control plane, for a stopped upgrade whose next update starts from the
// deployed version. The steps before such an update may no longer be true: a spec that applied since may have updated rolled back nodes.
// It returns -1 if no update of the control plane is left or the next one happened, and 0 without steps.
func FirstToReplan(steps []Step, open int, deployed string) int {
	switch {
	case len(steps) == 0:
		return 0
	case open >= len(steps):
		return -1
	}
	switch s := steps[open]; {
	case s.Kind == StepAddons, s.Kind == StepNodes, s.Kind == StepControlPlane && s.KubernetesVersion == deployed:
		return -1
	}
	for open > 0 && steps[open-1].Kind != StepControlPlane {
		open--
	}
	return open
}

// Replan replaces the steps from an index by newly computed ones. The first of them keeps the start of the step that it replaces.
func Replan(steps []Step, from int, anew []Step) []Step {
	all := slices.Concat(steps[:from], anew)
	if from < len(steps) {
		all[from].Started = steps[from].Started
	}
	return all
}

func addonVersions(c *api.Cluster) map[string]string {
	versions := map[string]string{}
	for _, addon := range c.Spec.Addons {
		versions[addon.Name] = addon.Version
	}
	return versions
}

// Minor is 36 of "1.36" or "1.36.2", and -1 of what is no version.
func Minor(version string) int {
	rest, one := strings.CutPrefix(version, "1.")
	text, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(text)
	if !one || err != nil || n < 0 {
		return -1
	}
	return n
}

func version(minor int) string { return "1." + strconv.Itoa(minor) }
