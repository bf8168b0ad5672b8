// Package preflight says whether a cluster can be upgraded, and whether an upgrade made it worse: named checks over facts that
// were gathered before. It is pure.
package preflight

import (
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/upgrade"
)

// Plan is the upgrade that is to be checked.
type Plan struct {
	// Cluster by name.
	Cluster string
	// From is what the cluster is, To what it is to be.
	From, To upgrade.Target
	// Steps that are still to be made, in order.
	Steps []upgrade.Step
	// Before and After are the resolved cluster as it is deployed and as it is to be at the end.
	Before, After *api.Cluster
	// Alarms by name, that must be quiet.
	Alarms []string
	// UpgradeFrom is the oldest Kubernetes minor that may go to the release directly: the release's, "" for one before its own.
	UpgradeFrom string
	// Rollback says that the upgrade goes back to what was.
	Rollback bool
	// BackUntil is until when EKS takes the control plane back, of a rollback that moves it; zero otherwise.
	BackUntil time.Time
}

// replaces says whether the plan replaces nodes.
func (p *Plan) replaces() bool {
	for _, step := range p.Steps {
		if step.Kind == upgrade.StepNodes || step.Kind == upgrade.StepNodesBack {
			return true
		}
	}
	return false
}

// Versions of the control plane on the way, in order, without the one that it has.
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

// pool of the cluster as it is to be; nil when it has none of that name.
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

// Facts are what was found, all at about one time. Reading them changes nothing.
type Facts struct {
	// Taken is when.
	Taken        time.Time
	ControlPlane ControlPlane
	// Survey is of the cluster's own API. When that did not answer, Unreachable says why, and the survey is empty.
	Survey      Survey
	Unreachable string
	// Unseen says that the cluster does not let who asks look into it, as it may not in a person's dry run. The survey
	// is empty then, too, and that is no finding: drover may look.
	Unseen bool
	// Addons that the cluster has, whoever installed them.
	Addons []Addon
	// Insights of EKS for the versions of the plan: those of UPGRADE_READINESS, or of ROLLBACK_READINESS for a rollback.
	Insights []Insight
	// Looked is when EKS looked for them last, also where it found nothing; zero when it never did, or was not asked.
	Looked time.Time
	// Catalogue of EKS.
	Catalogue []Version
	// Compat are the versions that EKS has of the add-ons that the cluster has and is to have.
	Compat upgrade.Compat
	// Groups of the pools, by pool.
	Groups map[string]Group
	// Subnets of the control plane and of the groups, by id.
	Subnets map[string]Subnet
	// Images of the pools, by id; those that are not there are missing.
	Images map[string]Image
	// Started is the image that each instance in service of the groups was started from.
	Started map[string]string
	// InstanceTypes of the pools, by name.
	InstanceTypes map[string]InstanceType
	// Quotas of running instances, of volumes and of clusters, by code.
	Quotas map[string]Quota
	// Alarms of the spec that exist.
	Alarms []Alarm
}

// surveyed says whether the cluster's own API told anything.
func (f *Facts) surveyed() bool { return f.Unreachable == "" && !f.Unseen }

// ControlPlane is what EKS tells of the cluster.
type ControlPlane struct {
	// Version such as "1.36"; Status such as ACTIVE.
	Version, Status string
	// Issues that EKS has with it, as it words them.
	Issues []string
	// Subnets by id, in which it has its network interfaces.
	Subnets []string
}

// Addon is an EKS add-on of the cluster.
type Addon struct {
	Name, Version string
	// Status such as ACTIVE or DEGRADED.
	Status string
	// Issues as EKS words them.
	Issues []string
}

// Insight of EKS that is not PASSING.
type Insight struct {
	// Name such as "Deprecated APIs removed in Kubernetes v1.38".
	Name string
	// KubernetesVersion that it is about; "" for any.
	KubernetesVersion string
	// Status is ERROR, WARNING or UNKNOWN.
	Status string
	// Reason of the status, and Recommendation, as EKS words them.
	Reason, Recommendation string
	// Resources that it names, as ARNs or Kubernetes URIs.
	Resources []string
	// Deprecations are uses of APIs that go.
	Deprecations []Deprecation
}

// Deprecation is the use of an API that goes with a Kubernetes version.
type Deprecation struct {
	// API such as /apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas, and what replaces it.
	API, ReplacedWith string
	// Gone is the Kubernetes version without it.
	Gone string
	// Clients that used it within 30 days, by user agent.
	Clients []string
}

// Version of EKS's catalogue.
type Version struct {
	// Version such as "1.36".
	Version string
	// Status is STANDARD_SUPPORT, EXTENDED_SUPPORT or UNSUPPORTED.
	Status string
	// EndOfStandard and EndOfExtended support; zero when EKS does not say.
	EndOfStandard, EndOfExtended time.Time
}

// Group is the Auto Scaling group of a pool.
type Group struct {
	// Name of the group; "" when the pool has none yet.
	Name string
	// Desired number of nodes, and how many are InService on the newest launch template.
	Desired, InService int
	// Instances in service, by id.
	Instances []string
	// Outdated are the ids of the instances that were launched with another launch template than the group launches now.
	Outdated []string
	// Suspended names the processes that are suspended.
	Suspended []string
	// Subnets by id.
	Subnets []string
	// Failure is why the group's last try to launch an instance failed, "" when it did not, and FailedAt when.
	Failure  string
	FailedAt time.Time
}

// Subnet is one in which nodes or the control plane have addresses.
type Subnet struct {
	ID, Zone string
	// Free addresses of IPv4.
	Free int
}

// Image is an AMI.
type Image struct {
	ID, Name string
	// Architecture as EC2 has it: x86_64 or arm64; State such as available.
	Architecture, State string
	// Deprecated is when it is, zero for never.
	Deprecated time.Time
}

// InstanceType is what matters of one.
type InstanceType struct {
	Name string
	// VCPUs that an instance counts with in quotas.
	VCPUs int
	// Addresses of IPv4 that a network interface of it has: the CNI takes them all at once.
	Addresses int
}

// Quota of the account.
type Quota struct {
	// Code such as L-1216C47A; Name as AWS has it.
	Code, Name string
	// Limit and Used, in vCPUs, or in GiB of volumes.
	Limit, Used int
}

// Alarm of CloudWatch.
type Alarm struct {
	Name string
	// State is OK, ALARM or INSUFFICIENT_DATA; Reason is CloudWatch's.
	State, Reason string
	// Since is when it came to the state.
	Since time.Time
	// Actions says whether its actions are on.
	Actions bool
	// Silence says that its owner lets upgrades switch them off. Nobody can of a composite alarm.
	Silence, Composite bool
}
