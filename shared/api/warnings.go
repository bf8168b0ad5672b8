// Warnings name what a valid spec says and its writer may not mean.
package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Warnings of a valid cluster, one line each; nil when there are none. The release adds its add-ons and their configuration. Without one
// (nil), the cluster's own add-ons count, and CoreDNS, which every EKS cluster runs.
// https://docs.aws.amazon.com/eks/latest/userguide/managing-coredns.html
func Warnings(c *Cluster, r *Release) []string {
	var defaults []Addon
	if defaults = []Addon{{Name: "coredns"}}; r != nil {
		defaults = r.Spec.Addons
	}
	return append(publicRanges(&c.Spec.Network), unschedulable(c.Spec.Pools, mergeAddons(defaults, c.Spec.Addons))...)
}

// unschedulable warns of add-ons whose pods no pool's taints let run. Such pods stay Pending, so their disruption budgets allow nothing and
// drains of the nodes that they are still on cannot end.
func unschedulable(pools []Pool, addons []Addon) []string {
	var lacking []string
	for _, addon := range addons {
		tolerations, known := tolerationsOf(addon)
		if known && !slices.ContainsFunc(pools, func(p Pool) bool { return p.MaxSize > 0 && admits(p, tolerations) }) {
			lacking = append(lacking, addon.Name)
		}
	}
	switch {
	case len(lacking) == 0:
		return nil
	case len(pools) == 0:
		return []string{
			fmt.Sprintf("spec.pools: there is no pool: the pods of %s have no node to run on and stay Pending", strings.Join(lacking, ", ")),
		}
	}
	var taints []string
	for _, pool := range pools {
		for _, taint := range pool.Taints {
			if taint.repels() && pool.MaxSize > 0 {
				taints = append(taints, pool.Name+" has "+taint.String())
			}
		}
	}
	const most = 5
	if len(taints) > most {
		taints = append(taints[:most], "…")
	}
	return []string{fmt.Sprintf("spec.pools: no pool can run the pods of %s, which do not tolerate its taints (%s): they stay Pending, "+
		"and drains of the "+
		"nodes that they run on now cannot end; keep a pool without such a taint, or add tolerations to spec.addons[].configuration first",
		strings.Join(lacking, ", "), strings.Join(taints, ", "))}
}

// String is the taint as kubectl writes it.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// repels says whether the taint keeps pods without a toleration off the node. PreferNoSchedule does not.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#concepts
func (t Taint) repels() bool { return t.Effect == "NoSchedule" || t.Effect == "NoExecute" }

// admits says whether pods with these tolerations run on a pool's nodes.
func admits(pool Pool, tolerations []toleration) bool {
	return !slices.ContainsFunc(pool.Taints, func(taint Taint) bool {
		return taint.repels() && !slices.ContainsFunc(tolerations, func(t toleration) bool { return t.tolerates(taint) })
	})
}

// toleration of a pod, Kubernetes style.
type toleration struct {
	Key, Operator, Value, Effect string
	TolerationSeconds            *int64
}

// tolerates says whether a pod with the toleration may stay on a node with the taint. One that ends after some seconds does not count:
// the pod is evicted then.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#concepts
func (t toleration) tolerates(taint Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case taint.Effect == "NoExecute" && t.TolerationSeconds != nil:
		return false
	case t.Operator == "Exists":
		return true
	}
	return (t.Operator == "" || t.Operator == "Equal") && t.Key != "" && t.Value == taint.Value
}

// replicas of an add-on: what its Deployment tolerates by default, and where its configuration may say otherwise.
type replicas struct {
	// section of the configuration that has the key tolerations; empty is the top.
	section     string
	tolerations []toleration
}

// critical is the toleration that add-ons of EKS have in common.
var critical = toleration{Key: "CriticalAddonsOnly", Operator: "Exists"}

// replicated are the add-ons that run Deployments. DaemonSets tolerate every taint, and of other add-ons nothing is known.
//   - coredns: https://github.com/awsdocs/amazon-eks-user-guide/blob/mainline/latest/ug/networking/managing-coredns.adoc and the Deployment
//     that EKS installs.
//   - aws-ebs-csi-driver, aws-efs-csi-driver, aws-fsx-csi-driver: controller.tolerations of charts/*/values.yaml of
//     https://github.com/kubernetes-sigs/aws-ebs-csi-driver and its two siblings.
//
// - metrics-server, snapshot-controller: their charts have none; the local account gives them the common one, and a
// warning that is missing
//
//	does less harm than one that is wrong.
var replicated = map[string]replicas{
	"coredns": {tolerations: []toleration{critical, {Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}},
	"aws-ebs-csi-driver": {section: "controller", tolerations: []toleration{
		critical, {Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64)},
	}},
	"aws-efs-csi-driver": {
		section: "controller", tolerations: []toleration{critical, {Key: "efs.csi.aws.com/agent-not-ready", Operator: "Exists"}},
	},
	"aws-fsx-csi-driver":  {section: "controller", tolerations: []toleration{critical}},
	"metrics-server":      {tolerations: []toleration{critical}},
	"snapshot-controller": {tolerations: []toleration{critical}},
}

// tolerationsOf an add-on's Deployment, by its configuration or by default. They are not known where the add-on is not, or where the
// configuration says something else than a list of tolerations, which EKS refuses.
func tolerationsOf(addon Addon) (_ []toleration, known bool) {
	of, known := replicated[addon.Name]
	if !known {
		return nil, false
	}
	section := addon.Configuration
	if of.section != "" {
		section, _ = section[of.section].(map[string]any)
	}
	stated, ok := section["tolerations"]
	if !ok {
		return of.tolerations, true
	}
	var tolerations []toleration
	body, err := json.Marshal(stated)
	if err != nil || json.Unmarshal(body, &tolerations) != nil {
		return nil, false
	}
	return tolerations, true
}
