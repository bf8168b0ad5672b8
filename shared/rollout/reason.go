package rollout

// State of a member of a run.
type State string

// The states of a member.
const (
	// Waiting: the member does not start yet; the reason says why.
	Waiting State = "Waiting"
	// Started: the record has the start, and the cell has not begun the upgrade.
	Started State = "Started"
	// Withdrawing: the start is withdrawn, and the cell has not confirmed that.
	Withdrawing State = "Withdrawing"
	// Changing: the upgrade has begun.
	Changing State = "Changing"
	// Settling: the upgrade is done, and the cluster has not been well for long enough.
	Settling State = "Settling"
	// Good: the cluster has been well for the time of settle.
	Good State = "Good"
	// Failed: drover changed the cluster, and it is not well or missed its deadline.
	Failed State = "Failed"
	// Blocked: checks before the upgrade refused it, and nothing was changed.
	Blocked State = "Blocked"
	// Skipped: the run does not change the cluster.
	Skipped State = "Skipped"
	// RolledBack: a rollback returned the cluster to its previous release.
	RolledBack State = "RolledBack"
	// NotRolledBack: a rollback was requested, and the cluster cannot be rolled back. It keeps the release of the run.
	NotRolledBack State = "NotRolledBack"
)

// States returns all states of members.
func States() []State {
	return []State{Waiting, Started, Withdrawing, Changing, Settling, Good, Failed, Blocked, Skipped, RolledBack, NotRolledBack}
}

// atRisk reports whether a member in this state has started and is not Good yet.
func (s State) atRisk() bool {
	return s == Started || s == Withdrawing || s == Changing || s == Settling
}

// inFlight reports whether the cell may be working on a member in this state.
func (s State) inFlight() bool { return s == Started || s == Withdrawing || s == Changing }

// Reason says why a member is in its state, or why a cluster is left out of a plan.
type Reason string

// Reasons for which members wait. Their order is their precedence: a member has the first that holds.
const (
	// ReasonPaused: a decision paused the run.
	ReasonPaused Reason = "Paused"
	// ReasonHalted: the run is halted.
	ReasonHalted Reason = "Halted"
	// ReasonStage: an earlier stage has not passed.
	ReasonStage Reason = "Stage"
	// ReasonApproval: the stage needs an approval.
	ReasonApproval Reason = "Approval"
	// ReasonAlarm: an alarm of the stage is in ALARM or absent. As a reason of Failed: one of the cluster's own.
	ReasonAlarm Reason = "Alarm"
	// ReasonWindow: the window of the stage is closed.
	ReasonWindow Reason = "Window"
	// ReasonUnreported: no recent fact of the cluster is known.
	ReasonUnreported Reason = "Unreported"
	// ReasonClusterPaused: the spec of the cluster is paused.
	ReasonClusterPaused Reason = "ClusterPaused"
	// ReasonFreeze: a freeze holds the cluster.
	ReasonFreeze Reason = "Freeze"
	// ReasonClusterWindow: the window of the cluster is closed.
	ReasonClusterWindow Reason = "ClusterWindow"
	// ReasonIncompatibleVersion: the Kubernetes version of the cluster does not fit the release. Also of clusters that are left out.
	ReasonIncompatibleVersion Reason = "IncompatibleVersion"
	// ReasonReleaseUnusable: the cell cannot use the release.
	ReasonReleaseUnusable Reason = "ReleaseUnusable"
	// ReasonBusy: other work is in flight on the cluster.
	ReasonBusy Reason = "Busy"
	// ReasonNotReady: the phase of the cluster is Stopped, Failed or Deleted.
	ReasonNotReady Reason = "NotReady"
	// ReasonSlots: as many members are at risk as maxConcurrency allows.
	ReasonSlots Reason = "Slots"
	// ReasonBudget: a further failure could exceed maxFailures.
	ReasonBudget Reason = "Budget"
	// ReasonCellLimit: the cell works on as many clusters as its limit allows.
	ReasonCellLimit Reason = "CellLimit"
)

// Reasons of Failed.
const (
	// ReasonDeadline: the member was not Good within its deadline.
	ReasonDeadline Reason = "Deadline"
	// ReasonUpgrade: the upgrade stopped.
	ReasonUpgrade Reason = "Upgrade"
	// ReasonHealth: nodes were not Ready for an hour or four times settle after the upgrade, or at the deadline.
	ReasonHealth Reason = "Health"
	// ReasonRegressed: a Good member was not well again within the time of settle.
	ReasonRegressed Reason = "Regressed"
	// ReasonRollback: the rollback did not succeed.
	ReasonRollback Reason = "Rollback"
)

// ReasonCheck is the reason of Blocked: a check before the upgrade refused it. The member has the name of the check.
const ReasonCheck Reason = "Check"

// ReasonNotPossible is the reason of NotRolledBack: EKS does not allow a rollback, or no longer.
const ReasonNotPossible Reason = "NotPossible"

// Reasons of Skipped, and of clusters that a plan leaves out.
const (
	// ReasonPinned: the spec of the cluster opts out of rollouts.
	ReasonPinned Reason = "Pinned"
	// ReasonUpToDate: the cluster has the release.
	ReasonUpToDate Reason = "UpToDate"
	// ReasonOvertaken: the spec of the cluster names another release, which takes precedence.
	ReasonOvertaken Reason = "Overtaken"
	// ReasonDecision: a decision took the member out of the run, or ended the run.
	ReasonDecision Reason = "Decision"
	// ReasonSuperseded: a newer plan ended the run.
	ReasonSuperseded Reason = "Superseded"
	// ReasonDeleted: the cluster was deleted or recreated after the plan was made.
	ReasonDeleted Reason = "Deleted"
	// ReasonNotCreated: the cluster has no control plane yet.
	ReasonNotCreated Reason = "NotCreated"
	// ReasonUnmatched: no stage selects the cluster.
	ReasonUnmatched Reason = "Unmatched"
)

// Reasons returns all reasons of members in a state, in the order of their precedence. LeftOutReasons are those of plans.
func Reasons(of State) []Reason {
	switch of {
	case Waiting:
		return []Reason{
			ReasonPaused, ReasonHalted, ReasonStage, ReasonApproval, ReasonAlarm, ReasonWindow, ReasonUnreported, ReasonClusterPaused, ReasonFreeze,
			ReasonClusterWindow, ReasonIncompatibleVersion, ReasonReleaseUnusable, ReasonBusy, ReasonNotReady, ReasonSlots, ReasonBudget,
			ReasonCellLimit,
		}
	case Failed:
		return []Reason{ReasonDeadline, ReasonUpgrade, ReasonHealth, ReasonAlarm, ReasonRegressed, ReasonRollback}
	case Blocked:
		return []Reason{ReasonCheck}
	case Skipped:
		return []Reason{ReasonPinned, ReasonUpToDate, ReasonOvertaken, ReasonDecision, ReasonSuperseded, ReasonDeleted}
	case NotRolledBack:
		return []Reason{ReasonNotPossible}
	}
	return nil
}

// LeftOutReasons returns the reasons for which a plan leaves a cluster out.
func LeftOutReasons() []Reason {
	return []Reason{ReasonUnmatched, ReasonPinned, ReasonNotCreated, ReasonUpToDate, ReasonIncompatibleVersion}
}
