package events

import "time"

// Converge is the input of the converge machine. Nothing else is needed to start it by hand.
type Converge struct {
	Cluster string `json:"cluster"`
	// Roll names pools whose nodes are all to be replaced, once, though nothing else changed.
	Roll []string `json:"roll,omitempty"`
}

// PlanRequest asks the plan function for what is to do.
type PlanRequest struct {
	Cluster string `json:"cluster"`
	// Execution is the ARN of the converge execution, which holds the lease afterwards.
	Execution string `json:"execution"`
	// Roll names the pools to replace the nodes of, and Started is when the execution started: the time that is asked for.
	Roll    []string  `json:"roll,omitempty"`
	Started time.Time `json:"started,omitzero"`
}

// Outcome of planning.
type Outcome string

// The outcomes of planning.
const (
	// OutcomeChanges: there are changes, and they may be made.
	OutcomeChanges Outcome = "Changes"
	// OutcomeUnchanged: the cluster is what its spec says.
	OutcomeUnchanged Outcome = "Unchanged"
	// OutcomeBusy: another execution converges the cluster and will see this spec too. Nothing is held.
	OutcomeBusy Outcome = "Busy"
	// OutcomeStopped: nothing may be done: spec absent or invalid, cluster paused, a change refused, a deletion that protection
	// forbids. The status says why.
	OutcomeStopped Outcome = "Stopped"
	// OutcomeDeletes: the spec is gone, and the cluster goes: Deletion says what is next.
	OutcomeDeletes Outcome = "Deletes"
	// OutcomeGone: the spec is gone, and so is the cluster.
	OutcomeGone Outcome = "Gone"
	// OutcomeRefused: the cluster takes no such roll: the pool is unknown, or the cluster is paused or has no usable spec. Message says
	// why and what to do; nothing is held.
	OutcomeRefused Outcome = "Refused"
	// OutcomeUnknown: there is no cluster of this name: neither a spec, nor stacks, nor a status. Nothing is written.
	OutcomeUnknown Outcome = "Unknown"
)

// PlanResult says what is to do. It holds no template and no tag: those are in the plan object.
type PlanResult struct {
	Cluster string  `json:"cluster"`
	Outcome Outcome `json:"outcome"`
	// Reason and Message say why, when Outcome is Stopped or Refused. Reason is a CamelCase word.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// SpecVersion is the S3 version of the newest spec.
	SpecVersion string `json:"specVersion,omitempty"`
	// Accepted says that the newest spec is valid, whether or not it could be planned.
	Accepted bool `json:"accepted,omitempty"`
	// Rejected says why the newest spec is not used, and the last good one counts; nil when it does not.
	Rejected *Rejection `json:"rejected,omitempty"`
	// Fence is the number of the lease: later holders have higher ones.
	Fence int64 `json:"fence"`
	// Seen is the number of the lease as planning saw it, held or not: a status with a higher one is a later holder's.
	Seen int64 `json:"seen"`
	// PlanKey is where the plan is in the state bucket.
	PlanKey string `json:"planKey,omitempty"`
	// Stages are the stacks to change, in order. Always present, so that a machine may map over them.
	Stages Stages `json:"stages"`
	// Deletion is what is to be removed next, when Outcome is Deletes.
	Deletion *Deletion `json:"deletion,omitempty"`
	// Upgrade is what an upgrade has to do with this plan; nil when nothing.
	Upgrade *PlannedUpgrade `json:"upgrade,omitempty"`
	// Served is the number of the upgrade whose release need not count instead of the spec's any more, once the cluster is converged: the spec
	// names it.
	Served int64 `json:"served,omitempty"`
}

// Rejection of a spec, by reason, a CamelCase word, and in words for people.
type Rejection struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// PlannedUpgrade says why a cluster that was converged is not all that its spec says, or begins to be.
type PlannedUpgrade struct {
	// State is that of the upgrade: Scheduled, or one of upgrade.State.
	State string `json:"state"`
	// Spec says that it is the spec that asks for it: then the cluster is not Ready before it is made.
	Spec bool `json:"spec,omitempty"`
	// Release that the spec asks for, when that upgrade ended before it was made, and is not tried again by itself.
	Release string `json:"release,omitempty"`
	// Message for people.
	Message string `json:"message"`
	// Start is the input of the upgrade machine when the upgrade is to begin as soon as the cluster is converged, and Name that of the
	// execution: the same as long as nothing came of it.
	Start *Upgrade `json:"start,omitempty"`
	Name  string   `json:"name,omitempty"`
}

// Deletion is one step of removing a cluster. The plan after it says the next.
type Deletion struct {
	// Survey asks first what the cluster's API knows of its volumes: it goes with the stacks of this step.
	Survey bool `json:"survey"`
	// Leftovers removes first what Kubernetes made in the account: nothing is left that could make it again.
	Leftovers bool `json:"leftovers"`
	// Stacks go at the same time. There may be none, when leftovers are all that there can be.
	Stacks []string `json:"stacks"`
}

// Stages are the stacks to change, by stage; a stage starts when the one before is over. In the first goes what
// belonged to a control plane that is gone. Values are stack names without the cluster's prefix, such as
// "pool-workers".
type Stages struct {
	Network      []string `json:"network"`
	ControlPlane []string `json:"controlPlane"`
	Addons       []string `json:"addons"`
	// Pools are lists that are changed one after the other, the stacks of each at the same time.
	Pools      [][]string `json:"pools"`
	NodeAddons []string   `json:"nodeAddons"`
}

// ChangeRequest asks the change function to change one stack and to answer through the task token.
type ChangeRequest struct {
	Cluster   string `json:"cluster"`
	Execution string `json:"execution"`
	Fence     int64  `json:"fence"`
	PlanKey   string `json:"planKey"`
	// Stack without the cluster's prefix, such as "pool-workers".
	Stack     string `json:"stack"`
	TaskToken string `json:"taskToken"`
	// WaitedSeconds is for how long the change has waited for drains. It is nil where nobody would wait before the next look: a stage without
	// nodes, an execution that began when drover did not have this yet.
	WaitedSeconds *int64 `json:"waitedSeconds,omitempty"`
}

// ChangeResult is the outcome of one stack, as a waiting step receives it.
type ChangeResult struct {
	Stack string `json:"stack"`
	// Again asks for one more change of the same stack: something in its way (a failed creation, somebody else's
	// update) is over now.
	Again bool `json:"again"`
	// WaitSeconds is how long to wait before that, and WaitedSeconds how long it has been waited then in all.
	WaitSeconds   int64 `json:"waitSeconds,omitempty"`
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`
	// Status is CloudFormation's, such as UPDATE_COMPLETE.
	Status string `json:"status,omitempty"`
	// Error is the name of the fault when the stack failed, and Cause what AWS said. Step is the state that ended so.
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
	Step  string `json:"step,omitempty"`
}

// PrepareRequest asks the prepare function to give drover its own permissions in the cluster.
type PrepareRequest struct {
	Cluster string `json:"cluster"`
	// Survey asks for something else: which volumes the cluster wants kept, before its API goes.
	Survey bool `json:"survey,omitempty"`
	// Fence of the lease that the answer is for: it is worth nothing to a later holder.
	Fence int64 `json:"fence,omitempty"`
}

// CleanRequest asks the clean function to remove what Kubernetes made in the account.
type CleanRequest struct {
	Cluster   string `json:"cluster"`
	Execution string `json:"execution"`
	Fence     int64  `json:"fence"`
	// Last says that none of the cluster's stacks is left: what has its tags still, they kept.
	Last bool `json:"last"`
}

// CleanOutcome of one try to remove leftovers.
type CleanOutcome string

// The outcomes of cleaning.
const (
	// CleanDone: nothing is left but what is kept on purpose.
	CleanDone CleanOutcome = "Clean"
	// CleanWaiting: some of it is still in use, or on its way out: try again.
	CleanWaiting CleanOutcome = "Waiting"
	// CleanSuperseded: the spec is back. Nothing was removed by this try.
	CleanSuperseded CleanOutcome = "Superseded"
)

// CleanResult says how far cleaning is.
type CleanResult struct {
	Outcome CleanOutcome `json:"outcome"`
	// Message names what is left, when Outcome is Waiting.
	Message string `json:"message,omitempty"`
}

// ReportRequest ends a round of converging.
type ReportRequest struct {
	Cluster   string `json:"cluster"`
	Execution string `json:"execution"`
	// Plan is the last plan's result; nil when planning itself failed.
	Plan *PlanResult `json:"plan,omitempty"`
	// Results are the stacks' outcomes.
	Results []ChangeResult `json:"results,omitempty"`
	// Error and Cause are set when a step failed: the error name and what it said. Failed says which step.
	Error  string      `json:"error,omitempty"`
	Cause  string      `json:"cause,omitempty"`
	Failed *FailedStep `json:"failed,omitempty"`
	// Try counts how often the execution has backed off.
	Try int `json:"try,omitempty"`
}

// FailedStep is a state of the converge machine that failed.
type FailedStep struct {
	// Step is the name of the state, Function what it invokes, without the prefix.
	Step     string `json:"step"`
	Function string `json:"function"`
	// Stack without the cluster's prefix, if the step is about one.
	Stack string `json:"stack,omitempty"`
}

// ReportResult says how the execution ends.
type ReportResult struct {
	// Again is true when the execution must plan again: a newer spec arrived, or what failed may pass within minutes. Then WaitSeconds is
	// the pause before that.
	Again       bool  `json:"again"`
	WaitSeconds int64 `json:"waitSeconds,omitempty"`
	// Failed is true when the execution must end as failed; Reason says why in a sentence.
	Failed bool   `json:"failed"`
	Reason string `json:"reason,omitempty"`
}
