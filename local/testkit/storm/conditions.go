package storm

// Conditions that delay a cluster until operators repair them: a budget that allows no disruption, an alarm, a silent
// kubelet, a quota that is used up, a deleted release, an add-on with another version.

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/names"
)

// toleratedFor is how long operators tolerate the conditions of their clusters after the faults ended. It exceeds any
// pool's drain timeout, and CloudFormation's wait for nodes.
const toleratedFor = 2 * time.Hour

// blockingApp returns an app whose budget allows no disruption while the cluster is blocked.
func (w *world) blockingApp(cluster string) apiserver.App {
	a := apiserver.App{Name: "rock", Replicas: 2, MaxUnavailable: 1, Start: 20 * time.Second, Stop: 5 * time.Second, Grace: 30 * time.Second}
	if w.blocked[cluster] {
		a.MaxUnavailable = 0
	}
	return a
}

// setBlocked makes the budget of a cluster's blockingApp allow no disruption, or one again.
func (w *world) setBlocked(cluster string, on bool) {
	w.blocked[cluster] = on
	if api := w.API(names.EKSCluster(cluster)); api != nil {
		api.Run(w.blockingApp(cluster))
	}
}

func alarmOf(cluster string) string { return cluster + "-is-down" }

func (w *world) cloudwatch() *cloudwatch.Client { return cloudwatch.NewFromConfig(w.Config()) }

// alarms creates the alarms that specs name.
func (w *world) alarms() {
	for _, a := range w.plot.acts {
		if _, made := w.alarmRings[a.cluster]; made || a.spec == nil || !a.spec.alarm {
			continue
		}
		w.createAlarm(a.cluster)
	}
	if w.fleet != nil {
		w.createAlarm(fleetAlarm)
	}
}

func (w *world) createAlarm(of string) {
	_, err := w.cloudwatch().PutMetricAlarm(w.t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String(alarmOf(of)), Namespace: aws.String("shop"), MetricName: aws.String("errors"),
		Statistic: types.StatisticSum,
		Period:    aws.Int32(300), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0),
		ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		TreatMissingData:   aws.String("notBreaching"), ActionsEnabled: aws.Bool(true),
	})
	require.NoError(w.t, err)
	w.setAlarm(of, false)
}

// setAlarm sets a cluster's alarm to ALARM or OK.
func (w *world) setAlarm(cluster string, on bool) {
	state := types.StateValueOk
	if on {
		state = types.StateValueAlarm
	}
	_, err := w.cloudwatch().SetAlarmState(w.t.Context(), &cloudwatch.SetAlarmStateInput{
		AlarmName: aws.String(alarmOf(cluster)), StateValue: state, StateReason: aws.String("the storm says so"),
	})
	require.NoError(w.t, err)
	w.alarmRings[cluster] = on
}

// condition describes what delays a cluster, or returns "".
func (w *world) condition(cluster string) string {
	switch {
	case w.blocked[cluster]:
		return "a budget allows no disruption"
	case w.alarmRings[cluster]:
		return "an alarm rings"
	case w.silentNode[cluster] != "" && w.isSilent(cluster):
		return "the kubelet of " + w.silentNode[cluster] + " is silent"
	case w.usedUp[cluster]:
		return "a quota is used up"
	case len(w.deletedReleases[cluster]) > 0:
		return "a release is deleted"
	case w.closed[cluster] && w.isClosed(cluster):
		return "its endpoint is closed"
	case len(w.alteredAddons[cluster]) > 0 && w.isAltered(cluster):
		return "an add-on is of another version"
	}
	return ""
}

// repair ends the conditions of a cluster.
func (w *world) repair(cluster string) {
	w.record("%s: repaired: %s", cluster, w.condition(cluster))
	w.out.Acts["repair"]++
	if w.blocked[cluster] {
		w.setBlocked(cluster, false)
	}
	if w.alarmRings[cluster] {
		w.setAlarm(cluster, false)
	}
	if w.silentNode[cluster] != "" {
		w.setSilent(cluster, "", 0, false)
	}
	if w.usedUp[cluster] {
		w.setQuotaUsed(cluster, false)
	}
	if len(w.deletedReleases[cluster]) > 0 {
		w.setReleaseDeleted(cluster, [2]int{}, false)
	}
	w.openEndpoint(cluster)
	for _, addon := range slices.Sorted(maps.Keys(w.alteredAddons[cluster])) {
		w.setAddonAltered(cluster, addon, false)
	}
}

// setSilent silences the kubelet of one of a pool's nodes, if there are enough, or ends the silence.
func (w *world) setSilent(cluster, pool string, which int, on bool) {
	api := w.API(names.EKSCluster(cluster))
	if !on {
		if api != nil {
			api.Silence(w.silentNode[cluster], false) // the node may not exist any longer
		}
		delete(w.silentNode, cluster)
		return
	}
	if api == nil || w.silentNode[cluster] != "" {
		return
	}
	w.observed.Lock()
	serves := map[string]bool{}
	for _, i := range w.observed.groupViews[names.Group(cluster, pool)].Instances {
		serves[i.ID] = i.State == "InService"
	}
	w.observed.Unlock()
	for _, n := range api.Nodes() {
		if !serves[instanceOf(n)] || !n.Ready {
			continue
		}
		if which--; which < 0 {
			w.record("%s falls silent", n.Name)
			w.silentNode[cluster] = n.Name
			api.Silence(n.Name, true)
			return
		}
	}
}

// isSilent reports whether the silent node of a cluster exists and is silent. The audit or a roll may have replaced it.
func (w *world) isSilent(cluster string) bool {
	api := w.API(names.EKSCluster(cluster))
	if api != nil {
		for _, n := range api.Nodes() {
			if n.Name == w.silentNode[cluster] {
				return !n.Ready
			}
		}
	}
	delete(w.silentNode, cluster)
	return false
}

func instanceOf(n apiserver.Node) string {
	return n.ProviderID[strings.LastIndex(n.ProviderID, "/")+1:]
}

// raisedQuota is the quota of vCPUs of an account that has grown.
const raisedQuota = 4096

// setQuotaUsed reduces the account's quota of vCPUs to its use, or restores it.
func (w *world) setQuotaUsed(cluster string, on bool) {
	w.usedUp[cluster] = on
	limit := float64(raisedQuota)
	for _, up := range w.usedUp {
		if up {
			limit = float64(2 * len(w.EC2.Living())) // all are m7i.large
		}
	}
	w.Quotas.Set(servicequotas.StandardVCPUs, limit)
}

// setReleaseDeleted deletes a release, by its minor version and revision, or uploads all deleted ones again. Clusters keep the
// release to which they are pinned.
func (w *world) setReleaseDeleted(cluster string, deleted [2]int, on bool) {
	if on {
		w.deletedReleases[cluster] = append(w.deletedReleases[cluster], deleted)
		w.Remove(names.ReleaseSpec(release(deleted[0], deleted[1])), "")
		return
	}
	for _, deleted := range w.deletedReleases[cluster] {
		w.uploadRelease(deleted[0], deleted[1])
	}
	delete(w.deletedReleases, cluster)
}

// isReleaseDeleted reports whether the spec's release is deleted: its changes happen once the release exists again.
func (w *world) isReleaseDeleted(spec *wish) bool {
	for _, all := range w.deletedReleases {
		if slices.ContainsFunc(all, func(deleted [2]int) bool { return release(deleted[0], deleted[1]) == spec.release() }) {
			return true
		}
	}
	return false
}

// otherAddonVersions are versions of add-ons that support the world's Kubernetes versions too, and that no release names.
var otherAddonVersions = map[string]string{"coredns": "v1.12.4-eksbuild.1", "vpc-cni": "v1.20.4-eksbuild.2"}

// setAddonAltered changes an add-on's version outside drover, or restores it. An attempt to restore may fail and is repeated.
func (w *world) setAddonAltered(cluster, addon string, on bool) {
	current, to := w.addon(cluster, addon), otherAddonVersions[addon]
	if !on {
		to = w.alteredAddons[cluster][addon]
	}
	if current.AddonVersion == "" || to == "" || current.AddonVersion == to && current.Status != "UPDATE_FAILED" {
		return
	}
	in := eks.UpdateAddonInput{AddonInput: eks.AddonInput{ClusterName: names.EKSCluster(cluster), AddonName: addon}, AddonVersion: to}
	if _, err := w.EKS.UpdateAddon(w.t.Context(), w.Admin(), in); err != nil {
		w.record("%s: %s stays at %s: %v", cluster, addon, current.AddonVersion, err) // another update is in flight
		return
	}
	w.record("%s: %s goes from %s to %s", cluster, addon, current.AddonVersion, to)
	if !on {
		return
	}
	if w.alteredAddons[cluster] == nil {
		w.alteredAddons[cluster] = map[string]string{}
	}
	w.alteredAddons[cluster][addon] = current.AddonVersion
}

// addon returns an add-on of a cluster, or an empty one.
func (w *world) addon(cluster, addon string) eks.Addon {
	out, err := w.EKS.DescribeAddon(w.t.Context(), w.Admin(), eks.AddonInput{ClusterName: names.EKSCluster(cluster), AddonName: addon})
	if err != nil {
		return eks.Addon{}
	}
	return *out.Addon
}

// isAltered reports whether an add-on has the altered version or could not be restored. A recreated or upgraded add-on is not
// altered.
func (w *world) isAltered(cluster string) bool {
	maps.DeleteFunc(w.alteredAddons[cluster], func(addon, _ string) bool {
		current := w.addon(cluster, addon)
		return current.AddonVersion != otherAddonVersions[addon] && current.Status != "UPDATING" && current.Status != "UPDATE_FAILED"
	})
	return len(w.alteredAddons[cluster]) > 0
}

// checkAlarmActions checks that the actions of every alarm are enabled. Upgrades disable them and enable them again on every path.
func (w *world) checkAlarmActions() {
	if len(w.alarmRings) == 0 {
		return
	}
	out, err := w.cloudwatch().DescribeAlarms(w.t.Context(), &cloudwatch.DescribeAlarmsInput{})
	require.NoError(w.t, err)
	for _, a := range out.MetricAlarms {
		w.check(9, aws.ToBool(a.ActionsEnabled), "the actions of alarm %s are off", aws.ToString(a.AlarmName))
	}
}
