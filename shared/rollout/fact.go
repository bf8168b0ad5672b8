package rollout

import (
	"maps"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// Fact is the observed state of one cluster. Planning and ticks read facts; before a cluster changes, its stacks are read again.
type Fact struct {
	Cluster string `json:"cluster"`
	// Region and Account are those of the cluster, and of its cell.
	Region  string `json:"region,omitempty"`
	Account string `json:"account,omitempty"`
	// Stack is the ARN of the control plane's stack. A recreated cluster has another one.
	Stack string `json:"stack,omitempty"`
	// Labels of the spec.
	Labels map[string]string `json:"labels,omitempty"`
	// Observed is when the fact was true.
	Observed time.Time `json:"observed,omitzero"`
	// Deployed is the release to which the control plane is pinned, and its Kubernetes version. It is zero without a control plane.
	Deployed upgrade.Target `json:"deployed,omitzero"`
	// Pinned reports whether the spec opts out of rollouts of releases. Paused reports whether the spec is paused.
	Pinned bool `json:"pinned,omitempty"`
	Paused bool `json:"paused,omitempty"`
	// Busy reports whether an execution works on the cluster or is about to. Unready reports whether its phase is Stopped, Failed or Deleted.
	Busy    bool `json:"busy,omitempty"`
	Unready bool `json:"unready,omitempty"`
	// Opening is the window of the cluster; nil is always open.
	Opening *Opening `json:"opening,omitempty"`
	// Attempt is the progress of the last assignment that the cell has; nil if it has none.
	Attempt *Attempt `json:"attempt,omitempty"`
	// Nodes of the cluster, and how many of them are not Ready. Alarms are those of spec.upgrade.alarms that are not OK.
	Nodes    int      `json:"nodes,omitempty"`
	NotReady int      `json:"notReady,omitempty"`
	Alarms   []string `json:"alarms,omitempty"`
	// RollbackUntil is when EKS stops accepting a rollback of the last upgrade; zero if there is none to roll back.
	RollbackUntil time.Time `json:"rollbackUntil,omitzero"`
}

// Opening is the window of a cluster at the time of the fact.
type Opening struct {
	// Opens is when it opens next; zero if it is open. Closes is when it closes after that; zero if that is not known.
	Opens  time.Time `json:"opens,omitzero"`
	Closes time.Time `json:"closes,omitzero"`
	// Never reports whether it does not open again.
	Never bool `json:"never,omitempty"`
}

// open reports whether the window is open, and when it opens; until is zero if that is not known.
func (o *Opening) open(now time.Time) (open bool, until time.Time) {
	switch {
	case o == nil:
		return true, time.Time{}
	case o.Never, !o.Closes.IsZero() && !now.Before(o.Closes):
		return false, time.Time{}
	case now.Before(o.Opens):
		return false, o.Opens
	}
	return true, time.Time{}
}

// hold returns what keeps drover from beginning work on the cluster by itself; empty if nothing does. At the zero time,
// freezes and windows do not count.
func (f *Fact) hold(freezes []api.Freeze, now time.Time) (reason Reason, until time.Time) {
	if f.Paused {
		return ReasonClusterPaused, time.Time{}
	}
	if now.IsZero() {
		return "", time.Time{}
	}
	if len(freezes) > 0 {
		if freeze, until := api.Frozen(freezes, api.StopRollouts, f.AllLabels(), now); freeze != nil {
			return ReasonFreeze, until.UTC()
		}
	}
	if open, until := f.Opening.open(now); !open {
		return ReasonClusterWindow, until
	}
	return "", time.Time{}
}

// obstacle returns why the cluster cannot start at a time; empty if it can. release is why it cannot get the release; empty if it can.
// Ticks and Waits call it, so that both have the same reasons in the same precedence.
func (f *Fact) obstacle(freezes []api.Freeze, now time.Time, release Reason) (reason Reason, until time.Time) {
	if reason, until = f.hold(freezes, now); reason != "" {
		return reason, until
	}
	switch {
	case release != "":
		return release, time.Time{}
	case f.Busy:
		return ReasonBusy, time.Time{}
	case f.Unready:
		return ReasonNotReady, time.Time{}
	}
	return "", time.Time{}
}

// Attempt is the progress of an assignment.
type Attempt struct {
	Rollout string `json:"rollout"`
	Run     int64  `json:"run"`
	Number  int    `json:"number"`
	// State of the attempt. Check is the name of the check that refused it.
	State AttemptState `json:"state"`
	Check string       `json:"check,omitempty"`
}

// AttemptState is how far an attempt is.
type AttemptState string

// The states of an attempt.
const (
	// AttemptOpen: the cell has the assignment, and the upgrade has not begun.
	AttemptOpen AttemptState = "Open"
	// AttemptWithdrawn: the assignment was withdrawn before the upgrade began.
	AttemptWithdrawn AttemptState = "Withdrawn"
	// AttemptBegun: the upgrade has begun.
	AttemptBegun AttemptState = "Begun"
	// AttemptDone: the upgrade is complete.
	AttemptDone AttemptState = "Done"
	// AttemptBlocked: checks refused the upgrade, and nothing was changed.
	AttemptBlocked AttemptState = "Blocked"
	// AttemptStopped: the upgrade stopped before its target.
	AttemptStopped AttemptState = "Stopped"
	// AttemptOvertaken: the spec names another release, which takes precedence.
	AttemptOvertaken AttemptState = "Overtaken"
)

// begun reports whether an attempt in this state has changed the cluster, or may have.
func (s AttemptState) begun() bool {
	return s == AttemptBegun || s == AttemptDone || s == AttemptStopped
}

// Cell returns the cell that has the cluster: see names.Cell. It is empty if the account or the region is not known, as for facts of files.
func (f *Fact) Cell() string {
	if f.Account == "" || f.Region == "" {
		return ""
	}
	return names.Cell(f.Account, f.Region)
}

// AllLabels returns the labels by which selectors and freezes select the cluster: those of its spec, and those that each cluster has.
func (f *Fact) AllLabels() map[string]string {
	all := maps.Clone(f.Labels)
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range map[string]string{
		api.LabelCell: f.Cell(), api.LabelRegion: f.Region, api.LabelAccount: f.Account, api.LabelKubernetes: f.Deployed.KubernetesVersion,
	} {
		if delete(all, key); value != "" {
			all[key] = value
		}
	}
	return all
}

// unwellReason returns why the cluster is not well; empty if it is. At most a tenth of its nodes may be NotReady.
func (f *Fact) unwellReason() Reason {
	switch {
	case f.NotReady*10 > f.Nodes:
		return ReasonHealth
	case len(f.Alarms) > 0:
		return ReasonAlarm
	}
	return ""
}

// FactOfSpec returns what the spec of a cluster implies before drover has reported a fact: the cluster has the release of its spec. release
// is the zero Content if it is not known. The fact has no time of observation.
func FactOfSpec(c *api.Cluster, release Content) Fact {
	f := Fact{Cluster: c.Metadata.Name, Labels: c.Metadata.Labels, Region: c.Region(), Paused: c.Spec.Paused,
		Pinned: c.Spec.Fleet.Release == api.FleetPinned}
	f.Deployed = upgrade.Target{Release: c.Spec.Release.Name, SHA256: release.SHA256, KubernetesVersion: c.Spec.KubernetesVersion}
	if f.Deployed.KubernetesVersion == "" && release.Release != nil {
		f.Deployed.KubernetesVersion = release.Release.Spec.KubernetesVersion
	}
	return f
}

// Inputs are what a tick knows in addition to its record.
type Inputs struct {
	// Facts of clusters by name. FactsAt is when the facts of each cell were written; a cell that has not reported is absent.
	Facts   map[string]Fact
	FactsAt map[string]time.Time
	// Decisions on the rollout that are readable, in any order, also those that earlier ticks applied.
	Decisions []UploadedDecision
	// Freezes of all clusters.
	Freezes []api.Freeze
	// Alarms by name. An alarm that does not exist is absent.
	Alarms map[string]Alarm
	// Cells by name.
	Cells map[string]Cell
	// Newer is the digest of a newer plan that waits for the end of the run; empty if there is none. Deleted reports whether the rollout's
	// file was deleted.
	Newer   string
	Deleted bool
}

// UploadedDecision is an object below decisions/. Tick applies it, and records an Answer.
type UploadedDecision struct {
	// Name and Version of the object, and when it was uploaded.
	Name    string
	Version string
	At      time.Time
	Spec    api.DecisionSpec
}

// Alarm is the state of an alarm of CloudWatch.
type Alarm struct {
	// InAlarm is true in the state ALARM.
	InAlarm bool
	// Since is when the alarm entered its state.
	Since time.Time
}

// Cell is what a cell allows.
type Cell struct {
	// Limit bounds the clusters on which rollouts work at once; 0 is no bound. Others is the number
	// of clusters on which other runs work.
	Limit, Others int
	// Unusable are the SHA-256 of releases that the cell cannot use.
	Unusable []string
}
