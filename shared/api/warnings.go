package api

// Warnings are about valid specs that are probably not intended.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SpecWarnings are the warnings of a valid spec, one line each. The status has a condition for each field.
type SpecWarnings struct {
	// Access: no principal can use the API of Kubernetes.
	Access []string
	// Network: hosts that nodes and pods cannot reach.
	Network []string
	// Addons: add-ons whose pods no pool can run.
	Addons []string
	// Isolation: pools whose pods get the credentials of the node's role.
	Isolation []string
	// Kubelet: fields of kubelets that drover does not know.
	Kubelet []string
}

// Lines returns all warnings, or nil.
func (w SpecWarnings) Lines() []string {
	return slices.Concat(w.Access, w.Network, w.Addons, w.Isolation, w.Kubelet)
}

// Warnings returns the warnings of a valid cluster. The release adds its add-ons and their configuration. Without a release (nil), the
// cluster's own add-ons count, and CoreDNS, which every EKS cluster runs.
// https://docs.aws.amazon.com/eks/latest/userguide/managing-coredns.html
func Warnings(c *Cluster, r *Release) SpecWarnings {
	defaults := []Addon{{Name: "coredns"}}
	if r != nil {
		defaults = r.Spec.Addons
	}
	return SpecWarnings{
		Access:  withoutAccess(&c.Spec.ControlPlane),
		Network: publicRanges(&c.Spec.Network), Addons: unschedulable(c.Spec.Pools, mergeAddons(defaults, c.Spec.Addons)),
		Isolation: notIsolated(c.Spec.Pools), Kubelet: unknownKubeletFields(c.Spec.Pools),
	}
}

// withoutAccess warns of a cluster that no user can use. drover's template takes the access of the cluster's creator away.
// https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html
func withoutAccess(c *ControlPlane) []string {
	if len(c.Access) > 0 {
		return nil
	}
	return []string{"spec.controlPlane.access: it is empty, so no user can use the cluster with kubectl; add an entry with the " +
		"principalARN of your role and the policy AmazonEKSClusterAdminPolicy"}
}

// notIsolated warns of pools whose pods reach the metadata service. A pod is one network hop further away than its node, so tokens that
// travel two hops reach it, and with them the credentials of the node's role.
// https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html
func notIsolated(pools []Pool) (warnings []string) {
	for i, pool := range pools {
		if pool.MetadataHopLimit > 1 {
			warnings = append(warnings, fmt.Sprintf("spec.pools[%d].metadataHopLimit: %d gives the pods of pool %s the credentials of "+
				"the node's role; remove the field, and give workloads roles of their own", i, pool.MetadataHopLimit, pool.Name))
		}
	}
	return warnings
}

// unschedulable warns of add-ons whose pods run on no pool, because of its taints. Such pods stay Pending. Their disruption budgets then
// allow nothing, so drains of the nodes where they still run cannot end.
func unschedulable(pools []Pool, addons []Addon) []string {
	var lacking []string
	for _, addon := range addons {
		tolerations, ok := tolerationsOf(addon)
		if ok && !slices.ContainsFunc(pools, func(p Pool) bool { return p.MaxSize > 0 && admits(p, tolerations) }) {
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
	return []string{fmt.Sprintf("spec.pools: no pool can run the pods of %s, which do not tolerate its taints (%s): "+
		"they stay Pending, and drains of the nodes that they run on now cannot end; "+
		"keep a pool without such a taint, or add tolerations to spec.addons[].configuration first",
		strings.Join(lacking, ", "), strings.Join(taints, ", "))}
}

// String returns the taint in the form of kubectl.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// repels reports whether the taint keeps pods without a toleration off the node. PreferNoSchedule does not.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#concepts
func (t Taint) repels() bool { return t.Effect == "NoSchedule" || t.Effect == "NoExecute" }

// admits reports whether pods with these tolerations run on a pool's nodes.
func admits(pool Pool, tolerations []toleration) bool {
	return !slices.ContainsFunc(pool.Taints, func(taint Taint) bool {
		return taint.repels() && !slices.ContainsFunc(tolerations, func(t toleration) bool { return t.tolerates(taint) })
	})
}

// toleration of a pod, as in Kubernetes.
type toleration struct {
	Key, Operator, Value, Effect string
	TolerationSeconds            *int64
}

// tolerates reports whether a pod with the toleration may stay on a node with the taint. A toleration with tolerationSeconds does not
// count: the pod is evicted after that time.
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

// replicas are the tolerations of an add-on's Deployment: the default ones, and where its configuration may override them.
type replicas struct {
	// section of the configuration that contains the key tolerations. "" is the top level.
	section     string
	tolerations []toleration
}

// critical is the toleration that EKS add-ons have in common.
var critical = toleration{Key: "CriticalAddonsOnly", Operator: "Exists"}

// replicatedAddons are the add-ons that run Deployments. DaemonSets tolerate every taint, and other add-ons are unknown.
//   - coredns: https://github.com/awsdocs/amazon-eks-user-guide/blob/mainline/latest/ug/networking/managing-coredns.adoc and the
//     Deployment that EKS installs.
//   - aws-ebs-csi-driver, aws-efs-csi-driver, aws-fsx-csi-driver: controller.tolerations of charts/*/values.yaml of
//     https://github.com/kubernetes-sigs/aws-ebs-csi-driver and its two siblings.
//   - metrics-server, snapshot-controller: their charts have none. The local account gives them the common one: a missing warning does
//     less harm than a wrong one.
var replicatedAddons = map[string]replicas{
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

// tolerationsOf returns the tolerations of an add-on's Deployment, from its configuration or by default. ok is false for an unknown
// add-on, and for a configuration whose tolerations are no list, which EKS rejects.
func tolerationsOf(addon Addon) (_ []toleration, ok bool) {
	deployment, ok := replicatedAddons[addon.Name]
	if !ok {
		return nil, false
	}
	section := addon.Configuration
	if deployment.section != "" {
		section, _ = section[deployment.section].(map[string]any)
	}
	stated, ok := section["tolerations"]
	if !ok {
		return deployment.tolerations, true
	}
	var tolerations []toleration
	body, err := json.Marshal(stated)
	if err != nil || json.Unmarshal(body, &tolerations) != nil {
		return nil, false
	}
	return tolerations, true
}
