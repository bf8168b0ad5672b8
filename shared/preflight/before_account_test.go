package preflight_test

// Findings about the account, the release and the alarms.

import (
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// roomCases are about addresses, quotas, capacity and room for pods.
var roomCases = map[string]beforeCase{
	"the control plane needs five addresses in each of its subnets": {
		func(w *world) { w.free(100, 4) },
		blocks("FreeAddresses", "EKS needs 5 free addresses in each subnet of the control plane to update it: subnet-2 has 4"),
	},
	"each subnet has five free addresses": {
		func(w *world) { w.free(10, 5) }, nil,
	},
	"a node without an address cannot start": {
		func(w *world) { w.nodesOnly(); w.free(0, 0) }, blocks("FreeAddresses", "1 node of pool a would be added, and 0 addresses are free"),
	},
	"a node can start without addresses for pods": {
		func(w *world) {
			w.nodesOnly()
			w.free(14, 0)
		}, warns("FreeAddresses", "1 node of pool a would be added and may need 15 addresses, with those for pods, and 14 are free"),
	},
	"pools of one order share subnets with room for each": {
		func(w *world) {
			w.nodesOnly()
			w.quota("L-1216C47A", 0)
			w.secondPool(0)
			w.free(15, 14)
		},
		warns("FreeAddresses", "2 nodes of pool a, b would be added and may need 30 addresses, with those for pods, and 29 are free"),
	},
	"pools of different orders share subnets": {
		func(w *world) { w.nodesOnly(); w.secondPool(1); w.free(15, 14) }, nil,
	},
	"a deleted subnet has none": {
		func(w *world) {
			w.facts.Subnets = nil
		}, blocks("FreeAddresses", "subnet-1 has 0, subnet-2 has 0, 1 node of pool a would be added, and 0 addresses are free"),
	},

	"the last four vCPUs are enough for one node": {
		func(w *world) {}, nil,
	},
	"three are not": {
		func(w *world) { w.quota("L-1216C47A", 97) }, blocks("InstanceQuota", "97 of 100 vCPUs are used, and the new nodes need up to 4"),
	},
	"pools of one order add up": {
		func(w *world) { w.secondPool(0) }, blocks("InstanceQuota", "need up to 8"),
	},
	"pools of different orders do not": {
		func(w *world) { w.secondPool(1) }, nil,
	},
	"spot has a quota of its own": {
		func(w *world) {
			w.quota("L-1216C47A", 100)
			w.quota("L-34B43A08", 99)
			w.pool().Spot = &api.Spot{}
		},
		blocks("InstanceQuota", "(L-34B43A08)"),
	},
	"a mix counts for both": {
		func(w *world) {
			w.quota("L-34B43A08", 0)
			w.quota("L-1216C47A", 100)
			w.pool().Spot = &api.Spot{OnDemandPercentage: 50}
		},
		blocks("InstanceQuota", "(L-1216C47A)"),
	},
	"an unknown quota": {
		func(w *world) {
			w.facts.Quotas = nil
		}, []finding{{"InstanceQuota", false, "L-1216C47A"}, {
			"VolumeQuota", false, "L-7A658B76",
		}, {"ClusterQuota", false, "Service Quotas has no value for L-1194D53C"}},
	},
	"the last fifty GiB are enough for one node's disk": {
		func(w *world) { w.quota("L-7A658B76", 50) }, nil,
	},
	"forty-nine are not": {
		func(w *world) { w.quota("L-7A658B76", 51) }, blocks("VolumeQuota", "51 of 100 GiB are used, and the new nodes need up to 50"),
	},
	"volumes of another type have their own quota": {
		func(w *world) {
			w.quota("L-09BD8365", 51)
			w.quota("L-7A658B76", 100)
			w.pool().RootVolume.Type = "io2"
		}, blocks("VolumeQuota", "(L-09BD8365)"),
	},
	"no additional node needs no disk": {
		func(w *world) { w.quota("L-7A658B76", 100); w.noSurge() }, nil,
	},
	"one more cluster is possible": {
		func(w *world) { w.quota("L-1194D53C", 99) },
		warns("ClusterQuota", "(L-1194D53C): 99 of 100 are used: only one lost cluster could be recreated"),
	},
	"no further cluster is possible": {
		func(w *world) { w.quota("L-1194D53C", 100) },
		warns("ClusterQuota", "(L-1194D53C): 100 of 100 are used: a lost cluster could not be recreated"),
	},
	"not beyond a lowered quota": {
		func(w *world) { w.quota("L-1194D53C", 120) }, warns("ClusterQuota", "120 of 100"),
	},
	"the same in an upgrade of nodes only": {
		func(w *world) { w.nodesOnly(); w.noSurge(); w.quota("L-1194D53C", 100) }, warns("ClusterQuota", "100 of 100"),
	},
	"a pool without nodes adds none": {
		func(w *world) {
			w.pool().MinSize = 0
			w.facts.Groups["a"] = preflight.Group{Name: "g", Subnets: []string{"subnet-9"}}
			w.quota("L-1216C47A", 100)
		}, nil,
	},

	"a pool without an available instance type": {
		func(w *world) { w.facts.InstanceTypes = nil }, blocks("SurgeCapacity", "pool a: m7i.large, m7i.xlarge"),
	},
	"a pool with one available instance type": {
		func(w *world) { delete(w.facts.InstanceTypes, "m7i.xlarge") }, nil,
	},
	"a group with suspended launches": {
		func(w *world) {
			w.group(func(g *preflight.Group) { g.Suspended = []string{"AZRebalance", "Launch"} })
		}, blocks("SurgeCapacity", "pool a: Launch"),
	},
	"a process that updates suspend": {
		func(w *world) {
			w.group(func(g *preflight.Group) { g.Suspended = []string{"AZRebalance", "HealthCheck"} })
		}, nil,
	},
	"a group below its desired capacity": {
		func(w *world) {
			w.group(func(g *preflight.Group) {
				g.InService, g.Failure, g.FailedAt = 2, "no m7i.large in eu-central-1a", now.Add(-30*time.Hour)
			})
		},
		blocks("SurgeCapacity", "no m7i.large in eu-central-1a"),
	},
	"a recent failed launch": {
		func(w *world) {
			w.group(func(g *preflight.Group) { g.Failure, g.FailedAt = "no m7i.large", now.Add(-59*time.Minute) })
		}, warns("SurgeCapacity", "no m7i.large"),
	},
	"an old failed launch": {
		func(w *world) { w.group(func(g *preflight.Group) { g.Failure, g.FailedAt = "no m7i.large", old }) }, nil,
	},
	"no surge, and room on other nodes": {
		func(w *world) { w.noSurge() }, nil,
	},
	"no surge, and no room": {
		func(w *world) {
			w.noSurge()
			for i := range 3 {
				w.node(i).Requested.MilliCPU = 1500
			}
		},
		warns("SurgeCapacity", "its fullest node request 1.5 CPUs, 1.0 GiB and 5 pods, and its other nodes have 1.0 CPUs"),
	},
}

// versionCases are about add-ons, versions and images.
var versionCases = map[string]beforeCase{
	"an unhealthy add-on": {
		func(w *world) {
			w.facts.Addons[1].Status, w.facts.Addons[1].Issues = "DEGRADED", []string{"InsufficientNumberOfReplicas: 0"}
		},
		blocks("AddonsHealthy", "coredns is DEGRADED (InsufficientNumberOfReplicas: 0)"),
	},
	"an add-on whose last update failed": {
		func(w *world) { w.facts.Addons[1].Status = "UPDATE_FAILED" }, warns("AddonsHealthy", "coredns is UPDATE_FAILED"),
	},
	"an add-on's version that EKS does not offer with the target": {
		func(w *world) {
			w.plan.After.Spec.Addons[1].Version = "v9"
		}, blocks("AddonsCompatible", "coredns v9 is not a version that EKS offers for Kubernetes 1.36: v1.12.0"),
	},
	"an add-on that EKS lacks for the target": {
		func(w *world) { delete(w.facts.Compat, "coredns") }, blocks("AddonsCompatible", "EKS has no add-on coredns for Kubernetes 1.36"),
	},
	"an add-on behind the control plane": {
		func(w *world) {
			w.facts.Compat["coredns"] = []upgrade.AddonVersion{
				{Version: "v1.13.0", Kubernetes: []string{"1.36"}}, {Version: "v1.12.0", Kubernetes: []string{"1.35"}},
			}
			w.plan.After.Spec.Addons[1].Version = "v1.13.0"
		},
		warns("AddonsCompatible", "coredns is at v1.12.0 while the control plane is at 1.36"),
	},
	"an add-on that is updated before": {
		func(w *world) {
			w.facts.Compat["coredns"] = []upgrade.AddonVersion{
				{Version: "v1.12.5", Kubernetes: []string{"1.35", "1.36"}}, {Version: "v1.12.0", Kubernetes: []string{"1.35"}},
			}
			w.plan.After.Spec.Addons[1].Version = "v1.12.5"
			forced := map[string]string{"coredns": "v1.12.5"}
			w.plan.Steps[0].Addons = forced
			w.plan.Steps = append([]upgrade.Step{{Kind: upgrade.StepAddonsFirst, KubernetesVersion: "1.35", Addons: forced}}, w.plan.Steps...)
		}, nil,
	},
	"a foreign add-on": {
		func(w *world) {
			w.facts.Addons = append(w.facts.Addons, preflight.Addon{Name: "theirs", Version: "v1", Status: "ACTIVE"})
		},
		warns("AddonsCompatible", "EKS has no add-on theirs"),
	},

	"a version that EKS does not offer": {
		func(w *world) {
			w.facts.Catalog = w.facts.Catalog[:1]
		}, blocks("VersionOffered", "does not offer Kubernetes 1.36 in this region; it offers 1.35"),
	},
	"a version that EKS no longer offers": {
		func(w *world) { w.facts.Catalog[1].Status = "UNSUPPORTED" }, blocks("VersionOffered", "1.36"),
	},
	"every version of the upgrade must be offered": {
		func(w *world) {
			w.plan.Steps = append(w.plan.Steps, upgrade.Step{Kind: upgrade.StepNodes, KubernetesVersion: "1.37"})
		}, blocks("VersionOffered", "1.37"),
	},

	"a release supports one minor version before": {
		func(w *world) {
			w.from("1.34")
		}, blocks("UpgradeFrom", "release 1.36-1 supports upgrades from Kubernetes 1.35 or later, and the cluster runs 1.34"),
	},
	"the release allows the version of the cluster": {
		func(w *world) { w.from("1.34"); w.plan.UpgradeFrom = "1.34" }, nil,
	},
	"a rollback ignores upgradeFrom": {
		func(w *world) { w.from("1.33"); w.plan.Rollback = true }, nil,
	},

	"the target's support ends soon": {
		func(w *world) {
			w.facts.Catalog[1].EndOfStandard = now.AddDate(0, 0, 59)
		}, warns("SupportDates", "standard support of Kubernetes 1.36 ends 2027-01-20"),
	},
	"the target's support ends in sixty days": {
		func(w *world) { w.facts.Catalog[1].EndOfStandard = now.AddDate(0, 0, 60) }, nil,
	},
	"extended support of the target": {
		func(w *world) {
			w.facts.Catalog[1].Status, w.facts.Catalog[1].EndOfStandard = "EXTENDED_SUPPORT", old
		}, warns("SupportDates", "in extended support since 2026-11-22"),
	},

	"an absent image": {
		func(w *world) { delete(w.facts.Images, "ami-36") }, blocks("Images", "ami-36 of pool a does not exist"),
	},
	"an unavailable image": {
		func(w *world) { w.image(func(i *preflight.Image) { i.State = "disabled" }) }, blocks("Images", "is disabled"),
	},
	"an image for another processor": {
		func(w *world) { w.image(func(i *preflight.Image) { i.Architecture = "arm64" }) }, blocks("Images", "is for arm64, not for amd64"),
	},
	"an image newer than the control plane": {
		func(w *world) {
			w.image(func(i *preflight.Image) { i.Name = "amazon-eks-node-al2023-x86_64-standard-1.37-v20261101" })
		}, blocks("Images", "newer than Kubernetes 1.36"),
	},
	"an image that is too old": {
		func(w *world) {
			w.image(func(i *preflight.Image) { i.Name = "amazon-eks-node-al2023-x86_64-standard-1.32-v20250101" })
		}, blocks("Images", "too old for Kubernetes 1.36"),
	},
	"an older image": {
		func(w *world) {
			w.image(func(i *preflight.Image) { i.Name = "amazon-eks-node-al2023-arm64-standard-1.35-v20250101" })
		}, warns("Images", "older than Kubernetes 1.36"),
	},
	"a deprecated image": {
		func(w *world) { w.image(func(i *preflight.Image) { i.Deprecated = old }) }, warns("Images", "deprecated since 2026-11-22"),
	},
	"a custom image is not checked by its name": {
		func(w *world) { w.image(func(i *preflight.Image) { i.Name = "golden-42" }) }, nil,
	},
}

// alarmCases are about alarms.
var alarmCases = map[string]beforeCase{
	"a firing alarm": {
		func(w *world) {
			w.facts.Alarms[0] = preflight.Alarm{Name: "errors", State: "ALARM", Reason: "5 > 1", Since: old}
		},
		blocks("AlarmsQuiet", "in ALARM: errors since 2026-11-22T21:00:00Z (5 > 1)"),
	},
	"an absent alarm": {
		func(w *world) { w.facts.Alarms = nil }, blocks("AlarmsQuiet", "errors"),
	},
	"an alarm without the tag": {
		func(w *world) { w.facts.Alarms[0].Silence = false },
		warns("AlarmsSilenced", "their actions stay enabled during the upgrade, because they have no tag drover:silence=upgrade: errors"),
	},
	"a composite alarm": {
		func(w *world) {
			w.facts.Alarms[0].Silence, w.facts.Alarms[0].Composite = false, true
		}, warns("AlarmsSilenced", "errors (a composite alarm)"),
	},
	"an alarm with disabled actions": {
		func(w *world) { w.facts.Alarms[0].Silence, w.facts.Alarms[0].Actions = false, false }, nil,
	},
	"an alarm without data": {
		func(w *world) { w.facts.Alarms[0].State = "INSUFFICIENT_DATA" }, warns("AlarmsQuiet", "errors"),
	},
}
