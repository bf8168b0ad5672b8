// Package notice decides what people and their tools are told when a cluster's status changes. It is pure: who tells them, and
// how, is shared/notify.
package notice

import (
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// Notice is one thing to tell.
type Notice struct {
	// DetailType and Detail of the event: see package events.
	DetailType string
	Detail     any
	// Subject and Message for people.
	Subject, Message string
	// Attributes to filter by: cluster; phase or state; urgency.
	Attributes map[string]string
}

// Urgencies.
const (
	// Progress: drover began something.
	Progress = "progress"
	// Result: something ended well.
	Result = "result"
	// Problem: somebody should look.
	Problem = "problem"
)

// Between are the notices of a change of a cluster's status, none for one that concerns nobody. The same change gives the same
// notices; what was told and did not change since is not told again.
func Between(cluster string, before, after *status.Status) []Notice {
	var told []Notice
	if n, is := rejected(cluster, before, after); is {
		told = append(told, n)
	}
	if n, is := phase(cluster, before, after); is {
		told = append(told, n)
	}
	if n, is := drift(cluster, before, after); is {
		told = append(told, n)
	}
	told = append(told, upgrades(cluster, before, after)...)
	return append(told, nodes(cluster, before, after)...)
}

// urgencies of phases. Those under way end by themselves: their messages are for drover status.
var urgencies = map[status.Phase]string{
	status.Pending: Progress, status.Converging: Progress, status.Upgrading: Progress, status.Deleting: Progress, status.Ready: Result,
	status.Deleted: Result, status.Stopped: Problem, status.Failed: Problem,
}

func phase(cluster string, before, after *status.Status) (Notice, bool) {
	if !news(before, after) {
		return Notice{}, false
	}
	detail := events.StatusChange{
		Cluster: cluster, Phase: string(after.Phase), PreviousPhase: string(before.Phase), Message: after.Message, SpecVersion: after.SpecVersion,
		Release: after.Release, KubernetesVersion: after.KubernetesVersion, Execution: after.Execution,
	}
	if c := after.Condition(status.Converged); c != nil {
		detail.Reason = c.Reason
	}
	return Notice{
		DetailType: events.ClusterStatusChange, Detail: detail,
		Subject: fmt.Sprintf("drover: %.60s is %s", cluster, after.Phase), Message: or(after.Message, string(after.Phase)),
		Attributes: map[string]string{"cluster": cluster, "phase": string(after.Phase), "urgency": or(urgencies[after.Phase], Problem)},
	}, true
}

// rejected tells of an upload that cannot be used, or a spec that is gone. The same fault in the next upload is no news.
func rejected(cluster string, before, after *status.Status) (Notice, bool) {
	now, was := after.Condition(status.SpecAccepted), before.Condition(status.SpecAccepted)
	if now == nil || now.Status != "False" || was != nil && was.Status == now.Status && was.Reason == now.Reason &&
		was.Message == now.Message {
		return Notice{}, false
	}
	return Notice{
		DetailType: events.ClusterSpecRejected,
		Detail:     events.SpecRejected{Cluster: cluster, SpecVersion: after.ObservedVersion, Reason: now.Reason, Message: now.Message},
		Subject:    fmt.Sprintf("drover: the spec of %.50s is not used", cluster), Message: or(now.Message, now.Reason),
		Attributes: map[string]string{"cluster": cluster, "state": now.Reason, "urgency": Problem},
	}, true
}

// drift tells of what the audit found. The same once more is no news, nor is that nothing was ever found.
func drift(cluster string, before, after *status.Status) (Notice, bool) {
	now, was := after.Condition(status.InSync), before.Condition(status.InSync)
	drifted := was != nil && was.Status == "False"
	if now == nil || now.Status == "True" && !drifted || now.Status == "False" && drifted && now.Message == was.Message {
		return Notice{}, false
	}
	n := Notice{
		DetailType: events.ClusterDrift, Detail: events.Drift{Cluster: cluster, InSync: now.Status == "True", Message: now.Message},
		Subject: fmt.Sprintf("drover: %.50s is not what it was made", cluster), Message: or(now.Message, now.Reason),
		Attributes: map[string]string{"cluster": cluster, "state": now.Reason, "urgency": Problem},
	}
	if now.Status == "True" {
		n.Subject, n.Message, n.Attributes["urgency"] = fmt.Sprintf("drover: %.50s is what it was made again", cluster),
			"nothing is left of what the audit found", Result
	}
	return n, true
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
