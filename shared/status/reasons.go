package status

// Reasons of the conditions: one CamelCase word each. Names of faults and of Step Functions' errors are reasons, too. A test checks that
// docs/runbook.md has each reason for which a condition is False.
const (
	// ReasonValid: the newest upload can be used.
	ReasonValid = "Valid"
	// ReasonSpecInvalid: the newest upload cannot be used.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonSpecAbsent: the spec was deleted, or never uploaded.
	ReasonSpecAbsent = "SpecAbsent"
	// ReasonDeletionProtected: the spec was deleted, and deletion protection retains the cluster.
	ReasonDeletionProtected = "DeletionProtected"
	// ReasonDeleting: the cluster is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonDeleted: the cluster no longer exists.
	ReasonDeleted = "Deleted"
	// ReasonReleaseUnusable: the release that the spec names is absent or invalid.
	ReasonReleaseUnusable = "ReleaseUnusable"
	// ReasonAddonWithoutPermission: an add-on of the spec needs permissions in AWS and has none.
	ReasonAddonWithoutPermission = "AddonWithoutPermission"
	// ReasonAccountNotReady: the account cannot take the cluster, which does not exist yet.
	ReasonAccountNotReady = "AccountNotReady"
	// ReasonZoneRefused: the network has, or would get, a zone in which EKS creates no control plane.
	ReasonZoneRefused = "ZoneRefused"
	// ReasonUpToDate: the stacks match the spec.
	ReasonUpToDate = "UpToDate"
	// ReasonInSync: the audit found nothing.
	ReasonInSync = "InSync"
	// ReasonDrifted: the audit found a difference from the desired state.
	ReasonDrifted = "Drifted"
	// ReasonNoNodes: no pool has a node that add-ons could run on. ReasonHasNodes: a pool has one again.
	ReasonNoNodes, ReasonHasNodes = "NoNodes", "HasNodes"
	// ReasonNoPoolForAddons: the spec has no pool whose taints the pods of an add-on tolerate.
	ReasonNoPoolForAddons = "NoPoolForAddons"
	// ReasonPublicAddresses: a range of the VPC holds addresses of internet hosts.
	ReasonPublicAddresses = "PublicAddresses"
	// ReasonNoAccess: no principal can use the API of Kubernetes.
	ReasonNoAccess = "NoAccess"
	// ReasonSubnetsUntagged: load balancers would not find the subnets of an existing network.
	ReasonSubnetsUntagged = "SubnetsUntagged"
	// ReasonPodsReachMetadata: a pool's pods reach the instance metadata service.
	ReasonPodsReachMetadata = "PodsReachMetadata"
	// ReasonUnknownKubeletField: a pool states a field of the kubelet that drover does not know.
	ReasonUnknownKubeletField = "UnknownKubeletField"
	// ReasonRelayOutdated: the relay has the code of another version of drover.
	ReasonRelayOutdated = "RelayOutdated"
	// ReasonUpgraded: the last upgrade was completed.
	ReasonUpgraded = "Upgraded"
	// ReasonUpgrading: an upgrade is in flight.
	ReasonUpgrading = "Upgrading"
	// ReasonUpgradeBlocked: the checks before an upgrade found something, and nothing was changed.
	ReasonUpgradeBlocked = "UpgradeBlocked"
	// ReasonUpgradeStopped: an upgrade failed, or was stopped, before its target.
	ReasonUpgradeStopped = "UpgradeStopped"
	// ReasonUpgradeScheduled: the spec requests an upgrade that has not begun.
	ReasonUpgradeScheduled = "UpgradeScheduled"
	// ReasonUpgradeMissed: the upgrade did not begin within two hours of its time.
	ReasonUpgradeMissed = "UpgradeMissed"
	// ReasonConverging: changes are being made.
	ReasonConverging = "Converging"
	// ReasonExecutionEnded: the execution ended without a report: it was aborted, timed out, or could not write the status.
	ReasonExecutionEnded = "ExecutionEnded"
	// ReasonPaused: the spec is paused, so drover starts nothing.
	ReasonPaused = "Paused"
	// ReasonChangeRefused: the plan would replace or delete something stateful. It is also the name of the fault of a change set
	// that would.
	ReasonChangeRefused = "ChangeRefused"
	// ReasonRollRefused: a request names a pool that the spec lacks, or the cluster cannot roll pools now.
	ReasonRollRefused = "RollRefused"
	// ReasonUpgradeRefused: an upgrade that an operator requested is not possible. Nothing was changed.
	ReasonUpgradeRefused = "UpgradeRefused"
)

// Reasons lists the reasons for which a condition is False, without those of faults.
func Reasons() []string {
	return []string{
		ReasonSpecInvalid, ReasonSpecAbsent, ReasonReleaseUnusable, ReasonAddonWithoutPermission, ReasonAccountNotReady, ReasonZoneRefused,
		ReasonConverging,
		ReasonExecutionEnded, ReasonPaused,
		ReasonChangeRefused,
		ReasonUpgrading, ReasonUpgradeScheduled, ReasonUpgradeBlocked, ReasonUpgradeStopped, ReasonUpgradeMissed, ReasonDeletionProtected,
		ReasonDeleting, ReasonDeleted, ReasonDrifted, ReasonNoNodes,
		ReasonRollRefused, ReasonUpgradeRefused, ReasonNoPoolForAddons, ReasonPublicAddresses,
		ReasonNoAccess, ReasonSubnetsUntagged, ReasonPodsReachMetadata, ReasonUnknownKubeletField, ReasonRelayOutdated,
	}
}
