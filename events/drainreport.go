package events

// Progress of a drain, and its summary for users.

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// DrainOutcome is how a drain, or one slice of it, ended.
type DrainOutcome string

// The outcomes of a drain.
const (
	// DrainDone: the node waits for nothing.
	DrainDone DrainOutcome = "Done"
	// DrainRemaining: the node still waits for something. The machine continues.
	DrainRemaining DrainOutcome = "Remaining"
	// DrainGone: the node does not exist.
	DrainGone DrainOutcome = "Gone"
	// DrainTimedOut: the timeout passed. By the pool's policy, the node is terminated with the pods that are left.
	DrainTimedOut DrainOutcome = "TimedOut"
)

// DrainReport is the progress of a drain.
type DrainReport struct {
	Outcome DrainOutcome `json:"outcome"`
	// Message for users.
	Message string `json:"message,omitempty"`
	// Left counts the pods that must still leave. Terminating counts those of them that are terminating.
	Left        int `json:"left"`
	Terminating int `json:"terminating,omitempty"`
	// Lists of pods, at most MaxNamed each. Pods are left. Ending are those of Pods that are terminating. Blocked cannot leave now. Stuck
	// did not end, and the drain waits for them no longer. Forced were deleted against their budgets. Returned are not left: they tolerate
	// the cordon and came back, so they end with the node, as pods of DaemonSets do.
	Pods     []string     `json:"pods,omitempty"`
	Ending   []string     `json:"ending,omitempty"`
	Blocked  []BlockedPod `json:"blocked,omitempty"`
	Stuck    []string     `json:"stuck,omitempty"`
	Forced   []string     `json:"forced,omitempty"`
	Returned []string     `json:"returned,omitempty"`
	// Pending are pods under the budgets of Blocked that no node can run, such as replacements of evicted pods; at most MaxPending.
	Pending []PendingPod `json:"pending,omitempty"`
	// EvictionsFrom is the time of the first possible eviction. Load balancers stop using the node until then. It is absent after that time.
	EvictionsFrom *time.Time `json:"evictionsFrom,omitempty"`
	// Volumes counts the volumes that are still attached.
	Volumes int `json:"volumes,omitempty"`
	// EstimateSeconds is the estimated time left. It is absent if something blocks the drain for an unknown time.
	EstimateSeconds *int64 `json:"estimateSeconds,omitempty"`
	// Stalled reports that a disruption budget blocks pods and no pod under it is leaving this node. The drain continues when another pod is
	// Ready.
	Stalled bool `json:"stalled,omitempty"`
	// Lasting reports that the reason of a pod of Blocked may last longer than some seconds. It is not part of the payload.
	Lasting bool `json:"-"`
	// Evicted counts the accepted evictions, Requests the requests sent for them.
	Evicted  int `json:"evicted,omitempty"`
	Requests int `json:"requests,omitempty"`
}

// MaxNamed bounds the lists of a report, because the payload of a state machine is limited to 256 KiB.
// https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
const MaxNamed = 50

// BlockedPod is a pod that cannot leave now.
type BlockedPod struct {
	Pod string `json:"pod"`
	Why string `json:"why"`
	// Budgets that block the pod.
	Budgets []string `json:"budgets,omitempty"`
}

// PendingPod is a pod for which the scheduler finds no node, with the scheduler's reason.
type PendingPod struct {
	Pod string `json:"pod"`
	Why string `json:"why"`
}

// MaxPending bounds the pending pods of a report. Further pods usually wait for the same reason.
const MaxPending = 5

// Summary describes in one sentence what is left. The node's annotation and the status show it.
func (r *DrainReport) Summary() string {
	text := r.leftText()
	if len(r.Returned) > 0 {
		text += "; pods that tolerate the cordon came back, and end with the node: " + strings.Join(some(r.Returned), ", ")
	}
	return text
}

// blockedClause begins the part of a summary that lists Blocked.
const blockedClause = "; blocked: "

// WithoutBlocked returns the part of a summary before the list of blocked pods, for output that shows these in rows of their own.
func WithoutBlocked(summary string) string {
	text, _, _ := strings.Cut(summary, blockedClause)
	return text
}

func (r *DrainReport) leftText() string {
	if r.Left == 0 {
		switch {
		case r.Volumes > 0:
			return AttachedVolumes(r.Volumes)
		case r.Message != "":
			return r.Message
		}
		return "no pods are left"
	}
	text := leftPods(r.Left, r.Terminating)
	if len(r.Ending) > 0 {
		text += " (" + strings.Join(some(r.Ending), ", ") + ")"
	}
	if r.EvictionsFrom != nil {
		text += "; load balancers have until " + r.EvictionsFrom.UTC().Format(time.TimeOnly) + " UTC to stop using the node"
	}
	var pending []string
	for _, p := range r.Pending {
		pending = append(pending, p.Pod+": "+p.Why)
	}
	if pending != nil {
		text += "; their replacements are Pending: " + strings.Join(pending, "; ")
	}
	var blocked []string
	for _, b := range r.Blocked {
		why := b.Why
		if len(b.Budgets) > 0 {
			why += " (" + strings.Join(b.Budgets, ", ") + ")"
		}
		blocked = append(blocked, b.Pod+": "+why)
	}
	if blocked != nil {
		text += blockedClause + strings.Join(some(blocked), "; ")
	}
	if r.Message != "" {
		text += "; " + r.Message
	}
	return text
}

// leftPods describes how many pods the node still has.
func leftPods(left, terminating int) string {
	switch {
	case left > 1:
		return fmt.Sprintf("%d pods are left, %d of them terminating", left, terminating)
	case terminating > 0:
		return "1 pod is left, terminating"
	}
	return "1 pod is left"
}

// AttachedVolumes describes how many volumes a drain waits for.
func AttachedVolumes(n int) string {
	if n == 1 {
		return "1 volume is still attached"
	}
	return fmt.Sprintf("%d volumes are still attached", n)
}

// some returns at most the first five.
func some(all []string) []string {
	const most = 5
	if len(all) > most {
		return append(slices.Clone(all[:most]), "…")
	}
	return all
}
