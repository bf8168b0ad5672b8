package preflight

// What a cluster's own API tells: sums and what stands out, not every object, so that it is small for large clusters too.

import "time"

// Survey of a cluster.
type Survey struct {
	// Unhealthy are the checks that the API server says of itself it fails (/readyz).
	Unhealthy []string
	Nodes     []Node
	// Pods that do not run as they should, all namespaces.
	Pods []Pod
	// Workloads are the Deployments, StatefulSets and DaemonSets.
	Workloads []Workload
	Budgets   []Budget
	// Overlaps are pods on nodes of drover's pools that more than one budget covers: the first few.
	Overlaps []Overlap
	// Webhooks whose failure refuses what they are asked about.
	Webhooks []Webhook
	// KubeProxies are the versions of kube-proxy that run, such as v1.36.0.
	KubeProxies []string
}

// Node of the cluster, of a pool or not.
type Node struct {
	Name string
	// Pool of drover's, "" when it is of none.
	Pool string
	// Ready is the condition's; Since is when it last changed, Message what it says.
	Ready   bool
	Since   time.Time
	Message string
	// Created is when the node registered.
	Created time.Time
	// Cordoned says that no pod is to be started on it. Leaving says that it was not a person who did that: drover drains it, or an
	// autoscaler takes it away.
	Cordoned, Leaving bool
	// Kubelet version such as v1.36.3-eks-abc.
	Kubelet string
	// Requested and allocatable resources: CPU in thousandths of a core, memory in bytes.
	Requested, Allocatable Resources
}

// Resources of a node.
type Resources struct {
	MilliCPU, Memory int64
	// Pods is how many.
	Pods int64
}

// Pod that does not run as it should.
type Pod struct {
	Namespace, Name string
	// Node that it is on, "" while it is on none.
	Node string
	// Workload that it is of, such as "DaemonSet kube-proxy"; "" for none.
	Workload string
	// State in one word: Pending, NotReady, or the reason for which a container waits, such as CrashLoopBackOff.
	State string
	// Since is when that began, as far as it can be seen.
	Since time.Time
}

// Workload that keeps pods running.
type Workload struct {
	// Kind is Deployment, StatefulSet or DaemonSet.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Desired and Ready pods.
	Desired int `json:"desired"`
	Ready   int `json:"ready"`
}

// Budget is a PodDisruptionBudget that covers pods which a drain would have to evict.
type Budget struct {
	Namespace, Name string
	// Rule such as "minAvailable 2".
	Rule string
	// Expected pods, and how many of them must be, and are, healthy.
	Expected, Desired, Healthy int
	// Allowed is how many may be disrupted now.
	Allowed int
	// Stale says that its status is about an older spec, or that there is none yet; Failed is why the controller cannot tell.
	Stale  bool
	Failed string
	// Covered are the pods on nodes of drover's pools that a drain would have to evict, by pool.
	Covered map[string]int
	// Unhealthy is how many of its pods are not ready, and since when the first of them.
	Unhealthy int
	Since     time.Time
}

// Overlap is a pod that more than one budget covers: the eviction API refuses it.
type Overlap struct {
	Namespace, Pod, Pool string
	Budgets              []string
}

// Webhook that refuses when it fails (failurePolicy Fail), with what an upgrade writes that it is asked about.
type Webhook struct {
	// Configuration such as "ValidatingWebhookConfiguration policy"; Name of the webhook in it.
	Configuration, Name string
	// Service that it calls, as namespace/name, or Host outside of the cluster.
	Service, Host string
	// Endpoints of the service that are ready.
	Endpoints int
	// Matches are what it is asked about of what an upgrade has written, in words, such as "evictions".
	Matches []string
}
