package status

// Reasons of the conditions: one CamelCase word each, beside the names of faults and of Step Functions' own errors. A test
// holds docs/runbook.md equal to them.
const (
	// ReasonValid: the newest upload can be used.
	ReasonValid = "Valid"
	// ReasonSpecInvalid: the newest upload cannot be used.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonSpecAbsent: the spec was deleted, or never uploaded.
	ReasonSpecAbsent = "SpecAbsent"
	// ReasonDeletionProtected: the spec was deleted, and deletion protection keeps the cluster.
	ReasonDeletionProtected = "DeletionProtected"
	// ReasonDeleting: the cluster is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonDeleted: the cluster is gone.
	ReasonDeleted = "Deleted"
	// ReasonReleaseUnusable: the release that the spec names is absent or invalid.
	ReasonReleaseUnusable = "ReleaseUnusable"
	// ReasonUpToDate: the stacks are what the spec says.
	ReasonUpToDate = "UpToDate"
	// ReasonInSync: the audit found nothing.
	ReasonInSync = "InSync"
	// ReasonDrifted: the audit found something that is not as it was made.
	ReasonDrifted = "Drifted"
	// ReasonNoNodes: no pool has a node that add-ons could run on. ReasonHasNodes: one has by now.
	ReasonNoNodes, ReasonHasNodes = "NoNodes", "HasNodes"
	// ReasonNoPoolForAddons: the spec has no pool whose taints the pods of an add-on tolerate.
	ReasonNoPoolForAddons = "NoPoolForAddons"
	// ReasonUpgraded: the last upgrade was made.
	ReasonUpgraded = "Upgraded"
	// ReasonUpgrading: an upgrade is under way.
	ReasonUpgrading = "Upgrading"
	// ReasonUpgradeBlocked: the checks before an upgrade found something, and nothing was changed.
	ReasonUpgradeBlocked = "UpgradeBlocked"
	// ReasonUpgradeStopped: an upgrade failed, or was stopped, on its way.
	ReasonUpgradeStopped = "UpgradeStopped"
	// ReasonUpgradeScheduled: the spec asks for an upgrade that has not begun.
	ReasonUpgradeScheduled = "UpgradeScheduled"
	// ReasonUpgradeMissed: the cluster was busy for two hours after the time of an upgrade.
	ReasonUpgradeMissed = "UpgradeMissed"
	// ReasonConverging: changes are being made.
	ReasonConverging = "Converging"
	// ReasonExecutionEnded: the execution that made changes is over and did not report: aborted, or out of time.
	ReasonExecutionEnded = "ExecutionEnded"
	// ReasonPaused: the spec says that nothing is to be started.
	ReasonPaused = "Paused"
	// ReasonChangeRefused: the plan would replace or delete something stateful. It is also the name of the fault of a change set
	// that would.
	ReasonChangeRefused = "ChangeRefused"
	// ReasonRollRefused: the input of an execution names a pool that the spec lacks, or the cluster takes no roll now.
	ReasonRollRefused = "RollRefused"
	// ReasonUpgradeRefused: an upgrade that was started by hand cannot be made. Nothing was changed.
	ReasonUpgradeRefused = "UpgradeRefused"
)

// Reasons lists the reasons for which a condition is False, less faults.
func Reasons() []string {
	return []string{
		ReasonSpecInvalid, ReasonSpecAbsent, ReasonReleaseUnusable, ReasonConverging, ReasonExecutionEnded, ReasonPaused, ReasonChangeRefused,
		ReasonUpgrading, ReasonUpgradeScheduled, ReasonUpgradeBlocked, ReasonUpgradeStopped, ReasonUpgradeMissed, ReasonDeletionProtected,
		ReasonDeleting, ReasonDeleted, ReasonDrifted, ReasonNoNodes,
		ReasonRollRefused, ReasonUpgradeRefused, ReasonNoPoolForAddons,
	}
}
