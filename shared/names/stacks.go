package names

import (
	"strings"
)

// drover's own stacks. Neither name starts with Prefix, so that no role of drover may touch them.
const (
	// BaseStack has what outlives a removal of drover: the buckets, the permissions boundary, and the roles that clusters name.
	BaseStack = "DroverBase"
	// CellStack has everything else: functions, machines, rules, schedules and alarms.
	CellStack = "drover"
)

// Stacks of a cluster, in the order in which they are changed.
const (
	Network      = "network"
	ControlPlane = "control-plane"
	// Addons holds the add-ons that nodes need before they can be Ready (CNI, kube-proxy, pod identity).
	Addons = "addons"
	// Identities holds the pod identity associations of the spec. It is changed with the add-ons that nodes need.
	Identities = "identities"
	// Capabilities holds the EKS Capabilities of the spec. It is changed with the add-ons that nodes need.
	Capabilities = "capabilities"
	// PoolPrefix starts the stack of each pool: pool-<name>.
	PoolPrefix = "pool-"
	// NodeAddons holds the add-ons that need nodes to run on. It is changed after the pools.
	NodeAddons = "addons-on-nodes"
)

// EKSCluster returns the name of a cluster's EKS cluster. The prefix lets IAM policies match it.
func EKSCluster(cluster string) string { return Prefix + cluster }

// PoolStack returns the stack of a pool, without the cluster's prefix.
func PoolStack(pool string) string { return PoolPrefix + pool }

// Stack returns the CloudFormation name of one of a cluster's stacks.
func Stack(cluster, stack string) string { return Prefix + cluster + "-" + stack }

// IsStack reports whether a name, without the cluster's prefix, is that of a cluster's stack.
func IsStack(name string) bool {
	switch name {
	case Network, ControlPlane, Addons, Identities, Capabilities, NodeAddons:
		return true
	}
	pool, ok := strings.CutPrefix(name, PoolPrefix)
	return ok && pool != ""
}

// SplitStack returns the cluster and the stack of a CloudFormation stack name. No two clusters share a name: see docs/adr/0003.
func SplitStack(stackName string) (cluster, stack string, ok bool) {
	rest, hasPrefix := strings.CutPrefix(stackName, Prefix)
	if !hasPrefix {
		return "", "", false
	}
	if cluster, pool, ok := strings.Cut(rest, "-"+PoolPrefix); ok {
		return cluster, PoolPrefix + pool, cluster != "" && pool != ""
	}
	for _, stack := range []string{Network, ControlPlane, Addons, Identities, Capabilities, NodeAddons} {
		if cluster, ok := strings.CutSuffix(rest, "-"+stack); ok {
			return cluster, stack, cluster != ""
		}
	}
	return "", "", false
}

// Group returns the Auto Scaling group of a pool.
func Group(cluster, pool string) string { return Stack(cluster, PoolStack(pool)) }

// GroupResource is the logical id of the Auto Scaling group in a pool's stack. Signals name it.
const GroupResource = "Group"

// ClusterResource is the logical id of the EKS cluster in a control plane stack.
const ClusterResource = "Cluster"

// RelayResource is the logical id of the relay's function in a control plane stack.
const RelayResource = "RelayFunction"

// StackOfARN returns the stack name in a CloudFormation stack ARN (arn:…:stack/<name>[/<uuid>]), or "" for any other ARN.
func StackOfARN(arn string) string {
	_, rest, found := strings.Cut(arn, ":stack/")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}
