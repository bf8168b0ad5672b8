// Package overview summarizes the statuses of all clusters and rollouts of a cell: one row for each. The command line and the page show
// these rows.
// Reader reads the statuses; the rest of the package is pure.
package overview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/drover-run/drover/shared/status"
)

// Document lists the clusters of a cell, ordered by name. It has no time of its own: equal statuses give equal bytes.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Clusters   []Row  `json:"clusters"`
}

// NewDocument returns the document of some rows.
func NewDocument(rows []Row) Document {
	return Document{APIVersion: "drover.run/v1alpha1", Kind: "FleetStatus", Clusters: append([]Row{}, rows...)}
}

// JSON returns the document for the page.
func (d Document) JSON() ([]byte, error) { return json.Marshal(d) }

// Health is the state of a cluster in one word, for colors and filters. Phase and Reason say more.
type Health string

// The values of Health.
const (
	// Healthy: the cluster matches its spec, and no condition is False.
	Healthy Health = "Healthy"
	// Changing: drover changes or deletes the cluster.
	Changing Health = "Changing"
	// Degraded: the cluster matches its spec, but a condition is False, or an upgrade is late.
	Degraded Health = "Degraded"
	// Failing: the last converge failed, or drover does nothing until a user acts.
	Failing Health = "Failing"
	// Deleted: the cluster no longer exists.
	Deleted Health = "Deleted"
	// Unknown: the status cannot be read.
	Unknown Health = "Unknown"
)

// Healths lists the values of Health.
func Healths() []Health { return []Health{Healthy, Changing, Degraded, Failing, Deleted, Unknown} }

// ReasonUnreadable is the reason of a cluster whose status document cannot be read.
const ReasonUnreadable = "Unreadable"

// Row is one cluster.
type Row struct {
	Name string `json:"name"`
	// Labels of the newest accepted spec.
	Labels            map[string]string `json:"labels,omitempty"`
	KubernetesVersion string            `json:"kubernetesVersion,omitempty"`
	Release           string            `json:"release,omitempty"`
	// Target is the release of the upgrade that is in flight or scheduled.
	Target string       `json:"target,omitempty"`
	Phase  status.Phase `json:"phase"`
	Health Health       `json:"health"`
	// Reason is one CamelCase word, for which docs/runbook.md has an entry: the reason of a condition, the state of the node that work waits
	// for, the phase of an upgrade that has not begun, or Unreadable.
	Reason string `json:"reason,omitempty"`
	// WaitsFor says what the cluster waits for, or what is wrong, in one line. Until is when that ends at the latest, if known.
	WaitsFor string     `json:"waitsFor,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// UpdatedAt is when drover last changed the status. It is absent if the status cannot be read.
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// Summarize returns the row of a status.
func Summarize(c *status.Cluster) Row {
	s := &c.Status
	row := Row{
		Name: c.Metadata.Name, KubernetesVersion: s.KubernetesVersion, Release: s.Release, Phase: s.Phase, UpdatedAt: s.UpdatedAt,
	}
	if s.Accepted != nil {
		row.Labels = s.Accepted.Labels
	}
	if u := s.Upgrade; u != nil && u.Ended == nil && u.To != s.Release {
		row.Target = u.To
	}
	row.judge(s)
	row.WaitsFor = firstLine(row.WaitsFor)
	return row
}

// Unreadable returns the row of a cluster whose status cannot be read.
func Unreadable(name string, err error) Row {
	return Row{
		Name: name, Phase: "Unknown", Health: Unknown, Reason: ReasonUnreadable, WaitsFor: "its status cannot be read: " + firstLine(err.Error()),
	}
}

// judge sets health, reason and what the cluster waits for.
func (r *Row) judge(s *status.Status) {
	wrong := firstFalse(s)
	r.Health, r.WaitsFor = Healthy, s.Message
	if c := s.Condition(status.Converged); c != nil {
		r.Reason = c.Reason
	}
	switch s.Phase {
	case status.Deleted:
		r.Health, r.WaitsFor = Deleted, ""
	case status.Failed, status.Stopped:
		r.Health, r.Until = Failing, s.RetryAt
		if wrong != nil {
			r.Reason = wrong.Reason
		}
	case status.Ready:
		r.ready(s, wrong)
	default:
		r.Health = Changing
		r.wait(s)
	}
}

// ready judges a cluster without work in flight.
func (r *Row) ready(s *status.Status, wrong *status.Condition) {
	r.WaitsFor = ""
	u := s.Upgrade
	scheduled := u != nil && slices.Contains([]string{status.UpgradeScheduled, status.UpgradeDelayed, status.UpgradeMissed}, u.Phase)
	switch {
	case wrong != nil:
		r.Health, r.Reason, r.WaitsFor = Degraded, wrong.Reason, cmp.Or(wrong.Message, s.Message)
	case scheduled:
		if u.Phase != status.UpgradeScheduled {
			r.Health = Degraded
		}
		r.Reason, r.WaitsFor, r.Until = u.Phase, cmp.Or(u.Message, "the upgrade to "+u.To), u.At
	}
}

// wait finds what the work in flight waits for: a blocked node, then a delayed stack.
func (r *Row) wait(s *status.Status) {
	for _, n := range s.Nodes { // oldest first
		if n.State != status.NodeBlocked && n.State != status.NodeUnreachable {
			continue
		}
		r.Reason, r.WaitsFor = string(n.State), fmt.Sprintf("node %s: %s", cmp.Or(n.Name, n.Instance), n.Message)
		if len(n.Blocked) > 0 {
			b := n.Blocked[0]
			r.WaitsFor = fmt.Sprintf("node %s: pod %s: %s", cmp.Or(n.Name, n.Instance), b.Pod, b.Why)
			if len(b.Budgets) > 0 {
				r.WaitsFor += " (" + strings.Join(b.Budgets, ", ") + ")"
			}
		}
		return
	}
	for _, stack := range s.Stacks {
		if stack.Delay != nil && !stack.Delay.Until.IsZero() {
			until := stack.Delay.Until
			r.WaitsFor, r.Until = stack.Name+": "+stack.Delay.Message, &until
			return
		}
	}
}

// byUrgency orders the types of conditions. Other types follow, by name.
var byUrgency = []string{status.Converged, status.SpecAccepted, status.Upgraded, status.InSync, status.RequestAccepted}

// firstFalse returns the most urgent condition that is False, or nil.
func firstFalse(s *status.Status) *status.Condition {
	for _, kind := range byUrgency {
		if c := s.Condition(kind); c != nil && c.Status == "False" {
			return c
		}
	}
	for i, c := range s.Conditions {
		if c.Status == "False" && !slices.Contains(byUrgency, c.Type) {
			return &s.Conditions[i]
		}
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Filter selects rows. An empty list selects every value. The zero Filter selects every row but those of deleted clusters.
type Filter struct {
	Labels                               labels.Selector
	Healths, Versions, Releases, Reasons []string
	// Deleted also selects deleted clusters. So does the health Deleted.
	Deleted bool
}

// Apply returns the selected rows.
func (f Filter) Apply(rows []Row) []Row {
	selected := []Row{}
	for _, row := range rows {
		if f.selects(row) {
			selected = append(selected, row)
		}
	}
	return selected
}

func (f Filter) selects(r Row) bool {
	in := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	if r.Health == Deleted && !f.Deleted && !slices.Contains(f.Healths, string(Deleted)) {
		return false
	}
	return in(f.Healths, string(r.Health)) && in(f.Versions, r.KubernetesVersion) && in(f.Releases, r.Release) && in(f.Reasons, r.Reason) &&
		(f.Labels == nil || f.Labels.Matches(labels.Set(r.Labels)))
}
