// Package preflight has named checks over facts that package collect gathered: whether a cluster can be upgraded, whether an upgrade
// succeeded, and whether images, networks and settings of a spec can be used. It is pure.
package preflight

import (
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/upgrade"
)

// Plan is the upgrade to check.
type Plan struct {
	// Cluster by name.
	Cluster string
	// From is the deployed version, To the target.
	From, To upgrade.Target
	// Steps that are still to do, in order.
	Steps []upgrade.Step
	// Before is the resolved cluster as deployed, After at the end of the upgrade.
	Before, After *api.Cluster
	// Alarms by name, which must not fire.
	Alarms []string
	// UpgradeFrom is the oldest Kubernetes minor version that may be upgraded to the release directly: the release's, or "" for one before
	// its own.
	UpgradeFrom string
	// Rollback reports that the upgrade returns to the previous release.
	Rollback bool
	// RollbackUntil is when EKS stops accepting a rollback of the control plane. It is zero unless the plan does that.
	RollbackUntil time.Time
	// NodesSince are the launch template versions since which the nodes are made of the same, by pool. A pool of an older drover has none.
	NodesSince map[string]string
}

// replaces reports whether the plan replaces nodes.
func (p *Plan) replaces() bool {
	for _, step := range p.Steps {
		if step.Kind == upgrade.StepNodes || step.Kind == upgrade.StepNodesBack {
			return true
		}
	}
	return false
}

// Versions returns the versions through which the control plane is upgraded, in order, without the current one.
func (p *Plan) Versions() []string {
	var versions []string
	last := p.From.KubernetesVersion
	for _, step := range p.Steps {
		if step.KubernetesVersion != last {
			versions = append(versions, step.KubernetesVersion)
			last = step.KubernetesVersion
		}
	}
	return versions
}

// pool returns a pool of the cluster after the upgrade, or nil.
func (p *Plan) pool(name string) *api.Pool {
	if p.After == nil {
		return nil
	}
	for i := range p.After.Spec.Pools {
		if p.After.Spec.Pools[i].Name == name {
			return &p.After.Spec.Pools[i]
		}
	}
	return nil
}

// Facts are the observed state, all from about the same time.
type Facts struct {
	// ReadAt is that time.
	ReadAt       time.Time
	ControlPlane ControlPlane
	// Survey is from the cluster's own API. If that did not answer, Unreachable is why, and the survey is empty.
	Survey      Survey
	Unreachable string
	// Forbidden reports that the caller may not read the cluster's API, for example an operator in a dry run. The survey
	// is then empty. That is no finding: drover itself may read it.
	Forbidden bool
	// Addons of the cluster, drover's and others.
	Addons []Addon
	// Insights of EKS for the plan's versions: those of UPGRADE_READINESS, or of ROLLBACK_READINESS for a rollback.
	Insights []Insight
	// InsightsRefreshed is when EKS made the insights last, even if all pass. It is zero if EKS never did, or was not asked.
	InsightsRefreshed time.Time
	// Catalog of EKS.
	Catalog []Version
	// Compat holds the versions that EKS offers of the cluster's add-ons, before and after.
	Compat upgrade.Compat
	// Recommended has what EKS recommends for add-ons without permissions, by add-on. Only the check of a release has it.
	Recommended map[string][]api.RecommendedIdentity
	// Groups of the pools, by pool.
	Groups map[string]Group
	// Subnets of the control plane and of the groups, by id.
	Subnets map[string]Subnet
	// Images of the pools, by id. Those that do not exist are absent.
	Images map[string]Image
	// ImageOfInstance has the image of each instance in service, by id.
	ImageOfInstance map[string]string
	// InstanceTypes of the pools, by name.
	InstanceTypes map[string]InstanceType
	// Quotas of running instances, of volumes and of clusters, by code.
	Quotas map[string]Quota
	// Alarms of the spec that exist.
	Alarms []Alarm
}

// surveyed reports whether the cluster's own API was read.
func (f *Facts) surveyed() bool { return f.Unreachable == "" && !f.Forbidden }

// ControlPlane is EKS's description of the cluster.
type ControlPlane struct {
	// Version such as "1.36"; Status such as ACTIVE.
	Version, Status string
	// Issues that EKS reports, in its words.
	Issues []string
	// Subnets of its network interfaces, by id.
	Subnets []string
	// Access to its endpoint.
	Access api.Access
}

// Addon is an EKS add-on of the cluster.
type Addon struct {
	Name, Version string
	// Status such as ACTIVE or DEGRADED.
	Status string
	// Issues in EKS's words.
	Issues []string
}

// Insight of EKS that is not PASSING.
type Insight struct {
	// Name such as "Deprecated APIs removed in Kubernetes v1.38".
	Name string
	// KubernetesVersion that the insight is about, or "".
	KubernetesVersion string
	// Status is ERROR, WARNING or UNKNOWN.
	Status string
	// Reason of the status, and Recommendation, in EKS's words.
	Reason, Recommendation string
	// Resources that it names, as ARNs or Kubernetes URIs.
	Resources []string
	// Deprecations are uses of APIs that a later version removes.
	Deprecations []Deprecation
}

// Deprecation is the use of an API that a Kubernetes version removes.
type Deprecation struct {
	// API such as /apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas, and its replacement.
	API, ReplacedWith string
	// RemovedIn is the Kubernetes version that removes it.
	RemovedIn string
	// Clients that used it within 30 days, by user agent.
	Clients []string
}

// Version of EKS's catalog.
type Version struct {
	// Version such as "1.36".
	Version string
	// Status is STANDARD_SUPPORT, EXTENDED_SUPPORT or UNSUPPORTED.
	Status string
	// EndOfStandard and EndOfExtended support. They are zero if EKS does not report them.
	EndOfStandard, EndOfExtended time.Time
}

// Group is the Auto Scaling group of a pool.
type Group struct {
	// Name of the group, or "" if the pool has none yet.
	Name string
	// Desired number of nodes, and how many are InService on the newest launch template.
	Desired, InService int
	// Instances in service, by id.
	Instances []string
	// Outdated are the ids of the instances that an older version of the launch template made differently.
	Outdated []string
	// Suspended names the processes that are suspended.
	Suspended []string
	// Subnets by id.
	Subnets []string
	// Failure is why the newest launch failed, or "". FailedAt is when.
	Failure  string
	FailedAt time.Time
}

// SecurityGroup of nodes.
type SecurityGroup struct {
	// VPC that it belongs to.
	VPC string
	// EKSCluster is the EKS cluster for which EKS created it, or "".
	EKSCluster string
}

// Subnet of nodes or of the control plane.
type Subnet struct {
	ID, Zone string
	// VPC that it is part of.
	VPC string
	// Free IPv4 addresses.
	Free int
}

// Image is an AMI.
type Image struct {
	ID, Name string
	// Architecture in EC2's terms: x86_64 or arm64. State such as available.
	Architecture, State string
	// Deprecated is its deprecation time, or zero.
	Deprecated time.Time
	// Platform is PlatformDetails of EC2, such as Linux/UNIX. RootDevice and Devices are the names of its block devices. SourceID is the image
	// that it is a copy of, or "".
	Platform, RootDevice, SourceID string
	Devices                        []string
}

// InstanceType is the part of an instance type that the checks need.
type InstanceType struct {
	Name string
	// VCPUs of an instance, as quotas count them.
	VCPUs int
	// Addresses is the number of IPv4 addresses of a network interface. The CNI allocates all of them at once.
	Addresses int
	// Disks is the number of NVMe disks of an instance (instance store).
	Disks int
}

// Quota of the account.
type Quota struct {
	// Code such as L-1216C47A. Name in AWS's words.
	Code, Name string
	// Limit and Used, in vCPUs, GiB of volumes, or clusters.
	Limit, Used int
}

// Alarm of CloudWatch.
type Alarm struct {
	Name string
	// State is OK, ALARM or INSUFFICIENT_DATA. Reason is CloudWatch's.
	State, Reason string
	// Since is when the state began.
	Since time.Time
	// Actions reports whether its actions are enabled.
	Actions bool
	// Silence reports that its owner allows upgrades to disable its actions. That is impossible for a composite alarm.
	Silence, Composite bool
}
