package api

// Decision is one action of a user on a rollout. It applies once; later versions of the file have no effect.
type Decision struct {
	// APIVersion is drover.run/v1alpha1.
	APIVersion string `json:"apiVersion" rule:"enum=drover.run/v1alpha1"`
	// Kind is Decision.
	Kind string `json:"kind" rule:"enum=Decision"`
	// Metadata names the decision.
	Metadata Metadata `json:"metadata"`
	// Spec is the action.
	Spec DecisionSpec `json:"spec"`
}

// DecisionSpec is an action on a rollout.
type DecisionSpec struct {
	// Rollout to which the decision applies.
	Rollout string `json:"rollout" rule:"format=name"`
	// Plan is the digest of the plan to which the decision applies: 64 hex digits. It is required, except for Pause, Abort and Reject. These
	// apply to any plan.
	Plan string `json:"plan,omitempty" rule:"format=sha256"`
	// Verb is the action. Start begins a run. Approve opens a gate. Pause stops new starts until Resume. Abort stops them for the rest of
	// the run. Reject halts the run. Resume ends a pause or a halt. Retry gives failed and blocked members another attempt. Skip takes
	// members out. Rollback returns the members of a stage to their previous release. Override makes the run ignore a freeze.
	Verb Verb `json:"verb" rule:"enum=Start,Approve,Pause,Abort,Reject,Resume,Retry,Skip,Rollback,Override"`
	// Stage of the plan, such as prod/eu-west-1/1. Required for Approve. Default for Rollback: the open stage.
	Stage string `json:"stage,omitempty" rule:"format=stage-path"`
	// Clusters of Retry and Skip.
	Clusters []string `json:"clusters,omitempty" rule:"format=cluster-name;unique;minItems=1;maxItems=1000"`
	// Freeze that Override ignores.
	Freeze string `json:"freeze,omitempty" rule:"format=name"`
	// Reason is for readers.
	Reason string `json:"reason,omitempty" rule:"format=line"`
}

// Verb is the action of a decision.
type Verb string

// The values of Verb.
const (
	VerbStart    Verb = "Start"
	VerbApprove  Verb = "Approve"
	VerbPause    Verb = "Pause"
	VerbAbort    Verb = "Abort"
	VerbReject   Verb = "Reject"
	VerbResume   Verb = "Resume"
	VerbRetry    Verb = "Retry"
	VerbSkip     Verb = "Skip"
	VerbRollback Verb = "Rollback"
	VerbOverride Verb = "Override"
)

// Brakes reports whether a verb only stops work. Such a decision needs no plan and is never refused.
func (v Verb) Brakes() bool { return v == VerbPause || v == VerbAbort || v == VerbReject }

func (v Verb) known() bool {
	switch v {
	case VerbStart, VerbApprove, VerbPause, VerbAbort, VerbReject, VerbResume, VerbRetry, VerbSkip, VerbRollback, VerbOverride:
		return true
	}
	return false
}
