// Package status is what drover tells people about a cluster: one small JSON document in the state bucket, Kubernetes
// style, that says what is, what is under way, and why it waits. It is pure.
package status

import (
	"slices"
	"strings"
	"time"
)

// Cluster is the status document of a cluster.
type Cluster struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Status     Status   `json:"status"`
}

// Metadata names the cluster.
type Metadata struct {
	Name string `json:"name"`
}

// Phase is the cluster's state in one word, for tables. Conditions say why.
type Phase string

// AsSpecified is the message of Ready.
const AsSpecified = "the cluster is what its spec says"

// ButRelease begins that of a cluster that is so but for its release: why follows.
const ButRelease = AsSpecified + ", but for its release: "

// The phases.
const (
	// Pending: a spec was accepted and its converge has not begun.
	Pending Phase = "Pending"
	// Converging: changes are being made.
	Converging Phase = "Converging"
	// Upgrading: an upgrade is under way; Upgrade says how far it is.
	Upgrading Phase = "Upgrading"
	// Ready: the cluster is what its spec says.
	Ready Phase = "Ready"
	// Stopped: drover will do nothing until a person acts: the spec is invalid, absent or paused, or asks for what is refused.
	Stopped Phase = "Stopped"
	// Failed: the last converge failed.
	Failed Phase = "Failed"
	// Deleting: the spec was deleted, and the cluster is being deleted.
	Deleting Phase = "Deleting"
	// Deleted: the cluster is gone. The document stays, to say so.
	Deleted Phase = "Deleted"
)

// Status of a cluster.
type Status struct {
	Phase   Phase  `json:"phase"`
	Message string `json:"message,omitempty"`
	// SpecVersion is the S3 version of the spec that was last planned, whatever came of it: Phase is its verdict.
	SpecVersion string `json:"specVersion,omitempty"`
	// GoodVersion is the S3 version of the last spec that could be planned: while the newest cannot be, it counts.
	GoodVersion string `json:"goodVersion,omitempty"`
	// ObservedVersion is the S3 version of the spec that was last looked at, good or bad.
	ObservedVersion string `json:"observedVersion,omitempty"`
	// Release and TemplateVersion as resolved from that spec.
	Release         string `json:"release,omitempty"`
	TemplateVersion string `json:"templateVersion,omitempty"`
	// KubernetesVersion of the control plane; absent while there is none.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Endpoint of the Kubernetes API, once there is one.
	Endpoint string `json:"endpoint,omitempty"`
	// Execution that converges, or converged last: a Step Functions ARN.
	Execution string `json:"execution,omitempty"`
	// Fence is the number of the lease under which this was written: a holder with a lower one writes nothing any more.
	Fence      int64       `json:"fence,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Plan lists the changes that the running converge makes, with their reasons, or that one that failed was to make.
	// Those of an upgrade that stopped are out of it: until that goes on nobody makes them, and its message says what
	// comes next.
	Plan   []Change `json:"plan,omitempty"`
	Stacks []Stack  `json:"stacks,omitempty"`
	// Nodes that keep people waiting, the oldest first.
	Nodes []Node `json:"nodes,omitempty"`
	// Upgrade is the cluster's last or next one, and Upgrades are the last ten that ended, the latest first.
	Upgrade  *Upgrade  `json:"upgrade,omitempty"`
	Upgrades []Upgrade `json:"upgrades,omitempty"`
	// NextUpgrade is one whose time came, or comes, while Upgrade is under way: it waits for that. When that is over it
	// is told of here until the cluster is planned again.
	NextUpgrade *Upgrade `json:"nextUpgrade,omitempty"`
	// Deletion is what is known of what Kubernetes made in the account, once a cluster is being deleted.
	Deletion *Deletion `json:"deletion,omitempty"`
	// Failures is how many tries of this spec failed, one after the other; RetryAt is when drover tries again by itself, absent when
	// it does not.
	Failures int        `json:"failures,omitempty"`
	RetryAt  *time.Time `json:"retryAt,omitempty"`
	// FailedTry is the try of Execution that Failures counted last: an execution tries again itself what may pass within minutes.
	FailedTry int `json:"failedTry,omitempty"`
	// ToldFailure is the failure that people were told of last, for as long as they were told of nothing after it: tries that drover
	// makes by itself and that end the same are no news.
	ToldFailure *Failure `json:"toldFailure,omitempty"`
	// Replaced tells of a cluster's only node, when it was not Ready and drover had it replaced.
	Replaced *Replaced `json:"replaced,omitempty"`
	// Drift are those findings of InSync that planning came to. They are over when a plan finds nothing to change; what
	// the audit found elsewhere is not.
	Drift []string `json:"drift,omitempty"`
	// DriftedAt is since when the audit finds stacks that converging mends; absent when it finds none.
	DriftedAt *time.Time `json:"driftedAt,omitempty"`
	// UpdatedAt is when this document last changed.
	UpdatedAt time.Time `json:"updatedAt"`
}

// Failure is why a version of a spec could not be converged to, in words without what differs from try to try, such as the ids of
// requests.
type Failure struct {
	SpecVersion string `json:"specVersion,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message"`
}

// Replaced says how often in a row a node was replaced, and when last.
type Replaced struct {
	Count int       `json:"count"`
	At    time.Time `json:"at"`
}

// Line is a reason in one line.
func (r Reason) Line() string { return r.Field + ": " + r.Old + " → " + r.New }

// Condition types.
const (
	// SpecAccepted: the newest upload could be read and is valid.
	SpecAccepted = "SpecAccepted"
	// Converged: the stacks are what the spec says.
	Converged = "Converged"
	// Upgraded: the last upgrade that was asked for was made, to the end. Absent before the first.
	Upgraded = "Upgraded"
	// InSync: what is there is still what was converged to, as far as the audit looks.
	InSync = "InSync"
	// AddonsDeployed: the add-ons that need nodes are deployed, or being so. Only clusters have it that had no node for them once.
	AddonsDeployed = "AddonsDeployed"
	// AddonsSchedulable is False while the spec has no pool on which an add-on's pods can run. Absent otherwise.
	AddonsSchedulable = "AddonsSchedulable"
	// RequestAccepted: False while the last request of an operator is refused: a roll, or an upgrade that was started by hand. It is removed
	// by the next request that is accepted, and by the next spec.
	RequestAccepted = "RequestAccepted"
)

// Condition is one aspect of a cluster.
type Condition struct {
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status string `json:"status"`
	// Reason is one CamelCase word, for machines; docs/runbook.md explains each.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// LastTransitionTime is when Status last changed.
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Change is a planned change of one stack.
type Change struct {
	Stack     string `json:"stack"`
	Operation string `json:"operation"`
	// Effect of an update, where its reasons tell it.
	Effect  Effect   `json:"effect,omitempty"`
	Reasons []Reason `json:"reasons"`
	// KubernetesVersion that the control plane has when it is made, if it is the control plane's.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
}

// Effect of an update on what runs.
type Effect string

// The effects.
const (
	// InPlace: nothing that runs is replaced.
	InPlace Effect = "InPlace"
	// ReplacesNodes: the pool is rolled.
	ReplacesNodes Effect = "ReplacesNodes"
)

// Words of an effect, after a change's name.
func (e Effect) Words() string {
	return map[Effect]string{InPlace: ", in place", ReplacesNodes: ", which replaces its nodes"}[e]
}

// Reason says why something changes.
type Reason struct {
	Field string `json:"field"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// Stack is what is known of one stack.
type Stack struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	// Resource and Reason are AWS's own, when the stack failed.
	Resource string    `json:"resource,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since"`
	// ReportedAt is when AWS reported Status: by an event, or to a reader. What is older does not replace it.
	ReportedAt time.Time `json:"reportedAt,omitzero"`
	// External says that no drover execution started the operation that Status is about.
	External bool `json:"external,omitempty"`
	// Waits is what the change of the stack waits for before it begins, or what it has waited for in vain.
	Waits *Waits `json:"waits,omitempty"`
}

// Waits is what a change waits for, and until when at the latest; without a time it waits no more.
type Waits struct {
	Message string    `json:"message"`
	Until   time.Time `json:"until,omitzero"`
}

// Deletion is what became of the resources that Kubernetes made. Each is a kind and an identifier, such as
// "volume vol-0123456789abcdef0".
type Deletion struct {
	// Surveyed is true once the cluster's API said which volumes it wants kept. Without it all volumes are.
	Surveyed bool `json:"surveyed,omitempty"`
	// Retain lists the ids of the volumes whose PersistentVolume has the reclaim policy Retain.
	Retain []string `json:"retain,omitempty"`
	// Removed, Kept and Remaining as of the last look. Remaining are those that could not be removed yet, each with AWS's reason.
	Removed   []string `json:"removed,omitempty"`
	Kept      []string `json:"kept,omitempty"`
	Remaining []string `json:"remaining,omitempty"`
}

// New is the status of a cluster nobody has heard of yet.
func New(cluster string) *Cluster {
	return &Cluster{
		APIVersion: "drover.run/v1alpha1", Kind: "ClusterStatus",
		Metadata: Metadata{Name: cluster}, Status: Status{Phase: Pending},
	}
}

// Set adds or replaces the condition of c's type. Its transition time stays when its status does.
func (s *Status) Set(c Condition, now time.Time) {
	c.LastTransitionTime = now
	i := slices.IndexFunc(s.Conditions, func(o Condition) bool { return o.Type == c.Type })
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		slices.SortFunc(s.Conditions, func(a, b Condition) int { return strings.Compare(a.Type, b.Type) })
		return
	}
	if s.Conditions[i].Status == c.Status {
		c.LastTransitionTime = s.Conditions[i].LastTransitionTime
	}
	s.Conditions[i] = c
}

// Refuse records that a request of an operator was refused. The time is that of this request, also after one that was refused before.
func (s *Status) Refuse(reason, message string, now time.Time) {
	s.Unset(RequestAccepted)
	s.Set(Condition{Type: RequestAccepted, Status: "False", Reason: reason, Message: message}, now)
}

// Unset removes the conditions of these types.
func (s *Status) Unset(kinds ...string) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c Condition) bool { return slices.Contains(kinds, c.Type) })
}

// Warn records the warnings of an accepted spec, and removes those of an earlier one: see api.Warnings.
func (s *Status) Warn(warnings []string, now time.Time) {
	if len(warnings) == 0 {
		s.Unset(AddonsSchedulable)
		return
	}
	s.Set(Condition{Type: AddonsSchedulable, Status: "False", Reason: ReasonNoPoolForAddons, Message: strings.Join(warnings, "\n")}, now)
}

// InSyncAgain is the condition of a cluster in which nothing is found.
func InSyncAgain() Condition { return Condition{Type: InSync, Status: "True", Reason: ReasonInSync} }

// Mended takes what planning had come to out of what the audit found, for a plan finds nothing to change any more.
// The rest stays until the audit looks again, and so does DriftedAt: only the audit knows whether a repair lasts.
func (s *Status) Mended(now time.Time) {
	c := s.Condition(InSync)
	if len(s.Drift) == 0 || c == nil {
		return
	}
	over := strings.Split(strings.Join(s.Drift, "\n"), "\n")
	left := *c
	left.Message = strings.Join(slices.DeleteFunc(strings.Split(c.Message, "\n"), func(line string) bool {
		return slices.Contains(over, line)
	}), "\n")
	if left.Message == "" {
		left = InSyncAgain()
	}
	s.Drift = nil
	s.Set(left, now)
}

// Made notes that a planned change of a stack was made.
func (s *Status) Made(stack string) {
	for _, change := range s.Plan {
		if change.Stack == stack && change.KubernetesVersion != "" {
			s.KubernetesVersion = change.KubernetesVersion
		}
	}
}

// Unplan takes out the changes that nobody is to make any more. What CloudFormation is still at is no exception:
// whoever waited for it is gone, and the audit tells what it came to.
func (s *Status) Unplan() {
	if s.Phase != Deleting && s.Phase != Deleted {
		s.Plan = nil
	}
}

// Condition of a type, or nil.
func (s *Status) Condition(kind string) *Condition {
	i := slices.IndexFunc(s.Conditions, func(o Condition) bool { return o.Type == kind })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// SetStack adds or replaces what is known of a stack. Since stays when the status does.
func (s *Status) SetStack(stack Stack, now time.Time) {
	stack.Since, stack.ReportedAt = now, now
	i := slices.IndexFunc(s.Stacks, func(o Stack) bool { return o.Name == stack.Name })
	if i < 0 {
		s.Stacks = append(s.Stacks, stack)
		return
	}
	if s.Stacks[i].Status == stack.Status {
		stack.Since, stack.ReportedAt, stack.External = s.Stacks[i].Since, s.Stacks[i].ReportedAt, s.Stacks[i].External
	}
	s.Stacks[i] = stack
}

// EndStack is SetStack at the end of an operation of the stack: it is since now what it is, also when it was the same before.
func (s *Status) EndStack(stack Stack, now time.Time) {
	s.SetStack(stack, now)
	i := slices.IndexFunc(s.Stacks, func(o Stack) bool { return o.Name == stack.Name })
	s.Stacks[i].Since, s.Stacks[i].ReportedAt = now, now
}

// Wait says what the change of a stack waits for; nil when it does not. The time that was told first stays while it waits for the same.
func (s *Status) Wait(stack string, w *Waits) {
	for i, o := range s.Stacks {
		if o.Name != stack {
			continue
		}
		if w != nil && o.Waits != nil && !o.Waits.Until.IsZero() && !w.Until.IsZero() && o.Waits.Message == w.Message {
			w = &Waits{Message: w.Message, Until: o.Waits.Until}
		}
		s.Stacks[i].Waits = w
	}
}

// WaitsNow says whether the change of a stack waits for something that its execution looks after itself.
func (s *Status) WaitsNow(now time.Time) bool {
	return slices.ContainsFunc(s.Stacks, func(o Stack) bool { return o.Waits != nil && now.Before(o.Waits.Until) })
}

// Observe replaces the list of stacks by what was read at a time. It keeps what is known of stacks that stay, and what was reported since.
// No stack waits any longer: this is another round.
func (s *Status) Observe(stacks []Stack, read, now time.Time) {
	old := *s
	s.Stacks = nil
	for _, stack := range stacks {
		i := slices.IndexFunc(old.Stacks, func(o Stack) bool { return o.Name == stack.Name })
		if i >= 0 && (old.Stacks[i].Status == stack.Status || old.Stacks[i].reportedSince(read)) {
			kept := old.Stacks[i]
			kept.Waits = nil
			s.Stacks = append(s.Stacks, kept)
			continue
		}
		s.SetStack(stack, now)
		s.Stacks[len(s.Stacks)-1].ReportedAt = read
	}
}
