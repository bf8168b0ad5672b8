package events

import "time"

// Converge is the input of the converge machine. An operator can start it with a cluster's name alone.
type Converge struct {
	Cluster string `json:"cluster"`
	// Roll names pools whose nodes are all replaced once, even without another change.
	Roll []string `json:"roll,omitempty"`
}

// PlanRequest is the input of the plan function.
type PlanRequest struct {
	Cluster string `json:"cluster"`
	// Execution is the ARN of the converge execution. It holds the lease if there are changes.
	Execution string `json:"execution"`
	// Roll names the pools to roll. Started is when the execution started: the requested time of the roll.
	Roll    []string  `json:"roll,omitempty"`
	Started time.Time `json:"started,omitzero"`
}

// Outcome of planning.
type Outcome string

// The outcomes of planning.
const (
	// OutcomeChanges: there are changes, and this execution may make them.
	OutcomeChanges Outcome = "Changes"
	// OutcomeUnchanged: the cluster matches its spec.
	OutcomeUnchanged Outcome = "Unchanged"
	// OutcomeBusy: another execution converges the cluster and will see this spec. The execution does not hold the lease.
	OutcomeBusy Outcome = "Busy"
	// OutcomeStopped: no change is possible. The spec is absent or invalid, the cluster is paused, a change is refused, or protection
	// forbids the deletion. Reason and Message say which.
	OutcomeStopped Outcome = "Stopped"
	// OutcomeDeletes: the spec was deleted, and the cluster follows. Deletion is the next step.
	OutcomeDeletes Outcome = "Deletes"
	// OutcomeGone: the spec was deleted, and no part of the cluster remains.
	OutcomeGone Outcome = "Gone"
	// OutcomeRefused: the roll is refused. The pool does not exist, the cluster is paused, or it has no usable spec. Message is why and what
	// to do. The execution does not hold the lease.
	OutcomeRefused Outcome = "Refused"
	// OutcomeUnknown: no cluster has this name. It has no spec, no stacks and no status. plan writes nothing.
	OutcomeUnknown Outcome = "Unknown"
)

// PlanResult is the result of the plan function. Templates and tags are in the plan object, not here.
type PlanResult struct {
	Cluster string  `json:"cluster"`
	Outcome Outcome `json:"outcome"`
	// Reason and Message are set when Outcome is Stopped or Refused. Reason is a CamelCase word.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// SpecVersion is the S3 version of the newest spec.
	SpecVersion string `json:"specVersion,omitempty"`
	// Accepted reports that the newest spec is valid, even if planning failed.
	Accepted bool `json:"accepted,omitempty"`
	// Rejected is why the newest spec is not used and the last good one applies. It is nil if the newest spec is used.
	Rejected *Rejection `json:"rejected,omitempty"`
	// Fence is the number of the lease. Later holders have higher numbers.
	Fence int64 `json:"fence"`
	// Seen is the number of the lease during planning, whether held or not. A status with a higher number is from a later holder.
	Seen int64 `json:"seen"`
	// PlanKey is the key of the plan in the state bucket.
	PlanKey string `json:"planKey,omitempty"`
	// Stages are the stacks to change, in order. The field is always present, so that a machine can map over it.
	Stages Stages `json:"stages"`
	// Deletion is the next step of a deletion, when Outcome is Deletes.
	Deletion *Deletion `json:"deletion,omitempty"`
	// Upgrade is how an upgrade affects this plan. It is nil without one.
	Upgrade *PlannedUpgrade `json:"upgrade,omitempty"`
	// OverrideCleared is the number of the last upgrade, if the spec now names its release. Once the cluster is
	// converged, that release no longer overrides the spec's.
	OverrideCleared int64 `json:"overrideCleared,omitempty"`
}

// Rejection is why a spec is not used: a CamelCase word, and a message for users.
type Rejection struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// PlannedUpgrade is why a converged cluster does not match its spec yet, or which upgrade begins.
type PlannedUpgrade struct {
	// State of the upgrade: Scheduled, or one of upgrade.State.
	State string `json:"state"`
	// Spec reports that the spec requests the upgrade. The cluster is then not Ready before the upgrade is done.
	Spec bool `json:"spec,omitempty"`
	// Release that the spec requests, if its upgrade ended early and drover does not retry it.
	Release string `json:"release,omitempty"`
	// Message for users.
	Message string `json:"message"`
	// Start is the input of the upgrade machine, if the upgrade begins as soon as the cluster is converged. Name is the name of that
	// execution. It stays the same until the upgrade has begun.
	Start *Upgrade `json:"start,omitempty"`
	Name  string   `json:"name,omitempty"`
}

// Deletion is one step of deleting a cluster. The next plan returns the next step.
type Deletion struct {
	// ListRetained first lists the volumes to retain, with the cluster's API. This step deletes the control plane, and with it the API.
	ListRetained bool `json:"listRetained"`
	// Leftovers first removes what Kubernetes created in the account. By then, no component that could create it again is left.
	Leftovers bool `json:"leftovers"`
	// Stacks are deleted in parallel. The list is empty if only leftovers can remain.
	Stacks []string `json:"stacks"`
}

// Stages are the stacks to change. A stage starts when the one before has finished. Stacks that belonged to a deleted control plane are
// in the first stage. Values are stack names without the cluster's prefix, such as "pool-workers".
type Stages struct {
	Network      []string `json:"network"`
	ControlPlane []string `json:"controlPlane"`
	Addons       []string `json:"addons"`
	// Pools are lists of stacks. The lists are changed one after the other, the stacks of a list in parallel.
	Pools      [][]string `json:"pools"`
	NodeAddons []string   `json:"nodeAddons"`
}

// ChangeRequest asks the change function to change one stack and to answer with the task token.
type ChangeRequest struct {
	Cluster   string `json:"cluster"`
	Execution string `json:"execution"`
	Fence     int64  `json:"fence"`
	PlanKey   string `json:"planKey"`
	// Stack without the cluster's prefix, such as "pool-workers".
	Stack     string `json:"stack"`
	TaskToken string `json:"taskToken"`
	// WaitedSeconds is how long the change has waited for drains. It is nil if the task cannot wait: a stage without nodes, or an execution
	// of an older drover.
	WaitedSeconds *int64 `json:"waitedSeconds,omitempty"`
	// Repeats is how often the step has made its change again, after a failure that may pass. It is nil if the step cannot.
	Repeats *int64 `json:"repeats,omitempty"`
}

// ChangeResult is the result of one stack's change, as the waiting task receives it.
type ChangeResult struct {
	Stack string `json:"stack"`
	// Again requests another change of the same stack. What blocked it is over, such as a failed creation or an external update.
	Again bool `json:"again"`
	// WaitSeconds is the pause before that change. WaitedSeconds is the total wait after the pause.
	WaitSeconds   int64 `json:"waitSeconds,omitempty"`
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`
	// Repeats is passed on to that change.
	Repeats int64 `json:"repeats,omitempty"`
	// Status is CloudFormation's, such as UPDATE_COMPLETE.
	Status string `json:"status,omitempty"`
	// Error is the name of the fault when the stack failed. Cause is the message from AWS. State is the failed state.
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
	State string `json:"state,omitempty"`
}

// PrepareRequest asks the prepare function to grant drover its permissions in the cluster.
type PrepareRequest struct {
	Cluster string `json:"cluster"`
	// ListRetained instead lists the volumes that the cluster retains, before its API is deleted.
	ListRetained bool `json:"listRetained,omitempty"`
	// Fence of the lease under which the volumes are listed. A later holder ignores its result.
	Fence int64 `json:"fence,omitempty"`
}

// CleanRequest asks the clean function to remove what Kubernetes created in the account.
type CleanRequest struct {
	Cluster   string `json:"cluster"`
	Execution string `json:"execution"`
	Fence     int64  `json:"fence"`
	// Last reports that all stacks of the cluster are deleted. Resources that still have its tags were retained by a stack.
	Last bool `json:"last"`
}

// CleanOutcome is the result of one attempt to remove leftovers.
type CleanOutcome string

// The outcomes of cleaning.
const (
	// CleanDone: only resources that are retained on purpose are left.
	CleanDone CleanOutcome = "Clean"
	// CleanWaiting: some resources are in use or being deleted. The machine retries.
	CleanWaiting CleanOutcome = "Waiting"
	// CleanSuperseded: a spec exists again. This attempt removed nothing.
	CleanSuperseded CleanOutcome = "Superseded"
)

// CleanResult is the result of the clean function.
type CleanResult struct {
	Outcome CleanOutcome `json:"outcome"`
	// Message names the leftovers, when Outcome is Waiting.
	Message string `json:"message,omitempty"`
}

// ReportRequest is the input of the report function, which ends a round of converging.
type ReportRequest struct {
	Cluster   string `json:"cluster"`
	Execution string `json:"execution"`
	// Plan is the last plan's result; nil when planning itself failed.
	Plan *PlanResult `json:"plan,omitempty"`
	// Results of the stacks' changes.
	Results []ChangeResult `json:"results,omitempty"`
	// Error and Cause are the name and message of a failed state's error. Failed is that state.
	Error  string       `json:"error,omitempty"`
	Cause  string       `json:"cause,omitempty"`
	Failed *FailedState `json:"failed,omitempty"`
	// Try counts how often the execution has backed off.
	Try int `json:"try,omitempty"`
}

// FailedState is a failed state of the converge machine.
type FailedState struct {
	// State is the name of the state. Function is the function that it invokes, without the prefix.
	State    string `json:"state"`
	Function string `json:"function"`
	// Stack without the cluster's prefix, if the state changes one.
	Stack string `json:"stack,omitempty"`
}

// ReportResult is how the execution continues or ends.
type ReportResult struct {
	// Again reports that the execution must plan again, because a newer spec arrived or the failure may pass within minutes. WaitSeconds is
	// the pause before that.
	Again       bool  `json:"again"`
	WaitSeconds int64 `json:"waitSeconds,omitempty"`
	// Failed reports that the execution must end as failed. Reason is why, in a sentence.
	Failed bool   `json:"failed"`
	Reason string `json:"reason,omitempty"`
}
