// Package status defines the status of a cluster for users: one small JSON document in the state bucket, in the style of Kubernetes. It
// shows the deployed state, what is in flight, and why that waits. The package is pure.
package status

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
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
const AsSpecified = "the cluster matches its spec"

// ButRelease begins the message of a cluster that matches its spec except for its release. The reason follows.
const ButRelease = AsSpecified + ", except its release: "

// The phases.
const (
	// Pending: a spec was accepted and its converge has not begun.
	Pending Phase = "Pending"
	// Converging: changes are being made.
	Converging Phase = "Converging"
	// Upgrading: an upgrade is in flight; Upgrade shows its progress.
	Upgrading Phase = "Upgrading"
	// Ready: the cluster matches its spec.
	Ready Phase = "Ready"
	// Stopped: drover does nothing until a user acts: the spec is invalid, absent or paused, or requests a refused change.
	Stopped Phase = "Stopped"
	// Failed: the last converge failed.
	Failed Phase = "Failed"
	// Deleting: the spec was deleted, and the cluster is being deleted.
	Deleting Phase = "Deleting"
	// Deleted: the cluster no longer exists. The document is retained to show that.
	Deleted Phase = "Deleted"
)

// Status of a cluster.
type Status struct {
	Phase   Phase  `json:"phase"`
	Message string `json:"message,omitempty"`
	// PlannedVersion is the S3 version of the spec that was last planned, even if it was refused. Phase is the result for that version.
	PlannedVersion string `json:"plannedVersion,omitempty"`
	// GoodVersion is the S3 version of the last spec that could be planned. It applies while the newest cannot be planned.
	GoodVersion string `json:"goodVersion,omitempty"`
	// Accepted is the newest upload of the spec that admission or planning accepted, planned or not. It stays when the spec is deleted: see
	// plan.Protected.
	Accepted *Upload `json:"accepted,omitempty"`
	// ObservedVersion is the S3 version of the spec that was last read, valid or not.
	ObservedVersion string `json:"observedVersion,omitempty"`
	// Release and TemplateVersion as last planned: of the spec that applies, or of the release that overrides it.
	Release         string `json:"release,omitempty"`
	TemplateVersion string `json:"templateVersion,omitempty"`
	// KubernetesVersion of the control plane; absent while there is none.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Endpoint of the Kubernetes API, once there is one.
	Endpoint string `json:"endpoint,omitempty"`
	// Execution is the ARN of the execution that converges the cluster, or did last.
	Execution string `json:"execution,omitempty"`
	// Fence is the number of the lease under which this was written. A holder with a lower number can no longer write.
	Fence      int64       `json:"fence,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Plan lists the changes of the converge in flight, or of one that failed, with their reasons. It omits the changes of a stopped upgrade,
	// because no execution makes them until it is continued. The upgrade's message names its next step.
	Plan []Change `json:"plan,omitempty"`
	// PlannedAt is when drover read the stacks for its last plan with changes. An older event of an absent stack is about an earlier stack.
	PlannedAt time.Time `json:"plannedAt,omitzero"`
	Stacks    []Stack   `json:"stacks,omitempty"`
	// Nodes are those that take long to drain or did not join, oldest first.
	Nodes []Node `json:"nodes,omitempty"`
	// Upgrade is the current, last or next upgrade of the cluster. Upgrades are the last ten that ended, newest first.
	Upgrade  *Upgrade  `json:"upgrade,omitempty"`
	Upgrades []Upgrade `json:"upgrades,omitempty"`
	// NextUpgrade is the upgrade that waits until Upgrade ends. It stays here until the cluster is planned after that.
	NextUpgrade *Upgrade `json:"nextUpgrade,omitempty"`
	// Deletion lists the resources that Kubernetes created in the account, once the cluster is being deleted.
	Deletion *Deletion `json:"deletion,omitempty"`
	// Failures counts the consecutive failed tries of this spec. RetryAt is when drover retries; absent if it does not.
	Failures int        `json:"failures,omitempty"`
	RetryAt  *time.Time `json:"retryAt,omitempty"`
	// FailedTry is the try of Execution that Failures counted last: an execution itself retries what may pass within minutes.
	FailedTry int `json:"failedTry,omitempty"`
	// NotifiedFailure is the failure that was notified last, until something else is notified. Automatic retries that
	// fail the same way are not notified.
	NotifiedFailure *Failure `json:"notifiedFailure,omitempty"`
	// Replaced counts the replacements of a cluster's only node, which drover replaces if it is not Ready.
	Replaced *Replaced `json:"replaced,omitempty"`
	// Drift are the findings of InSync that come from planning. They are removed when a plan finds nothing to change. The audit's other
	// findings stay.
	Drift []string `json:"drift,omitempty"`
	// DriftedAt is since when the audit finds stacks that converging repairs; absent if it finds none.
	DriftedAt *time.Time `json:"driftedAt,omitempty"`
	// UpdatedAt is when this document last changed.
	UpdatedAt time.Time `json:"updatedAt"`
}

// Upload is a version of the spec, and when it was uploaded. S3 sets that time.
type Upload struct {
	Version    string    `json:"version"`
	UploadedAt time.Time `json:"uploadedAt"`
	// Labels of this version of the spec. Documents that were written before this field existed lack them until the next audit.
	Labels map[string]string `json:"labels,omitempty"`
}

// Failure is why a version of a spec could not be converged. Its message omits what differs from try to try, such as request ids.
type Failure struct {
	SpecVersion string `json:"specVersion,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message"`
}

// Replaced is how often in a row a node was replaced, and when last.
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
	// Converged: the stacks match the spec.
	Converged = "Converged"
	// Upgraded: the last requested upgrade was completed. Absent before the first.
	Upgraded = "Upgraded"
	// InSync: the last audit found no difference from what drover deployed.
	InSync = "InSync"
	// AddonsDeployed: the add-ons that need nodes are deployed or being deployed. Only a cluster that once had no node for its add-ons has
	// this condition.
	AddonsDeployed = "AddonsDeployed"
	// AccessGranted is False while the spec gives no principal access to the cluster. Absent otherwise.
	AccessGranted = "AccessGranted"
	// AddonsSchedulable is False while the spec has no pool on which an add-on's pods can run. Absent otherwise.
	AddonsSchedulable = "AddonsSchedulable"
	// NetworkUsable is False while the spec gives the VPC public addresses: nodes and pods cannot reach the hosts that have them. Absent
	// otherwise.
	NetworkUsable = "NetworkUsable"
	// NetworkTags is False while load balancers would not find the subnets of an existing network. Absent otherwise. drover looks when it
	// changes the cluster.
	NetworkTags = "NetworkTags"
	// PodsIsolated is False while the pods of a pool get the credentials of the node's role. Absent otherwise.
	PodsIsolated = "PodsIsolated"
	// KubeletFieldsKnown is False while the spec states fields of kubelets that drover does not know. Absent otherwise.
	KubeletFieldsKnown = "KubeletFieldsKnown"
	// RelayCurrent is False while the cluster's relay has the code of another version of drover. Absent otherwise.
	RelayCurrent = "RelayCurrent"
	// RequestAccepted is False while the last request of an operator is refused: a roll or an upgrade. It is removed by the next request that
	// is accepted, and by the next spec.
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
	// Effect of an update, if the reasons determine it.
	Effect  Effect   `json:"effect,omitempty"`
	Reasons []Reason `json:"reasons"`
	// KubernetesVersion of the control plane after a change of its stack.
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

// Words returns the effect as text that follows the name of a change.
func (e Effect) Words() string {
	return map[Effect]string{InPlace: ", in place", ReplacesNodes: ", which replaces its nodes"}[e]
}

// Reason says why something changes.
type Reason struct {
	Field string `json:"field"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// Stack is the recorded state of one stack.
type Stack struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	// Resource and Reason are AWS's own, when the stack failed.
	Resource string    `json:"resource,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since"`
	// ReportedAt is when AWS reported Status: by an event, or to a reader. Older reports do not replace it.
	ReportedAt time.Time `json:"reportedAt,omitzero"`
	// External reports whether no drover execution started the operation that Status is about.
	External bool `json:"external,omitempty"`
	// Delay is what the change of the stack waits for before it begins, or has waited for until its limit.
	Delay *Delay `json:"delay,omitempty"`
}

// Delay is what a change waits for. Until is the latest end of the wait; it is zero once the change no longer waits.
type Delay struct {
	Message string    `json:"message"`
	Until   time.Time `json:"until,omitzero"`
}

// Deletion is the state of the resources that Kubernetes created. Each is a kind and an identifier, such as "volume vol-0123456789abcdef0".
type Deletion struct {
	// RetainListed reports whether the cluster's API has listed the volumes in Retain. Until then all volumes are retained.
	RetainListed bool `json:"retainListed,omitempty"`
	// Retain lists the ids of the volumes whose PersistentVolume has the reclaim policy Retain.
	Retain []string `json:"retain,omitempty"`
	// Removed, Retained and Remaining are the result of the last check. Remaining are those that could not be removed yet, each
	// with AWS's reason.
	Removed   []string `json:"removed,omitempty"`
	Retained  []string `json:"retained,omitempty"`
	Remaining []string `json:"remaining,omitempty"`
}

// New returns the first status of a cluster.
func New(cluster string) *Cluster {
	return &Cluster{
		APIVersion: "drover.run/v1alpha1", Kind: "ClusterStatus",
		Metadata: Metadata{Name: cluster}, Status: Status{Phase: Pending},
	}
}

// Set adds or replaces the condition of c's type. The transition time changes only with the status.
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

// Refuse records that a request of an operator was refused. The transition time is that of this request, even if an earlier one was
// refused.
func (s *Status) Refuse(reason, message string, now time.Time) {
	s.Unset(RequestAccepted)
	s.Set(Condition{Type: RequestAccepted, Status: "False", Reason: reason, Message: message}, now)
}

// Unset removes the conditions of these types.
func (s *Status) Unset(kinds ...string) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c Condition) bool { return slices.Contains(kinds, c.Type) })
}

// Warn records the warnings of an accepted spec, and removes those of an earlier one: see api.Warnings.
func (s *Status) Warn(warnings api.SpecWarnings, now time.Time) {
	s.warn(AccessGranted, ReasonNoAccess, warnings.Access, now)
	s.warn(NetworkUsable, ReasonPublicAddresses, warnings.Network, now)
	s.warn(AddonsSchedulable, ReasonNoPoolForAddons, warnings.Addons, now)
	s.warn(PodsIsolated, ReasonPodsReachMetadata, warnings.Isolation, now)
	s.warn(KubeletFieldsKnown, ReasonUnknownKubeletField, warnings.Kubelet, now)
}

// WarnTags records that load balancers would not find subnets of an existing network. No lines mean that they would.
func (s *Status) WarnTags(lines []string, now time.Time) {
	s.warn(NetworkTags, ReasonSubnetsUntagged, lines, now)
}

// WarnRelay records that the cluster's relay has the code of another version of drover. No lines mean that it has not.
func (s *Status) WarnRelay(lines []string, now time.Time) {
	s.warn(RelayCurrent, ReasonRelayOutdated, lines, now)
}

func (s *Status) warn(kind, reason string, lines []string, now time.Time) {
	if len(lines) == 0 {
		s.Unset(kind)
		return
	}
	s.Set(Condition{Type: kind, Status: "False", Reason: reason, Message: strings.Join(lines, "\n")}, now)
}

// InSyncAgain returns the condition of a cluster without findings.
func InSyncAgain() Condition { return Condition{Type: InSync, Status: "True", Reason: ReasonInSync} }

// ClearDrift removes the findings of planning, because a plan finds nothing to change. The other findings stay until the next audit, and so
// does DriftedAt: only the audit knows whether a repair lasts.
func (s *Status) ClearDrift(now time.Time) {
	c := s.Condition(InSync)
	if len(s.Drift) == 0 || c == nil {
		return
	}
	planned := strings.Split(strings.Join(s.Drift, "\n"), "\n")
	remaining := *c
	remaining.Message = strings.Join(slices.DeleteFunc(strings.Split(c.Message, "\n"), func(line string) bool {
		return slices.Contains(planned, line)
	}), "\n")
	if remaining.Message == "" {
		remaining = InSyncAgain()
	}
	s.Drift = nil
	s.Set(remaining, now)
}

// RecordChange records that a planned change of a stack was made.
func (s *Status) RecordChange(stack string) {
	for _, change := range s.Plan {
		if change.Stack == stack && change.KubernetesVersion != "" {
			s.KubernetesVersion = change.KubernetesVersion
		}
	}
}

// DropPlan removes the planned changes that no execution will make. It also removes a change that CloudFormation still makes: no execution
// waits for it, and the audit records its result.
func (s *Status) DropPlan() {
	if s.Phase != Deleting && s.Phase != Deleted {
		s.Plan = nil
	}
}

// Condition returns the condition of a type, or nil.
func (s *Status) Condition(kind string) *Condition {
	i := slices.IndexFunc(s.Conditions, func(o Condition) bool { return o.Type == kind })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// SetDelay records what the change of a stack waits for; nil if it does not wait. The first time limit stays while it waits for the same.
func (s *Status) SetDelay(stack string, w *Delay) {
	for i, o := range s.Stacks {
		if o.Name != stack {
			continue
		}
		if w != nil && o.Delay != nil && !o.Delay.Until.IsZero() && !w.Until.IsZero() && o.Delay.Message == w.Message {
			w = &Delay{Message: w.Message, Until: o.Delay.Until}
		}
		s.Stacks[i].Delay = w
	}
}

// IsDelayed reports whether the change of a stack waits for something that its execution polls.
func (s *Status) IsDelayed(now time.Time) bool {
	return slices.ContainsFunc(s.Stacks, func(o Stack) bool { return o.Delay != nil && now.Before(o.Delay.Until) })
}
