package events

// What a pool says about its nodes' drains. It travels in the pool's terminate hook, so it is plain: every function reads it.

import "time"

// DrainPolicy is what a pool says about its nodes' drains. Its JSON travels in the pool's terminate hook; times are seconds.
type DrainPolicy struct {
	// Timeout is counted from when the node was cordoned first; what happens then is OnTimeout. 0 is never.
	Timeout   Seconds   `json:"timeout"`
	OnTimeout OnTimeout `json:"onTimeout"`
	// PodGracePeriod caps the time that pods get to end; 0 is no cap.
	PodGracePeriod Seconds `json:"podGracePeriod,omitempty"`
	// DeleteEmptyDirData allows pods to be evicted that have data on the node itself.
	DeleteEmptyDirData bool `json:"deleteEmptyDirData"`
	// UnmanagedPods are those that nothing starts again elsewhere.
	UnmanagedPods Unmanaged `json:"unmanagedPods"`
	// LoadBalancerWait is between the node's exclusion from load balancers and the first eviction.
	LoadBalancerWait Seconds `json:"loadBalancerWait,omitempty"`
	// Deletes says that the whole cluster is deleted: its system pods are waited for only while they may still serve others. It is never
	// deployed.
	Deletes bool `json:"-"`
}

// Seconds is a duration in whole seconds.
type Seconds int64

// Duration is the same as Go's standard library has it.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// OnTimeout says what happens to pods that are still there when the time is over.
type OnTimeout string

// The values of OnTimeout.
const (
	// Wait goes on as before.
	Wait OnTimeout = "Wait"
	// Force deletes the pods, against their budgets, each with its grace period.
	Force OnTimeout = "Force"
	// Continue leaves them to end with the node.
	Continue OnTimeout = "Continue"
)

// Unmanaged says what happens to pods without a controller.
type Unmanaged string

// The values of Unmanaged.
const (
	// EvictUnmanaged evicts them like others: nothing starts them again.
	EvictUnmanaged Unmanaged = "Evict"
	// WaitForUnmanaged waits until they end by themselves.
	WaitForUnmanaged Unmanaged = "Wait"
)
