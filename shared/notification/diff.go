// Package notification decides which changes are worth a notification, and sends them. Diff is pure. Notifier sends through the interfaces
// Topic and Bus, which shared/aws/sns and shared/aws/eventbridge implement. store.State calls Notifier before each write.
package notification

import (
	"cmp"
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// Notice is one notification, for users and for tools.
type Notice struct {
	// DetailType and Detail of the event: see package events.
	DetailType string
	Detail     any
	// Subject and Message of the mail.
	Subject, Message string
	// Attributes to filter by: cluster; phase or state; urgency.
	Attributes map[string]string
}

// Urgencies.
const (
	// Progress means that drover started an operation.
	Progress = "progress"
	// Result means that an operation succeeded.
	Result = "result"
	// Problem means that an operator should check the cluster.
	Problem = "problem"
)

// Diff returns the notices of a change of a cluster's status. The same change always returns the same notices. It returns none for what
// was sent before and did not change since.
func Diff(cluster string, before, after *status.Status) []Notice {
	var notices []Notice
	for _, compare := range []func(string, *status.Status, *status.Status) (Notice, bool){rejectionNotice, phaseNotice, driftNotice} {
		if n, ok := compare(cluster, before, after); ok {
			notices = append(notices, n)
		}
	}
	notices = append(notices, upgradeNotices(cluster, before, after)...)
	return append(notices, nodeNotices(cluster, before, after)...)
}

// urgencies of phases. Phases in flight end without an operator: drover status shows their messages.
var urgencies = map[status.Phase]string{
	status.Pending: Progress, status.Converging: Progress, status.Upgrading: Progress, status.Deleting: Progress, status.Ready: Result,
	status.Deleted: Result, status.Stopped: Problem, status.Failed: Problem,
}

// phaseNotice reports a new phase or verdict.
func phaseNotice(cluster string, before, after *status.Status) (Notice, bool) {
	if !isNew(before, after) {
		return Notice{}, false
	}
	detail := events.StatusChange{
		Cluster: cluster, Phase: string(after.Phase), PreviousPhase: string(before.Phase), Message: after.Message,
		SpecVersion: after.PlannedVersion,
		Release:     after.Release, KubernetesVersion: after.KubernetesVersion, Execution: after.Execution,
	}
	if c := after.Condition(status.Converged); c != nil {
		detail.Reason = c.Reason
	}
	return Notice{
		DetailType: events.ClusterStatusChange, Detail: detail,
		Subject: fmt.Sprintf("drover: %.60s is %s", cluster, after.Phase), Message: cmp.Or(after.Message, string(after.Phase)),
		Attributes: map[string]string{"cluster": cluster, "phase": string(after.Phase), "urgency": cmp.Or(urgencies[after.Phase], Problem)},
	}, true
}

// rejectionNotice reports an unusable upload or a deleted spec. It does not report the same fault in the next upload.
func rejectionNotice(cluster string, before, after *status.Status) (Notice, bool) {
	current, previous := after.Condition(status.SpecAccepted), before.Condition(status.SpecAccepted)
	if current == nil || current.Status != "False" || previous != nil && previous.Status == current.Status &&
		previous.Reason == current.Reason && previous.Message == current.Message {
		return Notice{}, false
	}
	return Notice{
		DetailType: events.ClusterSpecRejected,
		Detail:     events.SpecRejected{Cluster: cluster, SpecVersion: after.ObservedVersion, Reason: current.Reason, Message: current.Message},
		Subject:    fmt.Sprintf("drover: the spec of %.50s is not used", cluster), Message: cmp.Or(current.Message, current.Reason),
		Attributes: map[string]string{"cluster": cluster, "state": current.Reason, "urgency": Problem},
	}, true
}

// driftNotice reports new results of the audit, and that a drift was resolved.
func driftNotice(cluster string, before, after *status.Status) (Notice, bool) {
	current, previous := after.Condition(status.InSync), before.Condition(status.InSync)
	drifted := previous != nil && previous.Status == "False"
	if current == nil || current.Status == "True" && !drifted || current.Status == "False" && drifted && current.Message == previous.Message {
		return Notice{}, false
	}
	n := Notice{
		DetailType: events.ClusterDrift, Detail: events.Drift{Cluster: cluster, InSync: current.Status == "True", Message: current.Message},
		Subject: fmt.Sprintf("drover: %.50s is not in sync", cluster), Message: cmp.Or(current.Message, current.Reason),
		Attributes: map[string]string{"cluster": cluster, "state": current.Reason, "urgency": Problem},
	}
	if current.Status == "True" {
		n.Subject, n.Message, n.Attributes["urgency"] = fmt.Sprintf("drover: %.50s is in sync again", cluster),
			"the differences that the audit found are resolved", Result
	}
	return n, true
}
