package preflight

// The health of a cluster, before and after an upgrade.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
)

// settling is how long a new or changed object may be unhealthy without a finding.
const settling = 10 * time.Minute

// tooMany reports whether more than a tenth is unhealthy. In large clusters a few nodes always are, and the audit replaces those that
// stay so. One of three is too many.
func tooMany(bad, all int) bool { return bad*10 > all }

// controlPlane checks the EKS cluster. EKS rejects updates of a cluster that is not ACTIVE, and most issues make an update fail.
// https://docs.aws.amazon.com/eks/latest/userguide/troubleshooting.html#cluster-health-status
func controlPlane(r *report, f *Facts, p *Plan) {
	if v := f.ControlPlane.Version; !p.leadsBy(v) {
		what, next := VersionChangedOutside(p.Cluster, v, p.From.KubernetesVersion)
		r.block(next, "%s", what)
	}
	if c := f.ControlPlane; c.Status != "ACTIVE" {
		r.block("Wait until EKS has finished, or check the cluster in the EKS console.", "the EKS cluster is %s", c.Status)
	}
	if issues := f.ControlPlane.Issues; len(issues) > 0 {
		r.block("Fix what EKS reports. EKS checks again within minutes.", "EKS reports %s: %s", count(len(issues), "issue"), list(issues))
	}
	if f.Unreachable != "" {
		r.block("Check the endpoint's publicCIDRs and the access entry of drover's upgrade function.", "the cluster's API does not answer: %s",
			f.Unreachable)
	}
	if bad := f.Survey.Unhealthy; len(bad) > 0 {
		r.block("Wait a minute and try again. If it persists, contact AWS Support.", "the API server is not ready (/readyz): %s", list(bad))
	}
}

// VersionChangedOutside returns a finding if a control plane has another version than its stack deployed, and what to
// do. It returns "" otherwise. EKS itself upgrades an unsupported version, and a user may upgrade in the EKS console.
// https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
func VersionChangedOutside(cluster, runs, deployed string) (what, next string) {
	switch {
	case runs == "" || runs == deployed:
		return "", ""
	case minor(runs) < minor(deployed):
		return fmt.Sprintf("EKS runs Kubernetes %s, and drover deployed %s: the control plane was rolled back outside drover, without the nodes",
				runs, deployed),
			fmt.Sprintf("Upgrade it to %s again: `aws eks update-cluster-version --name %s --kubernetes-version %[1]s`. "+
				"Then `drover upgrade %[3]s --rollback` rolls back the nodes, too.",
				deployed, names.EKSCluster(cluster), cluster)
	}
	return fmt.Sprintf("EKS runs Kubernetes %s, and drover deployed %s: EKS upgraded it when support ended, or it was upgraded outside drover",
			runs, deployed),
		fmt.Sprintf("Upgrade to a release of Kubernetes %s: then stack and control plane match.", runs)
}

// leadsBy reports whether the control plane's version is one of the upgrade's. Otherwise every step would start from a wrong version.
func (p *Plan) leadsBy(runs string) bool {
	return runs == "" || runs == p.From.KubernetesVersion || slices.Contains(p.Versions(), runs) || runs == p.To.KubernetesVersion
}

// nodesReady checks the nodes. Pods cannot leave a node that is not Ready, and it accepts none.
func nodesReady(r *report, f *Facts, _ *Plan) {
	var bad []string
	old := 0
	for _, n := range f.Survey.Nodes {
		if f.ReadAt.Sub(n.Created) < settling {
			continue
		}
		old++
		if !n.Ready {
			bad = append(bad, fmt.Sprintf("%s since %s (%s)", n.Name, n.Since.UTC().Format(time.RFC3339), n.Message))
		}
	}
	const next = "Fix them, or terminate their instances: their groups launch others. " +
		"drover replaces nodes of its pools that stay NotReady for 20 minutes."
	switch {
	case tooMany(len(bad), old):
		r.block(next, "%d of %s not Ready: %s", len(bad), count(old, "node"), list(bad))
	case len(bad) > 0:
		r.warn(next, "%d of %s not Ready: %s", len(bad), count(old, "node"), list(bad))
	}
}

// systemPods checks the pods of kube-system, on which all nodes and pods depend. Some pods of a DaemonSet may be missing, as some nodes
// may. Pods on nodes that are not Ready do not count: nodesReady reports the nodes.
func systemPods(r *report, f *Facts, _ *Plan) {
	notReady := map[string]bool{}
	for _, n := range f.Survey.Nodes {
		notReady[n.Name] = !n.Ready
	}
	bad := map[string][]string{}
	for _, p := range f.Survey.Pods {
		if p.Namespace == system && f.ReadAt.Sub(p.Since) >= settling && !notReady[p.Node] {
			bad[p.Workload] = append(bad[p.Workload], fmt.Sprintf("%s is %s", p.Name, p.State))
		}
	}
	const next = "Run `kubectl -n kube-system describe pod`, and fix the cause."
	var blocking, warning []string
	for _, workload := range sortedKeys(bad) {
		size := len(bad[workload])
		for _, w := range f.Survey.Workloads {
			if w.Namespace == system && w.Kind+" "+w.Name == workload {
				size = w.Desired
			}
		}
		if strings.HasPrefix(workload, "DaemonSet ") && !tooMany(len(bad[workload]), size) {
			warning = append(warning, bad[workload]...)
		} else {
			blocking = append(blocking, bad[workload]...)
		}
	}
	if len(blocking) > 0 {
		r.block(next, "%s of kube-system: %s", count(len(blocking), "pod"), list(blocking))
	}
	if len(warning) > 0 {
		r.warn(next, "%s of kube-system, at most a tenth of their DaemonSets: %s", count(len(warning), "pod"), list(warning))
	}
}

// system is the namespace of Kubernetes' own pods.
const system = "kube-system"

// addonsHealthy checks the add-ons. An add-on that fails now will not recover with other versions around it. One whose last update failed
// still works.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_Addon.html
func addonsHealthy(r *report, f *Facts, _ *Plan) {
	var blocking, warning []string
	for _, a := range f.Addons {
		finding := fmt.Sprintf("%s is %s", a.Name, a.Status)
		if len(a.Issues) > 0 {
			finding += " (" + list(a.Issues) + ")"
		}
		switch {
		case a.Status == "UPDATE_FAILED":
			warning = append(warning, finding)
		case a.Status != "ACTIVE":
			blocking = append(blocking, finding)
		}
	}
	const next = "Run `aws eks describe-addon`, and fix what it reports."
	if len(blocking) > 0 {
		r.block(next, "%s", list(blocking))
	}
	if len(warning) > 0 {
		r.warn(next, "%s", list(warning))
	}
}

// alarmsQuiet checks the alarms that the spec names.
func alarmsQuiet(r *report, f *Facts, p *Plan) {
	byName := map[string]Alarm{}
	for _, a := range f.Alarms {
		byName[a.Name] = a
	}
	var absent, firing, unsure []string
	for _, name := range p.Alarms {
		a, found := byName[name]
		switch {
		case !found:
			absent = append(absent, name)
		case a.State == "ALARM":
			firing = append(firing, fmt.Sprintf("%s since %s (%s)", name, a.Since.UTC().Format(time.RFC3339), a.Reason))
		case a.State != "OK":
			unsure = append(unsure, name)
		}
	}
	if len(firing) > 0 {
		r.block("Wait until they are OK, or fix what they report.", "in ALARM: %s", list(firing))
	}
	if len(absent) > 0 {
		r.block("Correct spec.upgrade.alarms, or create them.", "spec.upgrade.alarms names alarms that do not exist: %s", list(absent))
	}
	if len(unsure) > 0 {
		r.warn("Find out why no data arrives: until then they cannot report problems.", "alarms without enough data: %s", list(unsure))
	}
}

// alarmsSilenced warns of alarms that may notify someone during an upgrade, because drover may not disable their actions. Their owners set
// the tag that allows it. IAM grants no permission on a composite alarm by its tags, so drover disables none.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_alarms_and_tagging.html
func alarmsSilenced(r *report, f *Facts, _ *Plan) {
	var loud []string
	for _, a := range f.Alarms {
		switch {
		case !a.Actions || a.Silence:
		case a.Composite:
			loud = append(loud, a.Name+" (a composite alarm)")
		default:
			loud = append(loud, a.Name)
		}
	}
	if len(loud) > 0 {
		r.warn(fmt.Sprintf("Nothing, if they may notify during the upgrade. Otherwise their owner tags them: aws cloudwatch tag-resource "+
			"--resource-arn ARN --tags Key=%s,Value=%s. Instead of a composite alarm, name its children.", names.TagSilence, names.SilenceUpgrade),
			"their actions stay enabled during the upgrade, because they have no tag %s=%s: %s", names.TagSilence, names.SilenceUpgrade, list(loud))
	}
}
