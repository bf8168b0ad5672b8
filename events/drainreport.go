package events

// What a drain, or a part of one, has to tell.

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// DrainOutcome says how a drain, or a part of one, ended.
type DrainOutcome string

// The outcomes.
const (
	// DrainDone: nothing is left that the node must wait for.
	DrainDone DrainOutcome = "Done"
	// DrainRemaining: something is; go on.
	DrainRemaining DrainOutcome = "Remaining"
	// DrainGone: there is no such node.
	DrainGone DrainOutcome = "Gone"
	// DrainTimedOut: the time is over, and the policy says that the node goes with what is left.
	DrainTimedOut DrainOutcome = "TimedOut"
)

// DrainReport says how far a drain is.
type DrainReport struct {
	Outcome DrainOutcome `json:"outcome"`
	// Message for people.
	Message string `json:"message,omitempty"`
	// Left is how many pods must still go; Terminating of them are on their way.
	Left        int `json:"left"`
	Terminating int `json:"terminating,omitempty"`
	// Pods that are left, those of them that are Ending, Blocked ones with their reasons, Stuck ones that are waited for no more, and those
	// that were Forced: deleted against their budgets. Returned are not left: they came when the node was cordoned, which they tolerate,
	// and end with it as DaemonSets' pods do. At most MaxNamed of each.
	Pods     []string     `json:"pods,omitempty"`
	Ending   []string     `json:"ending,omitempty"`
	Blocked  []BlockedPod `json:"blocked,omitempty"`
	Stuck    []string     `json:"stuck,omitempty"`
	Forced   []string     `json:"forced,omitempty"`
	Returned []string     `json:"returned,omitempty"`
	// Pending are pods under the budgets of Blocked that no node can run, such as those that replace evicted ones; at most MaxPending.
	Pending []PendingPod `json:"pending,omitempty"`
	// Begins is when the first may be evicted: until then load balancers have time. Absent once it has come.
	Begins *time.Time `json:"begins,omitempty"`
	// Volumes that are still attached.
	Volumes int `json:"volumes,omitempty"`
	// EstimateSeconds of the time left; absent when something blocks for which no time is known.
	EstimateSeconds *int64 `json:"estimateSeconds,omitempty"`
	// Stalled: a disruption budget blocks pods, and no pod under it is leaving this node. The drain goes on once another pod is Ready.
	Stalled bool `json:"stalled,omitempty"`
	// Evicted is how many evictions were accepted, Requests how many requests were sent for them.
	Evicted  int `json:"evicted,omitempty"`
	Requests int `json:"requests,omitempty"`
}

// MaxNamed bounds the lists of a report: payloads of state machines are limited to 256 KiB.
// https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
const MaxNamed = 50

// BlockedPod is a pod that cannot go now.
type BlockedPod struct {
	Pod string `json:"pod"`
	Why string `json:"why"`
	// Budgets that are in the way.
	Budgets []string `json:"budgets,omitempty"`
}

// PendingPod is a pod that the scheduler finds no node for, and why.
type PendingPod struct {
	Pod string `json:"pod"`
	Why string `json:"why"`
}

// MaxPending bounds the pending pods of a report: more of them wait for the same.
const MaxPending = 5

// Summary is one sentence about what is left, for the node and for the status.
func (r *DrainReport) Summary() string {
	text := r.left()
	if len(r.Returned) > 0 {
		text += "; came back although the node is cordoned, which they tolerate, and end with it: " + strings.Join(some(r.Returned), ", ")
	}
	return text
}

func (r *DrainReport) left() string {
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
	if r.Begins != nil {
		text += "; load balancers have until " + r.Begins.UTC().Format(time.TimeOnly) + " UTC to forget the node"
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
		text += "; blocked: " + strings.Join(some(blocked), "; ")
	}
	if r.Message != "" {
		text += "; " + r.Message
	}
	return text
}

// leftPods counts the pods that a node still has.
func leftPods(left, terminating int) string {
	switch {
	case left > 1:
		return fmt.Sprintf("%d pods are left, %d of them terminating", left, terminating)
	case terminating > 0:
		return "1 pod is left, terminating"
	}
	return "1 pod is left"
}

// AttachedVolumes counts the volumes that keep a node.
func AttachedVolumes(n int) string {
	if n == 1 {
		return "1 volume is still attached"
	}
	return fmt.Sprintf("%d volumes are still attached", n)
}

// some of many: the first five.
func some(all []string) []string {
	const most = 5
	if len(all) > most {
		return append(slices.Clone(all[:most]), "…")
	}
	return all
}
