package upgrade

// The steps that bring a cluster from one release to another.

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

// kubeProxy is the add-on whose version is that of Kubernetes.
const kubeProxy = "kube-proxy"

// Compat lists the versions of each add-on, by the add-on's name, newest first as EKS lists them.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
type Compat map[string][]AddonVersion

// AddonVersion is a version of an add-on and the Kubernetes versions that it runs on, such as "1.36".
type AddonVersion struct {
	Version    string
	Kubernetes []string
	// NeedsPermissions reports whether its pods need permissions in AWS.
	NeedsPermissions bool
}

// NeedsPermissions reports whether the pods of a version of an add-on need permissions in AWS. A version that EKS does not list needs none.
func (c Compat) NeedsPermissions(addon, version string) bool {
	return slices.ContainsFunc(c[addon], func(v AddonVersion) bool { return v.Version == version && v.NeedsPermissions })
}

// Fits reports whether a version of an add-on runs on a Kubernetes version. A version that EKS does not list counts as one that does.
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

// between returns a version of an add-on that runs on two Kubernetes versions in a row: the wanted one, or else the newest that does. If
// none does, it returns the wanted one if that runs on the first, or else nothing. The add-on is then updated after the control plane.
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

// Steps returns the steps from the deployed to the desired cluster, both resolved. The control plane moves one minor version at a time.
// Before each move, a step updates the add-ons that would not run on the next version. Then come all add-ons, then the nodes. The error
// says why that is not possible.
func Steps(from, to *api.Cluster, compat Compat) ([]Step, error) {
	current, target := Minor(from.Spec.KubernetesVersion), Minor(to.Spec.KubernetesVersion)
	switch {
	case current < 0 || target < 0:
		return nil, fmt.Errorf("no steps from Kubernetes %q to %q: both must be minor versions, such as 1.36", from.Spec.KubernetesVersion,
			to.Spec.KubernetesVersion)
	case target < current:
		return nil, fmt.Errorf("the cluster runs Kubernetes %s, and %s is older: only a rollback downgrades Kubernetes",
			from.Spec.KubernetesVersion, to.Spec.KubernetesVersion)
	case target-current > Skew:
		return nil, &TooFar{From: from.Spec.KubernetesVersion, To: to.Spec.KubernetesVersion}
	}
	return walk(from, to, compat, false), nil
}

// RollbackSteps returns the steps of a rollback: the nodes first, as none may be newer than its control plane. EKS rolls a control plane
// back by one minor version at most.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
func RollbackSteps(from, to *api.Cluster, compat Compat) ([]Step, error) {
	current, target := Minor(from.Spec.KubernetesVersion), Minor(to.Spec.KubernetesVersion)
	if current < 0 || target < 0 || current < target || current-target > 1 {
		return nil, fmt.Errorf("no rollback from Kubernetes %s to %s: EKS rolls a control plane back by one minor version only. "+
			"Continue with %[1]s. To roll back only the nodes, name their old images in the pools' imageID",
			from.Spec.KubernetesVersion, to.Spec.KubernetesVersion)
	}
	return walk(from, to, compat, true), nil
}

// TooFar means that the nodes would become too old for the control plane during the upgrade.
type TooFar struct {
	From, To string
	// Offered are the versions that EKS offers, if known.
	Offered []string
}

func (e *TooFar) Error() string {
	first, newest := Minor(e.From)+Skew, -1
	for _, v := range e.Offered {
		newest = max(newest, Minor(v))
	}
	text := fmt.Sprintf("Kubernetes %s and %s are more than %d minor versions apart, so nodes would become too old during the upgrade: ",
		e.From, e.To, Skew)
	if newest >= 0 && newest < Minor(e.To) {
		text += fmt.Sprintf("EKS offers up to 1.%d here, ", newest)
		if first = min(first, newest); first <= Minor(e.From) {
			return text + "which the cluster already runs"
		}
	}
	return text + fmt.Sprintf("upgrade to 1.%d first", first)
}

func walk(from, to *api.Cluster, compat Compat, back bool) []Step {
	var steps []Step
	at, last := Minor(from.Spec.KubernetesVersion), Minor(to.Spec.KubernetesVersion)
	forced, installed, wanted := map[string]string{}, addonVersions(from), addonVersions(to)
	add := func(kind StepKind) {
		s := Step{Kind: kind, KubernetesVersion: version(at), NodesRolledBack: back}
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
		addonsFirst := false
		for _, addon := range slices.Sorted(maps.Keys(installed)) {
			if compat.Fits(addon, installed[addon], version(next)) {
				continue
			}
			if v := compat.between(addon, wanted[addon], version(at), version(next)); v != "" && v != installed[addon] {
				forced[addon], installed[addon], addonsFirst = v, v, true
			}
		}
		if addonsFirst {
			add(StepAddonsFirst)
		}
		at = next
		add(StepControlPlane)
	}
	add(StepAddons)
	add(StepNodes)
	return steps
}

// SkipReached removes pending steps to versions that the control plane has passed, because EKS or an external change updated it. The step
// to the running version stays: its stack must record the version, and it has the add-ons of the removed steps. In a rollback the nodes
// stay first.
func SkipReached(steps []Step, open int, runs string) []Step {
	at := slices.IndexFunc(steps[open:], func(s Step) bool {
		return s.Kind == StepControlPlane && !s.NodesRolledBack && s.KubernetesVersion == runs
	})
	if at <= 0 {
		return steps
	}
	return slices.Concat(steps[:open], steps[open+at:])
}

// FirstToReplan returns the index of the first step to compute again for a stopped upgrade: the one after the last completed update of the
// control plane. A spec that applied since may have undone these steps. It returns -1 if no update of the control plane is left or the next
// one has happened, and 0 without steps.
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
func Replan(steps []Step, from int, replanned []Step) []Step {
	all := slices.Concat(steps[:from], replanned)
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

// Minor returns 36 for "1.36" and "1.36.2", and -1 for a text that is no version.
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
