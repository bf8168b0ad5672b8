package preflight_test

// Findings at the exact limits of the checks.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// limitCases are findings that begin or end exactly here.
var limitCases = map[string]beforeCase{
	"a system pod that does not run for ten minutes": {
		func(w *world) {
			w.pods(preflight.Pod{Namespace: "kube-system", Name: "x", State: "Pending", Since: now.Add(-10 * time.Minute)})
		}, blocks("SystemPods", "x is Pending"),
	},
	"a user's pod that does not run for ten minutes": {
		func(w *world) {
			w.pods(preflight.Pod{Namespace: "shop", Name: "x", State: "Pending", Since: now.Add(-10 * time.Minute)})
		}, warns("WorkloadPods", "shop/x is Pending"),
	},
	"a user's pod that does not run for nine minutes": {
		func(w *world) {
			w.pods(preflight.Pod{Namespace: "shop", Name: "x", State: "Pending", Since: now.Add(-9 * time.Minute)})
		}, nil,
	},
	"a budget whose pods are unhealthy for ten minutes": {
		func(w *world) { b := short; b.Since = now.Add(-10 * time.Minute); w.budget(b) }, blocks("BudgetsAllow", "while only 2 of 3"),
	},
	"a budget whose pods are missing": {
		func(w *world) { b := short; b.Unhealthy = 0; w.budget(b) }, warns("BudgetsAllow", "at the moment: 2 of 3"),
	},
	"five findings are all named": {
		func(w *world) {
			for _, name := range []string{"A", "B", "C", "D", "E"} {
				w.insight(preflight.Insight{Name: name, Status: "WARNING", Reason: "so"})
			}
		}, warns("Insights", "A: so, B: so, C: so, D: so, E: so"),
	},
	"an add-on without issues is named alone": {
		func(w *world) { w.facts.Addons[1].Status = "DEGRADED" }, blocks("AddonsHealthy", "coredns is DEGRADED"),
	},
	"pools of a later order share subnets": {
		func(w *world) {
			w.nodesOnly()
			w.quota("L-1216C47A", 0)
			w.secondPool(1)
			w.plan.After.Spec.Pools = append(w.plan.After.Spec.Pools, w.plan.After.Spec.Pools[1])
			w.plan.After.Spec.Pools[2].Name = "c"
			w.free(14, 20)
			w.group(func(g *preflight.Group) { g.Subnets = []string{"subnet-1"} })
			second := w.facts.Groups["b"]
			second.Subnets = []string{"subnet-2"}
			w.facts.Groups["b"], w.facts.Groups["c"] = second, second
		},
		warns("FreeAddresses", "14 are free: subnet-1 14, 2 nodes of pool b, c would be added and may need 30 addresses, with those for "+
			"pods, and 20 are free"),
	},
	"no additional node needs no known quota": {
		func(w *world) {
			w.noSurge()
			delete(w.facts.Quotas, "L-1216C47A")
			delete(w.facts.Quotas, "L-7A658B76")
		}, nil,
	},
	"spot alone needs no quota on demand": {
		func(w *world) { w.quota("L-34B43A08", 0); w.quota("L-1216C47A", 100); w.pool().Spot = &api.Spot{} }, nil,
	},
	"a first instance on demand needs its quota": {
		func(w *world) {
			w.quota("L-34B43A08", 0)
			w.quota("L-1216C47A", 100)
			w.pool().Spot = &api.Spot{OnDemandBase: 1}
		},
		blocks("InstanceQuota", "(L-1216C47A)"),
	},
	"a pool on demand alone needs no quota for spot": {
		func(w *world) { w.quota("L-34B43A08", 100); w.pool().Spot = &api.Spot{OnDemandPercentage: 100} }, nil,
	},
	"an old failed launch of a group that has its capacity": {
		func(w *world) {
			w.group(func(g *preflight.Group) {
				g.InService, g.Outdated, g.Failure, g.FailedAt = 2, []string{"i-1"}, "no m7i.large", old
			})
		}, nil,
	},
	"no surge, and exactly enough room": {
		func(w *world) {
			w.noSurge()
			w.node(0).Requested.MilliCPU = 1001
			w.node(1).Allocatable = preflight.Resources{MilliCPU: 1500, Memory: 3 << 29, Pods: 7}
			w.node(2).Allocatable = preflight.Resources{MilliCPU: 1501, Memory: 3 << 29, Pods: 8}
		}, nil,
	},
	"no surge, and no memory": {
		func(w *world) {
			w.noSurge()
			for i := range 3 {
				w.node(i).Requested.Memory = 4 << 30
			}
		}, warns("SurgeCapacity", "4.0 GiB and 5 pods, and its other nodes have 2.0 CPUs, 0.0 GiB and 48 pods free"),
	},
	"no surge, and no room for pods": {
		func(w *world) {
			w.noSurge()
			for i := range 3 {
				w.node(i).Requested.Pods = 29
			}
		}, warns("SurgeCapacity", "and 29 pods, and its other nodes have 2.0 CPUs, 6.0 GiB and 0 pods free"),
	},
	"an API without a removal version, which EKS only warns of": {
		func(w *world) {
			i := removedAPIs
			i.Status, i.Deprecations = "WARNING", []preflight.Deprecation{{API: "/apis/x/v1beta1/y"}}
			w.insight(i)
		}, warns("DeprecatedAPIs", "/apis/x/v1beta1/y"),
	},
	"insights of an hour ago": {func(w *world) { w.facts.InsightsRefreshed = now.Add(-time.Hour) }, nil},
	"offered versions are named in order": {
		func(w *world) {
			w.facts.Catalog = []preflight.Version{{Version: "1.36"}, {Version: "1.34"}, {Version: "1.35"}}
			w.plan.Steps = append(w.plan.Steps, upgrade.Step{Kind: upgrade.StepNodes, KubernetesVersion: "1.37"})
		}, blocks("VersionOffered", "does not offer Kubernetes 1.37 in this region; it offers 1.34, 1.35, 1.36"),
	},
	"a deadline in two days": {func(w *world) { w.plan.RollbackUntil = now.Add(48 * time.Hour) }, nil},
	"a deadline in less than two days": {
		func(w *world) { w.plan.RollbackUntil = now.Add(48*time.Hour - 1) }, warns("SupportDates", "EKS rolls the control plane back until"),
	},
	"an image three minors older": {
		func(w *world) {
			w.image(func(i *preflight.Image) { i.Name = "amazon-eks-node-al2023-x86_64-standard-1.33-v20250101" })
		},
		warns("Images", "older than Kubernetes 1.36"),
	},
}

// nextOf returns what to do about the findings of one check.
func nextOf(found []status.Check, name string) (next []string) {
	for _, c := range found {
		if c.Name == name {
			next = append(next, c.Next)
		}
	}
	return next
}

func TestWhatIsNext(t *testing.T) {
	t.Run("names the first recommendation of EKS", func(t *testing.T) {
		w := well()
		for _, recommendation := range []string{"", "first", "second"} {
			w.insight(preflight.Insight{Name: "A", Status: "ERROR", Recommendation: recommendation})
		}
		require.Equal(t, []string{"first"}, nextOf(preflight.Before(w.facts, w.plan), preflight.Insights))
	})
	t.Run("names the next version", func(t *testing.T) {
		w := well()
		w.from("1.34")
		require.Equal(t, []string{"Upgrade to a release of Kubernetes 1.35 first."},
			nextOf(preflight.Before(w.facts, w.plan), preflight.UpgradeFrom))
	})
	t.Run("names the pools to roll", func(t *testing.T) {
		w, before := upgradedWorld()
		w.secondPool(0)
		w.secondPool(0)
		w.plan.After.Spec.Pools[2].Name, w.facts.Groups["c"] = "c", w.facts.Groups["a"]
		w.group(func(g *preflight.Group) { g.Outdated = []string{"i-1"} })
		w.node(0).Kubelet, w.node(1).Kubelet, w.node(1).Pool = "v1.35.1", "v1.35.1", "b"
		require.Equal(t, []string{
			"Find out which image and launch template the instances have, then roll their pools: `drover roll demo a`, `drover roll demo b`.",
		}, nextOf(preflight.After(before, w.facts, w.plan), preflight.NodesReplaced))
	})
}

func TestSkewOfUpdatedKubeProxies(t *testing.T) {
	w := well()
	w.facts.Survey.KubeProxies = []string{"v1.33.0"}
	w.plan.Steps = append(w.plan.Steps[:2], upgrade.Step{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.37"})
	require.Empty(t, nextOf(preflight.Before(w.facts, w.plan), preflight.KubeletSkew), "the step of the add-ons brings v1.36")
	w.plan.Steps[1].Kind = upgrade.StepControlPlane
	require.Len(t, nextOf(preflight.Before(w.facts, w.plan), preflight.KubeletSkew), 1)
}
