package preflight

// The names of the checks. docs/runbook.md explains each.

// Names of checks.
const (
	ControlPlaneHealthy = "ControlPlaneHealthy"
	NodesReady          = "NodesReady"
	NodesCordoned       = "NodesCordoned"
	SystemPods          = "SystemPods"
	WorkloadPods        = "WorkloadPods"
	BudgetsAllow        = "BudgetsAllow"
	DeprecatedAPIs      = "DeprecatedAPIs"
	Insights            = "Insights"
	KubeletSkew         = "KubeletSkew"
	Webhooks            = "Webhooks"
	FreeAddresses       = "FreeAddresses"
	InstanceQuota       = "InstanceQuota"
	VolumeQuota         = "VolumeQuota"
	ClusterQuota        = "ClusterQuota"
	SurgeCapacity       = "SurgeCapacity"
	AddonsHealthy       = "AddonsHealthy"
	AddonsCompatible    = "AddonsCompatible"
	VersionOffered      = "VersionOffered"
	UpgradeFrom         = "UpgradeFrom"
	SupportDates        = "SupportDates"
	Images              = "Images"
	AlarmsQuiet         = "AlarmsQuiet"
	AlarmsSilenced      = "AlarmsSilenced"
	VersionsReached     = "VersionsReached"
	NodesReplaced       = "NodesReplaced"
	WorkloadsReady      = "WorkloadsReady"
	// UpgradePossible is said in advance only: one that cannot be made at all does not come to its checks.
	UpgradePossible = "UpgradePossible"
	FileValid       = "FileValid"
	ReleasesThere   = "ReleasesThere"
)
