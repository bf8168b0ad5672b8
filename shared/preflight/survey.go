package preflight

// Facts from a cluster's own API: totals and exceptions instead of every object, so that they are small for large clusters too.

import "time"

// Survey of a cluster.
type Survey struct {
	// Unhealthy are the failed checks of the API server's /readyz.
	Unhealthy []string
	Nodes     []Node
	// Pods that do not run correctly, in all namespaces.
	Pods []Pod
	// Workloads are the Deployments, StatefulSets and DaemonSets.
	Workloads []Workload
	Budgets   []Budget
	// Overlaps are pods on nodes of drover's pools that more than one budget covers: the first few.
	Overlaps []Overlap
	// Webhooks whose failure rejects requests.
	Webhooks []Webhook
	// KubeProxies are the running versions of kube-proxy, such as v1.36.0.
	KubeProxies []string
}

// Node of the cluster, in a pool or not.
type Node struct {
	Name string
	// Pool of drover's, or "".
	Pool string
	// Ready is the status of the condition, Since its last transition, Message its message.
	Ready   bool
	Since   time.Time
	Message string
	// Created is when the node registered.
	Created time.Time
	// Cordoned reports that the node accepts no new pods. Leaving reports that drover drains it or an autoscaler removes it, so no user
	// cordoned it.
	Cordoned, Leaving bool
	// Kubelet version such as v1.36.3-eks-abc.
	Kubelet string
	// Requested and allocatable resources: CPU in thousandths of a core, memory in bytes.
	Requested, Allocatable Resources
}

// Resources of a node.
type Resources struct {
	MilliCPU, Memory int64
	// Pods is their number.
	Pods int64
}

// Pod that does not run correctly.
type Pod struct {
	Namespace, Name string
	// Node of the pod, or "".
	Node string
	// Workload of the pod, such as "DaemonSet kube-proxy", or "".
	Workload string
	// State in one word: Pending, NotReady, or the reason why a container waits, such as CrashLoopBackOff.
	State string
	// Since is when that state began, if that is known.
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
	// Stale reports that its status is about an older spec or is empty. Failed is why the controller cannot compute it.
	Stale  bool
	Failed string
	// Covered counts the pods on nodes of drover's pools that a drain would have to evict, by pool.
	Covered map[string]int
	// Unhealthy counts its pods that are not ready. Since is when the first became so.
	Unhealthy int
	Since     time.Time
}

// Overlap is a pod that more than one budget covers. The eviction API refuses it.
type Overlap struct {
	Namespace, Pod, Pool string
	Budgets              []string
}

// Webhook that rejects requests when it fails (failurePolicy Fail), and that an upgrade's writes pass.
type Webhook struct {
	// Configuration such as "ValidatingWebhookConfiguration policy". Name of the webhook in it.
	Configuration, Name string
	// Service that it calls, as namespace/name, or Host outside the cluster.
	Service, Host string
	// Endpoints is the number of the service's ready endpoints.
	Endpoints int
	// Matches are the writes of an upgrade that pass the webhook, in words, such as "evictions".
	Matches []string
}
