package preflight

// The health of a cluster: what must be well before an upgrade begins, and when it is done.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
)

// settling is how long what is new or was just changed may take to be well: until then it is not held against the cluster.
const settling = 10 * time.Minute

// tooMany says that more than a tenth of something is not well. A few nodes of many always come and go; the audit replaces those that stay
// away. One of three is much.
func tooMany(bad, all int) bool { return bad*10 > all }

// controlPlane: EKS refuses to update a cluster that is not ACTIVE, and an update fails on most of what EKS calls an issue.
// https://docs.aws.amazon.com/eks/latest/userguide/troubleshooting.html#cluster-health-status
func controlPlane(r *report, f *Facts, p *Plan) {
	if v := f.ControlPlane.Version; !p.leadsBy(v) {
		what, next := Moved(p.Cluster, v, p.From.KubernetesVersion)
		r.block(next, "%s", what)
	}
	if c := f.ControlPlane; c.Status != "ACTIVE" {
		r.block("Wait until EKS is done with it, or see the cluster in the EKS console.", "the EKS cluster is %s", c.Status)
	}
	if issues := f.ControlPlane.Issues; len(issues) > 0 {
		r.block("Mend what EKS names; it looks again within minutes.", "EKS reports %s: %s", count(len(issues), "issue"), list(issues))
	}
	if f.Unreachable != "" {
		r.block("Check the endpoint's publicCIDRs and the access entry of drover's upgrade function.", "the cluster's API does not answer: %s",
			f.Unreachable)
	}
	if bad := f.Survey.Unhealthy; len(bad) > 0 {
		r.block("Wait a minute and try again; if it stays, ask AWS support.", "the API server is not ready (/readyz): %s", list(bad))
	}
}

// Moved says that a control plane runs another version than its stack was deployed with, and what to do; "" when it does not. EKS itself
// moves one whose version is supported no more, and people may in its console.
// https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
func Moved(cluster, runs, deployed string) (what, next string) {
	switch {
	case runs == "" || runs == deployed:
		return "", ""
	case minor(runs) < minor(deployed):
		return fmt.Sprintf("EKS runs Kubernetes %s, and the cluster was deployed with %s: somebody rolled it back, and not the nodes",
				runs, deployed),
			fmt.Sprintf("Move it to %s again: `aws eks update-cluster-version --name %s --kubernetes-version %[1]s`. Then `drover upgrade %[3]s "+
				"--rollback` takes nodes and all back.",
				deployed, names.EKSCluster(cluster), cluster)
	}
	return fmt.Sprintf("EKS runs Kubernetes %s, and the cluster was deployed with %s: EKS moved it when support ended, or somebody did",
			runs, deployed),
		fmt.Sprintf("Upgrade to a release of Kubernetes %s: stack and control plane say the same then.", runs)
}

// leadsBy says whether a version that the control plane runs is on the way: otherwise every step would be of the wrong one.
func (p *Plan) leadsBy(runs string) bool {
	return runs == "" || runs == p.From.KubernetesVersion || slices.Contains(p.Versions(), runs) || runs == p.To.KubernetesVersion
}

// nodesReady: a node that is not Ready has pods that cannot leave it, and takes none.
func nodesReady(r *report, f *Facts, _ *Plan) {
	var bad []string
	old := 0
	for _, n := range f.Survey.Nodes {
		if f.Taken.Sub(n.Created) < settling {
			continue
		}
		old++
		if !n.Ready {
			bad = append(bad, fmt.Sprintf("%s since %s (%s)", n.Name, n.Since.UTC().Format(time.RFC3339), n.Message))
		}
	}
	const next = "Mend them, or delete their instances: their groups start others. drover replaces nodes of its pools that are not " +
		"Ready for 20 minutes."
	switch {
	case tooMany(len(bad), old):
		r.block(next, "%d of %s not Ready: %s", len(bad), count(old, "node"), list(bad))
	case len(bad) > 0:
		r.warn(next, "%d of %s not Ready: %s", len(bad), count(old, "node"), list(bad))
	}
}

// systemPods: what runs in kube-system serves every node and every pod. Of a DaemonSet some may be missing, as nodes
// may; pods on nodes that are not Ready count for their nodes.
func systemPods(r *report, f *Facts, _ *Plan) {
	away := map[string]bool{}
	for _, n := range f.Survey.Nodes {
		away[n.Name] = !n.Ready
	}
	bad := map[string][]string{}
	for _, p := range f.Survey.Pods {
		if p.Namespace == system && f.Taken.Sub(p.Since) >= settling && !away[p.Node] {
			bad[p.Workload] = append(bad[p.Workload], fmt.Sprintf("%s is %s", p.Name, p.State))
		}
	}
	const next = "See `kubectl -n kube-system describe pod`, and mend what keeps them."
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

// system is the namespace of what Kubernetes itself needs.
const system = "kube-system"

// addonsHealthy: an add-on that does not work now will not work better with other versions around it. One whose last update failed works as
// it did before.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_Addon.html
func addonsHealthy(r *report, f *Facts, _ *Plan) {
	var blocking, warning []string
	for _, a := range f.Addons {
		said := fmt.Sprintf("%s is %s", a.Name, a.Status)
		if len(a.Issues) > 0 {
			said += " (" + list(a.Issues) + ")"
		}
		switch {
		case a.Status == "UPDATE_FAILED":
			warning = append(warning, said)
		case a.Status != "ACTIVE":
			blocking = append(blocking, said)
		}
	}
	const next = "See `aws eks describe-addon`, and mend what it names."
	if len(blocking) > 0 {
		r.block(next, "%s", list(blocking))
	}
	if len(warning) > 0 {
		r.warn(next, "%s", list(warning))
	}
}

// alarmsQuiet: the alarms that the spec names say when the cluster is not well.
func alarmsQuiet(r *report, f *Facts, p *Plan) {
	known := map[string]Alarm{}
	for _, a := range f.Alarms {
		known[a.Name] = a
	}
	var absent, firing, unsure []string
	for _, name := range p.Alarms {
		a, there := known[name]
		switch {
		case !there:
			absent = append(absent, name)
		case a.State == "ALARM":
			firing = append(firing, fmt.Sprintf("%s since %s (%s)", name, a.Since.UTC().Format(time.RFC3339), a.Reason))
		case a.State != "OK":
			unsure = append(unsure, name)
		}
	}
	if len(firing) > 0 {
		r.block("Wait until they are OK, or mend what they tell of.", "in ALARM: %s", list(firing))
	}
	if len(absent) > 0 {
		r.block("Correct spec.upgrade.alarms, or make them.", "spec.upgrade.alarms names what CloudWatch does not have: %s", list(absent))
	}
	if len(unsure) > 0 {
		r.warn("See why no data arrives: until it does, they cannot tell of trouble.", "without enough data: %s", list(unsure))
	}
}

// alarmsSilenced: those that wake people during an upgrade, because they are not the spec's to silence. Their tags are their owners';
// AWS gives no permission on a composite alarm by its tags, so that none is silenced.
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
		r.warn(fmt.Sprintf("Nothing, if they may. If not, who owns them tags them: aws cloudwatch tag-resource --resource-arn ARN --tags "+
			"Key=%s,Value=%s. "+
			"In place of a composite alarm, name its children.", names.TagSilence, names.SilenceUpgrade),
			"their actions stay on meanwhile, for they have no tag %s=%s: %s", names.TagSilence, names.SilenceUpgrade, list(loud))
	}
}
