package preflight

// Whether the versions of the upgrade are compatible and available.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/upgrade"
)

// minor returns the minor version of a version such as 1.36, v1.36.3-eks-abc or v1.36.0-eksbuild.2, and -1 for others.
func minor(version string) int { return upgrade.Minor(strings.TrimPrefix(version, "v")) }

// deprecatedAPIs finds clients that use APIs which the target does not serve. EKS finds them in the audit log of the last 30 days.
// https://docs.aws.amazon.com/eks/latest/userguide/cluster-insights.html
func deprecatedAPIs(r *report, f *Facts, p *Plan) {
	target := minor(p.To.KubernetesVersion)
	var removed, later []string
	for _, insight := range f.Insights {
		for _, d := range insight.Deprecations {
			finding := fmt.Sprintf("%s, removed in %s", d.API, d.RemovedIn)
			if len(d.Clients) > 0 {
				finding += ", used by " + list(d.Clients)
			}
			if d.ReplacedWith != "" {
				finding += ", replaced with " + d.ReplacedWith
			}
			// If drover cannot parse the version, EKS's verdict applies.
			if last := minor(d.RemovedIn); last > target || last < 0 && insight.Status != "ERROR" {
				later = append(later, finding)
			} else {
				removed = append(removed, finding)
			}
		}
	}
	if len(removed) > 0 {
		r.block("Update the clients and manifests that use them. EKS reports a use for 30 days: `aws eks start-insights-refresh` checks again.",
			"APIs in use that Kubernetes %s does not serve: %s", p.To.KubernetesVersion, list(removed))
	}
	if len(later) > 0 {
		r.warn("Update what uses them before a later upgrade.", "APIs in use that a later version removes: %s", list(later))
	}
}

// stale is the age from which insights are reported as old. EKS makes them once a day.
const stale = time.Hour

// insights are EKS's other findings, and their age. An error stops the upgrade: EKS may reject the update, unless it is forced.
// https://docs.aws.amazon.com/eks/latest/userguide/view-cluster-insights.html
func insights(r *report, f *Facts, p *Plan) {
	target := minor(p.To.KubernetesVersion)
	var errors, warnings []string
	next := map[string]string{}
	for _, i := range f.Insights {
		if len(i.Deprecations) > 0 || minor(i.KubernetesVersion) > target && !p.Rollback {
			continue
		}
		finding := fmt.Sprintf("%s: %s", i.Name, i.Reason)
		if len(i.Resources) > 0 {
			finding += " (" + list(i.Resources) + ")"
		}
		if i.Status == "ERROR" && !p.resolves(i, f) {
			errors = append(errors, finding)
		} else {
			warnings = append(warnings, finding)
		}
		if next[i.Status] == "" {
			next[i.Status] = i.Recommendation
		}
	}
	old := ""
	if age := f.ReadAt.Sub(f.InsightsRefreshed); !f.InsightsRefreshed.IsZero() && age > stale {
		warnings = slices.Insert(warnings, 0, fmt.Sprintf("EKS checked last at %s, %s ago", f.InsightsRefreshed.UTC().Format(time.RFC3339),
			age.Round(time.Minute)))
		old = "An upgrade refreshes the insights first. To refresh them now, run `aws eks start-insights-refresh`."
	}
	if len(errors) > 0 {
		r.block(cmp.Or(next["ERROR"], "See the cluster's insights in the EKS console."), "%s", list(errors))
	}
	if len(warnings) > 0 {
		r.warn(cmp.Or(next["WARNING"], next["UNKNOWN"], old, "See the cluster's insights in the EKS console."), "%s", list(warnings))
	}
}

// resolves reports whether the plan's own steps resolve an insight. Before a rollback of the control plane, EKS requires older nodes and
// add-ons. Before an upgrade of the control plane, drover updates the incompatible add-ons.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
func (p *Plan) resolves(i Insight, f *Facts) bool {
	steps := func(kind upgrade.StepKind) bool {
		return slices.ContainsFunc(p.Steps, func(s upgrade.Step) bool { return s.Kind == kind })
	}
	name := strings.ToLower(i.Name)
	switch {
	case !p.Rollback && strings.Contains(name, "add-on"):
		return p.updatesAddons(f)
	case !p.Rollback:
		first := p.Steps[:max(0, slices.IndexFunc(p.Steps, func(s upgrade.Step) bool { return s.Kind == upgrade.StepControlPlane }))]
		return strings.Contains(name, kubeProxy) && slices.ContainsFunc(first, func(s upgrade.Step) bool { return s.Addons[kubeProxy] != "" })
	case strings.Contains(name, "kubelet"):
		return steps(upgrade.StepNodesBack)
	case strings.Contains(name, "kube-proxy"), strings.Contains(name, "add-on"):
		return steps(upgrade.StepAddonsFirst)
	}
	return false
}

// updatesAddons reports whether the plan updates all add-ons that are incompatible with the control plane's next version.
// AddonsCompatible checks whether it can.
func (p *Plan) updatesAddons(f *Facts) bool {
	versions, all := p.Versions(), 0
	if len(versions) == 0 || p.After == nil {
		return false
	}
	for _, a := range f.Addons {
		if f.Compat.Fits(a.Name, a.Version, versions[0]) {
			continue
		}
		if all++; !slices.ContainsFunc(p.After.Spec.Addons, func(ours api.Addon) bool { return ours.Name == a.Name }) {
			return false
		}
	}
	return all > 0
}

// kubeletSkew checks, for each step, that no kubelet or kube-proxy is too old or too new for the control plane.
// https://kubernetes.io/releases/version-skew-policy/
func kubeletSkew(r *report, f *Facts, p *Plan) {
	kubelets, proxies := f.kubelets(), map[string]string{}
	for _, version := range f.Survey.KubeProxies {
		proxies["kube-proxy "+version] = version
	}
	found := skewedParts(kubelets, f.ControlPlane.Version, "kubelet of ")
	found = append(found, skewedParts(proxies, f.ControlPlane.Version, "")...)
	for _, step := range p.Steps {
		switch step.Kind {
		case upgrade.StepNodes, upgrade.StepNodesBack:
			for _, n := range f.Survey.Nodes {
				if n.Pool != "" {
					delete(kubelets, n.Name) // new nodes have the release's version, which Images checks
				}
			}
		case upgrade.StepAddons, upgrade.StepAddonsFirst:
			if version := addonAt(f, p, step, kubeProxy); version != "" {
				proxies = map[string]string{"kube-proxy " + version: version}
			}
		}
		found = append(found, skewedParts(kubelets, step.KubernetesVersion, "kubelet of ")...)
		found = append(found, skewedParts(proxies, step.KubernetesVersion, "")...)
	}
	if found = distinct(found); len(found) > 0 {
		r.block("Bring them to a version in between first: roll their pools, and replace nodes of other owners yourself.", "%s", list(found))
	}
}

const kubeProxy = "kube-proxy"

// kubelets by node.
func (f *Facts) kubelets() map[string]string {
	all := map[string]string{}
	for _, n := range f.Survey.Nodes {
		all[n.Name] = n.Kubelet
	}
	return all
}

// skewedParts returns what is incompatible with a control plane.
func skewedParts(versions map[string]string, controlPlane, what string) []string {
	var found []string
	for _, name := range sortedKeys(versions) {
		switch apart := minor(controlPlane) - minor(versions[name]); {
		case minor(versions[name]) < 0:
		case apart < 0:
			found = append(found, fmt.Sprintf("%s%s (%s) is newer than the control plane at %s", what, name, versions[name], controlPlane))
		case apart > upgrade.Skew:
			found = append(found, fmt.Sprintf("%s%s (%s) is more than %d minor versions older than the control plane at %s",
				what, name, versions[name], upgrade.Skew, controlPlane))
		}
	}
	return found
}

func distinct(all []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s string) bool {
		duplicate := seen[s]
		seen[s] = true
		return duplicate
	})
}

// addonAt returns the version of an add-on during a step. It is "" if the cluster has none, or if EKS chooses the version.
func addonAt(f *Facts, p *Plan, step upgrade.Step, name string) string {
	if version := step.Addons[name]; version != "" {
		return version
	}
	if step.Kind == upgrade.StepAddons || step.Kind == upgrade.StepNodes {
		return wantedVersion(p.After, name)
	}
	for _, a := range f.Addons {
		if a.Name == name {
			return a.Version
		}
	}
	return ""
}

// wantedVersion returns the desired version of an add-on.
func wantedVersion(cluster *api.Cluster, name string) string {
	if cluster != nil {
		for _, a := range cluster.Spec.Addons {
			if a.Name == name {
				return a.Version
			}
		}
	}
	return ""
}

// addonsCompatible compares each add-on with EKS's catalog. At the end, each needs a version that EKS offers for the target, or EKS
// rejects the update. During the upgrade, an add-on may be behind if no version is compatible with both: a warning.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
func addonsCompatible(r *report, f *Facts, p *Plan) {
	var refused, behind, foreign []string
	ours := map[string]bool{}
	if p.After != nil {
		for _, a := range p.After.Spec.Addons {
			ours[a.Name] = true
			if finding := f.misfit(a.Name, a.Version, p.To.KubernetesVersion); finding != "" {
				refused = append(refused, finding)
			}
		}
	}
	for _, a := range f.Addons {
		if !ours[a.Name] {
			if finding := f.misfit(a.Name, a.Version, p.To.KubernetesVersion); finding != "" {
				foreign = append(foreign, finding)
			}
			continue
		}
		for _, step := range p.Steps {
			if step.Kind != upgrade.StepControlPlane {
				continue
			}
			if version := addonAt(f, p, step, a.Name); !f.Compat.Fits(a.Name, version, step.KubernetesVersion) {
				behind = append(behind, fmt.Sprintf("%s is at %s while the control plane is at %s", a.Name, version, step.KubernetesVersion))
			}
		}
	}
	if len(refused) > 0 {
		r.block("Name compatible versions in the release or the spec: `aws eks describe-addon-versions --kubernetes-version … --addon-name …`.",
			"%s", list(refused))
	}
	if len(behind) > 0 {
		r.warn("Nothing: drover updates them right after the control plane. EKS offers no version that fits both.",
			"incompatible during a step: %s", list(behind))
	}
	if len(foreign) > 0 {
		r.warn("They are not in the spec: their owner has to update them.", "%s", list(foreign))
	}
}

// misfit returns why an add-on's version is incompatible with a Kubernetes version, or "". EKS chooses a version that is not stated.
func (f *Facts) misfit(name, version, kubernetes string) string {
	var offered []string
	for _, v := range f.Compat[name] {
		if slices.Contains(v.Kubernetes, kubernetes) {
			offered = append(offered, v.Version)
		}
	}
	switch {
	case len(offered) == 0:
		return fmt.Sprintf("EKS has no add-on %s for Kubernetes %s", name, kubernetes)
	case version == "" || slices.Contains(offered, version):
		return ""
	}
	return fmt.Sprintf("%s %s is not a version that EKS offers for Kubernetes %s: %s", name, version, kubernetes, list(offered))
}

// versionOffered checks that EKS offers each version of the upgrade.
func versionOffered(r *report, f *Facts, p *Plan) {
	var missing, offered []string
	for _, v := range f.Catalog {
		if v.Status != "UNSUPPORTED" {
			offered = append(offered, v.Version)
		}
	}
	for _, version := range p.Versions() {
		if !slices.Contains(offered, version) {
			missing = append(missing, version)
		}
	}
	slices.SortFunc(offered, func(a, b string) int { return minor(a) - minor(b) })
	if len(missing) > 0 {
		r.block("Choose a release of a version that EKS offers here.", "EKS does not offer Kubernetes %s in this region; it offers %s",
			list(missing), strings.Join(offered, ", "))
	}
}

// upgradeFrom checks that the release supports an upgrade from the current version.
func upgradeFrom(r *report, _ *Facts, p *Plan) {
	if p.Rollback {
		return
	}
	oldest := minor(p.UpgradeFrom)
	if oldest < 0 {
		oldest = minor(p.To.KubernetesVersion) - 1
	}
	if from := minor(p.From.KubernetesVersion); from < oldest {
		r.block(fmt.Sprintf("Upgrade to a release of Kubernetes 1.%d first.", from+1),
			"release %s supports upgrades from Kubernetes 1.%d or later, and the cluster runs %s", p.To.Release, oldest, p.From.KubernetesVersion)
	}
}

// soon is how long before its end of support a version is reported.
const soon = 60 * 24 * time.Hour

// supportDates reports when the target's support ends. Nothing breaks on that day: extended support costs more, and without it EKS
// upgrades the control plane. A rollback has a deadline of its own, and cannot return to a version that the cluster may not have.
// https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
func supportDates(r *report, f *Facts, p *Plan) {
	standard := p.After != nil && p.After.Spec.ControlPlane.SupportType == api.SupportStandard
	for _, v := range f.Catalog {
		if v.Version != p.To.KubernetesVersion {
			continue
		}
		next := "Plan the next upgrade before that day."
		if standard {
			next += " With supportType Standard, EKS upgrades the control plane by itself then."
		}
		switch end := v.EndOfStandard; {
		case v.Status == extendedSupport && standard && p.Rollback && v.Version != p.From.KubernetesVersion:
			r.block("Set controlPlane.supportType to Extended first, which costs six times as much.",
				"EKS rolls no control plane back to Kubernetes %s, which is in extended support since %s, while supportType is Standard",
				v.Version, day(end))
		case v.Status == extendedSupport:
			r.warn("Choose a release of a newer version: extended support costs six times as much, and ends "+day(v.EndOfExtended)+".",
				"Kubernetes %s is in extended support since %s", v.Version, day(end))
		case !end.IsZero() && end.Sub(f.ReadAt) < soon:
			r.warn(next, "standard support of Kubernetes %s ends %s", v.Version, day(end))
		}
	}
	if left := p.RollbackUntil.Sub(f.ReadAt); !p.RollbackUntil.IsZero() && left < shortly {
		r.warn("Make sure that the nodes can be drained in time, because they are rolled back first: check their disruption budgets.",
			"EKS rolls the control plane back until %s, in %s", p.RollbackUntil.UTC().Format(time.RFC3339), left.Round(time.Minute))
	}
}

// extendedSupport is EKS's status of a version after standard support.
const extendedSupport = "EXTENDED_SUPPORT"

// shortly is how long before the deadline of a rollback it is reported. Nodes are replaced first, and may take this long.
const shortly = 48 * time.Hour

func day(t time.Time) string {
	if t.IsZero() {
		return "on a day that EKS does not report"
	}
	return t.UTC().Format(time.DateOnly)
}
