package preflight_test

// The findings after an upgrade.

import (
	"testing"

	"github.com/drover-run/drover/shared/preflight"
)

// upgradedWorld is the world after a successful upgrade.
func upgradedWorld() (*world, preflight.Baseline) {
	w := well()
	before := w.facts.Baseline()
	w.facts.ControlPlane.Version = "1.36"
	w.facts.Addons[0].Version = "v1.36.0-eksbuild.1"
	for i := range w.facts.Survey.Nodes {
		w.node(i).Kubelet = "v1.36.3-eks-1"
	}
	return w, before
}

func TestAfter(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *world)
		want  []finding
	}{
		"success": {func(*world) {}, nil},
		"the health checks of before": {
			func(w *world) {
				w.node(0).Ready = false
				w.facts.Alarms[0].State, w.facts.Alarms[0].Reason = "ALARM", "5 > 1"
			}, []finding{{"NodesReady", true, "n0"}, {"AlarmsQuiet", true, "errors"}},
		},
		"the control plane was not upgraded": {
			func(w *world) { w.facts.ControlPlane.Version = "1.35" },
			blocks("VersionsReached", "the control plane is at 1.35, not 1.36"),
		},
		"an add-on was not updated": {
			func(w *world) {
				w.facts.Addons[0].Version = "v1.35.0-eksbuild.1"
			}, blocks("VersionsReached", "add-on kube-proxy is at v1.35.0-eksbuild.1, not v1.36.0-eksbuild.1"),
		},
		"an add-on is missing": {
			func(w *world) { w.facts.Addons = w.facts.Addons[:1] }, blocks("VersionsReached", "add-on coredns is not installed"),
		},
		"an add-on of any version exists": {
			func(w *world) { w.plan.After.Spec.Addons[1].Version = "" }, nil,
		},
		"a node came up with the wrong version": {
			func(w *world) { w.node(1).Kubelet = "v1.35.5-eks-1" }, blocks("NodesReplaced", "n1 of pool a has kubelet v1.35.5-eks-1"),
		},
		"a node came up newer than the control plane": {
			func(w *world) { w.node(1).Kubelet = "v1.37.0"; w.plan.Steps = nil }, blocks("NodesReplaced", "n1"),
		},
		"a node of an older image, by its name": {
			func(w *world) {
				w.node(1).Kubelet = "v1.35.5"
				w.pool().ImageID = "ami-35"
			}, warns("NodesReplaced", "n1 of pool a has kubelet v1.35.5"),
		},
		"a leaving node is not checked": {
			func(w *world) { w.node(1).Kubelet, w.node(1).Leaving = "v1.35.5-eks-1", true }, nil,
		},
		"a node without a pool is not checked": {
			func(w *world) { w.stranger("v1.34.0") }, nil,
		},
		"an instance was not replaced": {
			func(w *world) {
				w.group(func(g *preflight.Group) { g.Outdated = []string{"i-1"} })
			}, blocks("NodesReplaced", "pool a has 1 instance of an older launch template: i-1"),
		},
		"an instance has another image": {
			func(w *world) {
				w.group(func(g *preflight.Group) { g.Instances = []string{"i-1", "i-2"} })
				w.facts.ImageOfInstance = map[string]string{"i-1": "ami-36", "i-2": "ami-35"}
			},
			blocks("NodesReplaced", "i-2 of pool a was started from ami-35, not from ami-36"),
		},
		"an add-on is unhealthy": {
			func(w *world) { w.facts.Addons[1].Status = "DEGRADED" }, blocks("AddonsHealthy", "coredns is DEGRADED"),
		},
		"a node that should be replaced is not": {
			func(w *world) {
				w.group(func(g *preflight.Group) { g.Outdated = []string{"i-1"} })
				w.plan.Steps = w.plan.Steps[:2]
			}, nil,
		},
		"a workload has fewer ready pods": {
			func(w *world) { w.workload(2, 4) }, blocks("WorkloadsReady", "Deployment shop/web: 2 of 4 ready, 3 of 4 before"),
		},
		"a workload lacks as many pods as before": {
			func(w *world) { w.workload(3, 4) }, nil,
		},
		"a workload was scaled up and waits for its pods": {
			func(w *world) { w.workload(3, 9) }, nil,
		},
		"a workload was scaled down and lacks as many pods": {
			func(w *world) { w.workload(1, 2) }, nil,
		},
		"a node three minors older, as its image": {
			func(w *world) { w.node(1).Kubelet = "v1.33.5"; w.plan.Steps = nil }, warns("NodesReplaced", "n1 of pool a has kubelet v1.33.5"),
		},
		"a node four minors older": {
			func(w *world) { w.node(1).Kubelet = "v1.32.5"; w.plan.Steps = nil }, blocks("NodesReplaced", "n1 of pool a has kubelet v1.32.5"),
		},
		"a workload was scaled down": {
			func(w *world) { w.workload(1, 1) }, nil,
		},
		"a workload was deleted, and another is new": {
			func(w *world) {
				w.facts.Survey.Workloads[1] = preflight.Workload{Kind: "Deployment", Namespace: "shop", Name: "new", Desired: 3}
			}, nil,
		},
		"an unreachable cluster has only AWS findings": {
			func(w *world) { w.facts.Unreachable, w.facts.Survey = "no route", preflight.Survey{} }, blocks("ControlPlaneHealthy", "no route"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, before := upgradedWorld()
			before.Workloads = append([]preflight.Workload(nil), before.Workloads...)
			c.spoil(w)
			requireFindings(t, c.want, preflight.After(before, w.facts, w.plan))
		})
	}
}
