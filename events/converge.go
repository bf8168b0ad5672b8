package events

// Converge is the input of the converge machine. Nothing else is needed to start it by hand.
type Converge struct {
	Cluster string `json:"cluster"`
}

// PlanRequest asks the plan function for what is to do.
type PlanRequest struct {
	Cluster string `json:"cluster"`
	// Execution is the ARN of the converge execution, which holds the lease afterwards.
	Execution string `json:"execution"`
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
	// OutcomeStopped: nothing may be done: spec absent or invalid, cluster paused, a change refused. The status says why.
	OutcomeStopped Outcome = "Stopped"
)

// PlanResult says what is to do. It holds no template and no tag: those are in the plan object.
type PlanResult struct {
	Cluster string  `json:"cluster"`
	Outcome Outcome `json:"outcome"`
	// Reason and Message say why, when Outcome is Stopped. Reason is a CamelCase word.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// SpecVersion is the S3 version of the spec that was planned.
	SpecVersion string `json:"specVersion,omitempty"`
	// Fence is the number of the lease: later holders have higher ones.
	Fence int64 `json:"fence"`
	// PlanKey is where the plan is in the state bucket.
	PlanKey string `json:"planKey,omitempty"`
	// Stages are the stacks to change, in order. Always present, so that a machine may map over them.
	Stages Stages `json:"stages"`
}

// Stages are the stacks to change, by stage; a stage starts when the one before is over. Values are stack names without
// the cluster's prefix, such as "pool-workers".
type Stages struct {
	Network      []string `json:"network"`
	ControlPlane []string `json:"controlPlane"`
	Addons       []string `json:"addons"`
	Pools        []string `json:"pools"`
	NodeAddons   []string `json:"nodeAddons"`
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
}

// ChangeResult is the outcome of one stack, as a waiting step receives it.
type ChangeResult struct {
	Stack string `json:"stack"`
	// Again asks for one more change of the same stack: something in its way (a failed creation, somebody else's
	// update) is over now.
	Again bool `json:"again"`
	// Status is CloudFormation's, such as UPDATE_COMPLETE.
	Status string `json:"status,omitempty"`
	// Error is the name of the fault when the stack failed, and Cause what AWS said.
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// PrepareRequest asks the prepare function to give drover its own permissions in the cluster.
type PrepareRequest struct {
	Cluster string `json:"cluster"`
}

// ReportRequest ends a round of converging.
type ReportRequest struct {
	Cluster   string `json:"cluster"`
	Execution string `json:"execution"`
	// Plan is the last plan's result; nil when planning itself failed.
	Plan *PlanResult `json:"plan,omitempty"`
	// Results are the stacks' outcomes.
	Results []ChangeResult `json:"results,omitempty"`
	// Error and Cause are set when a step failed: the error name and what it said.
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// ReportResult says how the execution ends.
type ReportResult struct {
	// Again is true when a newer spec came meanwhile: plan once more.
	Again bool `json:"again"`
	// Failed is true when the execution must end as failed; Reason says why in a sentence.
	Failed bool   `json:"failed"`
	Reason string `json:"reason,omitempty"`
}
