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
	AddonPermissions    = "AddonPermissions"
	VersionOffered      = "VersionOffered"
	UpgradeFrom         = "UpgradeFrom"
	SupportDates        = "SupportDates"
	Images              = "Images"
	AlarmsQuiet         = "AlarmsQuiet"
	AlarmsSilenced      = "AlarmsSilenced"
	VersionsReached     = "VersionsReached"
	NodesReplaced       = "NodesReplaced"
	WorkloadsReady      = "WorkloadsReady"
	// UpgradePossible appears only in a forecast. An impossible upgrade does not reach its checks.
	UpgradePossible = "UpgradePossible"
	// FileValid is about an uploaded release or channels file: it must be valid. Package releases runs it.
	FileValid = "FileValid"
	// ReleasesExist is about an uploaded channels file: the releases that it names must exist. Package releases runs it.
	ReleasesExist = "ReleasesExist"
)
