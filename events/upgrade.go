package events

import "time"

// Origins and kinds of steps are those of shared/upgrade, as words.

// Upgrade is the input of the upgrade machine. By hand a cluster and a release are enough, or a cluster and rollback; whoever
// starts it for a spec, a channel or a time gives origin and key, too.
type Upgrade struct {
	Cluster string `json:"cluster"`
	// Release to upgrade to, and KubernetesVersion if it is another than the release's.
	Release           string `json:"release,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Rollback goes back to what was before the last upgrade, instead.
	Rollback bool   `json:"rollback,omitempty"`
	Origin   string `json:"origin,omitempty"`
	Key      string `json:"key,omitempty"`
	// Due is when it was to begin, when that was before the execution: how late it is counts from then.
	Due time.Time `json:"due,omitzero"`
	// Look runs the checks of an upgrade that is to come, and has the status tell what they find. Nothing is begun.
	Look bool `json:"look,omitempty"`
	// Ended is an execution of the upgrade machine that is over and could not say so. Its upgrade is stopped, and nothing is begun.
	Ended string `json:"ended,omitempty"`
}

// UpgradeAction is what the upgrade function is asked for.
type UpgradeAction string

// The actions of the upgrade function, in the order in which the machine asks.
const (
	// UpgradeCheck claims the upgrade, plans its steps and runs every check. It changes nothing but the record and the status.
	UpgradeCheck UpgradeAction = "Check"
	// UpgradeBegin switches alarms off, and opens the first step.
	UpgradeBegin UpgradeAction = "Begin"
	// UpgradeNext looks at what a step came to, and opens the next.
	UpgradeNext UpgradeAction = "Next"
	// UpgradeFinish runs the checks of the end, switches alarms on again and tells.
	UpgradeFinish UpgradeAction = "Finish"
	// UpgradeStop does the same for an upgrade that failed: what is done stays.
	UpgradeStop UpgradeAction = "Stop"
)

// UpgradeRequest asks the upgrade function for one action.
type UpgradeRequest struct {
	Upgrade
	Action    UpgradeAction `json:"action"`
	Execution string        `json:"execution"`
	// Started is when the execution did.
	Started time.Time `json:"started"`
	// Error and Cause are of what failed, for Stop.
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// UpgradeOutcome is how the machine goes on.
type UpgradeOutcome string

// The outcomes.
const (
	// UpgradeGo: go on; after Check to Begin, after Begin and Next to the step named by Kind.
	UpgradeGo UpgradeOutcome = "Go"
	// UpgradeDone: all steps are made; after Finish: it is over, and all is well.
	UpgradeDone UpgradeOutcome = "Done"
	// UpgradeNothing: the cluster is what it was to be already, or this asking was answered before.
	UpgradeNothing UpgradeOutcome = "Nothing"
	// UpgradeRefused: it was started by hand and cannot be made. Nothing was changed; Message says why and what to do.
	UpgradeRefused UpgradeOutcome = "Refused"
	// UpgradeBusy: something else is under way on the cluster, or it has not settled yet: try again in a few minutes.
	UpgradeBusy UpgradeOutcome = "Busy"
	// UpgradeBlocked: checks failed, and nothing was changed. The status names them.
	UpgradeBlocked UpgradeOutcome = "Blocked"
	// UpgradeStopped: it ends here; Message says why and what is next.
	UpgradeStopped UpgradeOutcome = "Stopped"
)

// UpgradeResult is the answer of the upgrade function.
type UpgradeResult struct {
	Outcome UpgradeOutcome `json:"outcome"`
	// Message is there even when it is empty: a machine that reads what is not there fails on the spot.
	Message string `json:"message"`
	// Wait is how many seconds to wait, when Outcome is Busy.
	Wait int `json:"wait,omitempty"`
	// Kind of the step that is open.
	Kind string `json:"kind,omitempty"`
	// Name of the execution of the converge machine that makes it.
	Name string `json:"name,omitempty"`
}
