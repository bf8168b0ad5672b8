package api

import (
	"maps"
	"slices"
)

// Rollout moves clusters to a release, in stages. Uploading it changes no cluster unless start is Auto.
type Rollout struct {
	// APIVersion is drover.run/v1alpha1.
	APIVersion string `json:"apiVersion" rule:"enum=drover.run/v1alpha1"`
	// Kind is Rollout.
	Kind string `json:"kind" rule:"enum=Rollout"`
	// Metadata names the rollout.
	Metadata Metadata `json:"metadata"`
	// Spec is what the rollout changes, and in which order.
	Spec RolloutSpec `json:"spec"`
}

// RolloutSpec is what a rollout changes, and in which order.
type RolloutSpec struct {
	// Subject is what the clusters get.
	Subject RolloutSubject `json:"subject"`
	// Clusters selects the candidates; {} selects all. Default: every cluster that a stage selects.
	Clusters *Selector `json:"clusters,omitempty"`
	// Unmatched says what a selector without a match means. Refuse: a candidate that no stage selects, or a stage that selects no cluster,
	// is an error. Skip: such a candidate is left out, and such a stage has no members.
	Unmatched Unmatched `json:"unmatched,omitempty" rule:"default=Refuse;enum=Refuse,Skip"`
	// Start says how a run starts: by a Decision (Manual), or as soon as the rollout is planned (Auto).
	Start RolloutStart `json:"start,omitempty" rule:"default=Manual;enum=Manual,Auto"`
	// OnNewer says what a newer plan of this rollout does while a run is active: wait until the run ends (Finish), or end the run once no
	// member is in flight (Supersede).
	OnNewer OnNewer `json:"onNewer,omitempty" rule:"default=Finish;enum=Finish,Supersede"`
	// OnFailure says what happens after a stage is halted: nothing (Stop), or the members that the run changed in this stage return to their
	// previous release (Rollback).
	OnFailure OnFailure `json:"onFailure,omitempty" rule:"default=Stop;enum=Stop,Rollback"`
	// Like is another rollout whose stages this one uses. State either like or stages.
	Like string `json:"like,omitempty" rule:"format=name"`
	// Stages run in order. Each cluster is in one stage at most.
	Stages []RolloutStage `json:"stages,omitempty" rule:"unique=name;minItems=1;maxItems=50"`
}

// RolloutSubject is what the clusters of a rollout get. State one of its fields.
type RolloutSubject struct {
	// Release that all clusters get.
	Release string `json:"release,omitempty" rule:"format=release-name"`
	// Releases by the Kubernetes version of the cluster: new images and add-ons for clusters that keep their version. A cluster of another
	// version is left out.
	Releases map[string]string `json:"releases,omitempty" rule:"keys=kubernetes-version;format=release-name;minItems=1"`
}

// Names returns the names of the releases, each once, sorted.
func (s RolloutSubject) Names() []string {
	all := slices.Collect(maps.Values(s.Releases))
	if s.Release != "" {
		all = append(all, s.Release)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// RolloutStage is a set of clusters, and the pace at which they change. Planning expands it by groupBy and waves into numbered stages.
type RolloutStage struct {
	// Name of the stage.
	Name string `json:"name" rule:"format=stage-name"`
	// Selector of the clusters of the stage. A cluster that two stages select is an error.
	Selector Selector `json:"selector"`
	// GroupBy is a label. The stage is expanded into one for each of its values, in their order.
	GroupBy string `json:"groupBy,omitempty" rule:"format=label-key"`
	// Groups are values of groupBy in the order in which they run. "*" stands for the values that are not in the list. Default: all values,
	// sorted.
	Groups []string `json:"groups,omitempty" rule:"format=group-value;unique;minItems=1"`
	// Waves split the stage, or each of its groups. They are cumulative: [1, 10%, 100%] is one cluster, then up to a tenth, then all.
	// Percentages are rounded up. The last wave is 100%.
	Waves []Amount `json:"waves,omitempty" rule:"minItems=1;maxItems=20"`
	// Order is a label. Clusters start in the order of its numbers; clusters without a number are last. Default: by name.
	Order string `json:"order,omitempty" rule:"format=label-key"`
	// MaxConcurrency is how many members may be at risk at once. A percentage is of the members of an expanded stage, rounded down, and at
	// least 1.
	MaxConcurrency Amount `json:"maxConcurrency,omitempty" rule:"default=1"`
	// MaxFailures is how many members may fail. A number counts in the whole stage, a percentage in each expanded stage, rounded down.
	MaxFailures Amount `json:"maxFailures,omitempty" rule:"default=0"`
	// Budget says when the next member may start. Strict: while failed members and members at risk together do not exceed maxFailures. Soft:
	// while failed members do not exceed maxFailures.
	Budget Budget `json:"budget,omitempty" rule:"default=Strict;enum=Strict,Soft"`
	// Settle is for how long a changed member must be well before it counts as Good.
	Settle string `json:"settle,omitempty" rule:"default=15m;format=duration"`
	// Deadline is how long a member may take from its start until it is Good. Default: the limits of the steps of its upgrade.
	Deadline string `json:"deadline,omitempty" rule:"format=duration"`
	// Soak is for how long all members must stay Good before the next stage begins.
	Soak string `json:"soak,omitempty" rule:"default=1h;format=duration"`
	// Window is when members may start. The window of a cluster applies too.
	Window *Window `json:"window,omitempty"`
	// Alarms of CloudWatch by name. While one is in ALARM or absent, no member starts, and the soak begins again. After ten minutes the stage
	// is halted.
	Alarms []string `json:"alarms,omitempty" rule:"format=alarm-name;unique;maxItems=100"`
	// Before are conditions of the start of the stage.
	Before []Gate `json:"before,omitempty" rule:"minItems=1;maxItems=10"`
	// After are conditions of the end of the stage, once its soak is over.
	After []Gate `json:"after,omitempty" rule:"minItems=1;maxItems=10"`
}

// Gate is a condition of a stage.
type Gate struct {
	// Approval is a Decision with the verb Approve for this stage.
	Approval *Approval `json:"approval,omitempty"`
}

// Approval is the agreement of users.
type Approval struct {
	// Count is how many Decisions must approve. Only 1 is supported so far: nothing proves that several approvals are of several users.
	Count int `json:"count,omitempty" rule:"default=1;min=1;max=10"`
	// Early also counts approvals that were made before the previous stage passed, or before the soak was over.
	Early bool `json:"early,omitempty"`
}

// Selector selects clusters by their labels. All of its conditions must hold; {} selects every cluster. The labels drover.run/cell,
// drover.run/region, drover.run/account and drover.run/kubernetes exist for each cluster.
type Selector struct {
	// MatchLabels are labels that a cluster must have, with these values.
	MatchLabels map[string]string `json:"matchLabels,omitempty" rule:"keys=label-key;format=label-value"`
	// MatchExpressions are further conditions.
	MatchExpressions []Requirement `json:"matchExpressions,omitempty" rule:"maxItems=20"`
}

// Requirement is a condition on a label, as in Kubernetes.
type Requirement struct {
	// Key of the label.
	Key string `json:"key" rule:"format=label-key"`
	// Operator relates the label to the values. A cluster without the label matches NotIn and DoesNotExist.
	Operator Operator `json:"operator" rule:"enum=In,NotIn,Exists,DoesNotExist"`
	// Values of In and NotIn.
	Values []string `json:"values,omitempty" rule:"format=label-value;unique;maxItems=100"`
}

// Operator of a requirement.
type Operator string

// The values of Operator.
const (
	OperatorIn           Operator = "In"
	OperatorNotIn        Operator = "NotIn"
	OperatorExists       Operator = "Exists"
	OperatorDoesNotExist Operator = "DoesNotExist"
)

// Unmatched says what a selector without a match means.
type Unmatched string

// The values of Unmatched.
const (
	UnmatchedRefuse Unmatched = "Refuse"
	UnmatchedSkip   Unmatched = "Skip"
)

// RolloutStart says how a run starts.
type RolloutStart string

// The values of RolloutStart.
const (
	StartManual RolloutStart = "Manual"
	StartAuto   RolloutStart = "Auto"
)

// OnNewer says what a newer plan does to an active run.
type OnNewer string

// The values of OnNewer.
const (
	NewerFinish    OnNewer = "Finish"
	NewerSupersede OnNewer = "Supersede"
)

// OnFailure says what happens after a stage is halted.
type OnFailure string

// The values of OnFailure.
const (
	FailureStop     OnFailure = "Stop"
	FailureRollback OnFailure = "Rollback"
)

// Budget says when the next member of a stage may start.
type Budget string

// The values of Budget.
const (
	BudgetStrict Budget = "Strict"
	BudgetSoft   Budget = "Soft"
)
