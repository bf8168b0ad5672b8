package events

import "time"

// The values of Origin and Kind are defined in shared/upgrade.

// Upgrade is the input of the upgrade machine. An operator sets Cluster and either Release or Rollback. drover itself also sets Origin
// and Key.
type Upgrade struct {
	Cluster string `json:"cluster"`
	// Release is the release to upgrade to. KubernetesVersion is set if it differs from the release's version.
	Release           string `json:"release,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// SHA256 is the content of the release, in hex: the object releases/<sha256>.yaml of the state bucket. Without it the release of the specs
	// bucket applies.
	SHA256 string `json:"sha256,omitempty"`
	// Rollback returns to the release before the last upgrade. If Release is set too, it is that release.
	Rollback bool   `json:"rollback,omitempty"`
	Origin   string `json:"origin,omitempty"`
	Key      string `json:"key,omitempty"`
	// Due is the scheduled time, if it was before the start of the execution. The upgrade's delay counts from then.
	Due time.Time `json:"due,omitzero"`
	// CheckOnly runs the checks of a scheduled upgrade, and records the results in the status. It does not begin the upgrade.
	CheckOnly bool `json:"checkOnly,omitempty"`
	// Ended is an execution of the upgrade machine that ended without recording it. Its upgrade is stopped, and no upgrade begins.
	Ended string `json:"ended,omitempty"`
	// Continues is an execution that a removal of drover ended. This one takes over its upgrade, which has begun: its window no longer
	// applies. The other fields are those of that execution.
	Continues string `json:"continues,omitempty"`
}

// UpgradeAction is one action of the upgrade function.
type UpgradeAction string

// The actions of the upgrade function, in the order in which the machine calls them.
const (
	// UpgradeCheck claims the upgrade, plans its steps and runs all checks. It writes only the record and the status.
	UpgradeCheck UpgradeAction = "Check"
	// UpgradeBegin disables alarms' actions and opens the first step.
	UpgradeBegin UpgradeAction = "Begin"
	// UpgradeNext verifies a step and opens the next one.
	UpgradeNext UpgradeAction = "Next"
	// UpgradeFinish runs the final checks, enables alarms' actions again and records the result.
	UpgradeFinish UpgradeAction = "Finish"
	// UpgradeStop does the same after a failure. Completed steps are retained.
	UpgradeStop UpgradeAction = "Stop"
)

// UpgradeRequest is the input of the upgrade function: one action.
type UpgradeRequest struct {
	Upgrade
	Action    UpgradeAction `json:"action"`
	Execution string        `json:"execution"`
	// Started is when the execution started.
	Started time.Time `json:"started"`
	// Error and Cause describe what failed, for Stop.
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// UpgradeOutcome is the result of an action. The machine branches on it.
type UpgradeOutcome string

// The outcomes of an action.
const (
	// UpgradeGo: continue. After Check follows Begin. After Begin and Next follows the step named by Kind.
	UpgradeGo UpgradeOutcome = "Go"
	// UpgradeDone: all steps are verified. After Finish: the upgrade succeeded.
	UpgradeDone UpgradeOutcome = "Done"
	// UpgradeNothing: the cluster already has the target, or an earlier execution handled this request.
	UpgradeNothing UpgradeOutcome = "Nothing"
	// UpgradeRefused: an operator started the upgrade, and it is not possible. Nothing was changed. Message is why and what to do.
	UpgradeRefused UpgradeOutcome = "Refused"
	// UpgradeBusy: another operation is in flight on the cluster, or its checks need more time. The machine retries in a few minutes.
	UpgradeBusy UpgradeOutcome = "Busy"
	// UpgradeBlocked: checks failed, and nothing was changed. The status names them.
	UpgradeBlocked UpgradeOutcome = "Blocked"
	// UpgradeStopped: the upgrade ended. Message is why and what follows.
	UpgradeStopped UpgradeOutcome = "Stopped"
)

// UpgradeResult is the result of the upgrade function.
type UpgradeResult struct {
	Outcome UpgradeOutcome `json:"outcome"`
	// Message is present even if it is empty. A machine that reads a missing field fails.
	Message string `json:"message"`
	// WaitSeconds is the pause in seconds, when Outcome is Busy.
	WaitSeconds int `json:"waitSeconds,omitempty"`
	// Kind of the open step.
	Kind string `json:"kind,omitempty"`
	// Name of the converge execution that makes the step.
	Name string `json:"name,omitempty"`
}
