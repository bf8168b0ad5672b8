package events

// The drain policy of a pool. The pool's terminate hook carries it, so this package defines it: every function can read it.

import "time"

// DrainPolicy is how the nodes of a pool are drained. The pool's terminate hook carries it as JSON. Times are in seconds.
type DrainPolicy struct {
	// Timeout counts from the first cordon of the node. After it, OnTimeout applies. 0 is no timeout.
	Timeout   Seconds   `json:"timeout"`
	OnTimeout OnTimeout `json:"onTimeout"`
	// PodGracePeriod caps the grace period of pods. 0 is no cap.
	PodGracePeriod Seconds `json:"podGracePeriod,omitempty"`
	// DeleteEmptyDirData allows the eviction of pods that have data on the node itself.
	DeleteEmptyDirData bool `json:"deleteEmptyDirData"`
	// UnmanagedPods is how pods without a controller are treated.
	UnmanagedPods Unmanaged `json:"unmanagedPods"`
	// LoadBalancerWait is the time between the node's exclusion from load balancers and the first eviction.
	LoadBalancerWait Seconds `json:"loadBalancerWait,omitempty"`
	// ClusterDeleting reports that the whole cluster is being deleted. System pods then delay the drain only while they
	// may serve others. It is never deployed.
	ClusterDeleting bool `json:"-"`
}

// Seconds is a duration in whole seconds.
type Seconds int64

// Duration converts s to a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// OnTimeout is what happens to pods that are left after the timeout.
type OnTimeout string

// The values of OnTimeout.
const (
	// Wait continues the drain.
	Wait OnTimeout = "Wait"
	// Force deletes the pods against their budgets, each with its grace period.
	Force OnTimeout = "Force"
	// Continue terminates the node with the pods that are left.
	Continue OnTimeout = "Continue"
)

// Unmanaged is how pods without a controller are treated.
type Unmanaged string

// The values of Unmanaged.
const (
	// EvictUnmanaged evicts them like others. Nothing recreates them.
	EvictUnmanaged Unmanaged = "Evict"
	// WaitForUnmanaged waits until they end on their own.
	WaitForUnmanaged Unmanaged = "Wait"
)
