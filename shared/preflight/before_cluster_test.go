package preflight_test

// Findings about the cluster and its workloads.

import (
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
)

// Findings of several cases.
var (
	never = preflight.Budget{
		Namespace: "shop", Name: "web", Rule: "minAvailable 3", Expected: 3, Desired: 3, Healthy: 3, Covered: map[string]int{"a": 3},
	}
	short = preflight.Budget{
		Namespace: "shop", Name: "web", Rule: "maxUnavailable 1", Expected: 3, Desired: 2, Healthy: 2, Covered: map[string]int{"a": 2},
		Unhealthy: 1, Since: old,
	}
	hook = preflight.Webhook{
		Configuration: "ValidatingWebhookConfiguration policy", Name: "v.example.com", Service: "policy/webhook", Matches: []string{"evictions"},
	}
	removedAPIs = preflight.Insight{Name: "Deprecated APIs", KubernetesVersion: "1.36", Status: "ERROR", Deprecations: []preflight.Deprecation{
		{API: "/apis/x/v1beta1/y", ReplacedWith: "/apis/x/v1/y", RemovedIn: "1.36", Clients: []string{"old-controller/v1"}},
	}}
)

// healthCases are about the control plane, the nodes and the system's pods.
var healthCases = map[string]beforeCase{
	"an EKS cluster with an operation in flight": {
		func(w *world) { w.facts.ControlPlane.Status = "UPDATING" }, blocks("ControlPlaneHealthy", "the EKS cluster is UPDATING"),
	},
	"an issue that EKS reports": {
		func(w *world) {
			w.facts.ControlPlane.Issues = []string{"Ec2SubnetNotFound: absent"}
		}, blocks("ControlPlaneHealthy", "1 issue: Ec2SubnetNotFound: absent"),
	},
	"an unreachable cluster has only AWS findings": {
		func(w *world) {
			w.facts.Unreachable, w.facts.Survey = "connection refused", preflight.Survey{}
		},
		blocks("ControlPlaneHealthy", "connection refused"),
	},
	"an API server that fails its own checks": {
		func(w *world) { w.facts.Survey.Unhealthy = []string{"etcd"} }, blocks("ControlPlaneHealthy", "/readyz): etcd"),
	},

	"one of three nodes not Ready": {
		func(w *world) {
			w.node(1).Ready, w.node(1).Message = false, "no heartbeat"
		}, blocks("NodesReady", "1 of 3 nodes not Ready: n1 since 2026-11-22T21:00:00Z (no heartbeat)"),
	},
	"one of ten nodes not Ready": {
		func(w *world) { w.manyNodes(10); w.node(1).Ready = false }, warns("NodesReady", "1 of 10 nodes"),
	},
	"two of eleven nodes not Ready": {
		func(w *world) { w.manyNodes(11); w.node(1).Ready = false; w.node(2).Ready = false }, blocks("NodesReady", "2 of 11 nodes"),
	},
	"a node that has just registered": {
		func(w *world) { w.node(1).Ready, w.node(1).Created = false, now.Add(-9*time.Minute) }, nil,
	},
	"a node that registered ten minutes ago": {
		func(w *world) { w.node(1).Ready, w.node(1).Created = false, now.Add(-10*time.Minute) }, blocks("NodesReady", "n1"),
	},

	"a cordoned node of a pool": {
		func(w *world) { w.node(0).Cordoned = true }, blocks("NodesCordoned", "1 node: n0"),
	},
	"a cordoned node that is leaving": {
		func(w *world) { w.node(0).Cordoned, w.node(0).Leaving = true, true }, nil,
	},
	"a cordoned node without a pool": {
		func(w *world) { w.node(0).Cordoned, w.node(0).Pool = true, "" }, warns("NodesCordoned", "n0"),
	},
	"a cordoned node while no nodes are replaced": {
		func(w *world) { w.node(0).Cordoned = true; w.plan.Steps = w.plan.Steps[:2] }, warns("NodesCordoned", "n0"),
	},

	"a system Deployment with a pod that does not run": {
		func(w *world) {
			w.pods(preflight.Pod{Namespace: "kube-system", Name: "coredns-1", Workload: "Deployment coredns", State: "CrashLoopBackOff", Since: old})
		},
		blocks("SystemPods", "coredns-1 is CrashLoopBackOff"),
	},
	"a system pod without a workload": {
		func(w *world) {
			w.pods(preflight.Pod{Namespace: "kube-system", Name: "x", State: "Pending", Since: old})
		}, blocks("SystemPods", "x is Pending"),
	},
	"two pods of a DaemonSet of twenty": {
		func(w *world) { w.daemons(2) }, warns("SystemPods", "2 pods of kube-system, at most a tenth"),
	},
	"three pods of a DaemonSet of twenty": {
		func(w *world) { w.daemons(3) }, blocks("SystemPods", "3 pods of kube-system"),
	},
	"a system pod that has just started": {
		func(w *world) {
			w.pods(preflight.Pod{Namespace: "kube-system", Name: "x", State: "Pending", Since: now.Add(-9 * time.Minute)})
		}, nil,
	},
	"a pod on a node that is not Ready": {
		func(w *world) {
			w.manyNodes(10)
			w.node(1).Ready = false
			w.pods(preflight.Pod{Namespace: "kube-system", Name: "x", Node: "n1", State: "NotReady", Since: old})
		},
		warns("NodesReady", "n1"),
	},
	"users' pods that do not run": {
		func(w *world) {
			w.pods(preflight.Pod{
				Namespace: "shop", Name: "web-1", State: "Pending", Since: old,
			}, preflight.Pod{Namespace: "shop", Name: "web-2", State: "NotReady", Since: old})
		},
		warns("WorkloadPods", "1 pod not running: shop/web-1 is Pending"),
	},
}

// budgetCases are about disruption budgets.
var budgetCases = map[string]beforeCase{
	"a budget that needs all of its pods": {
		func(w *world) {
			w.budget(never)
		}, blocks("BudgetsAllow", "shop/web (minAvailable 3) can never allow a disruption: it requires 3 of 3 pods"),
	},
	"a budget that needs more pods than exist": {
		func(w *world) { b := never; b.Expected, b.Healthy = 1, 1; w.budget(b) }, blocks("BudgetsAllow", "it requires 3 of 1 pods"),
	},
	"its pods are deleted with Force": {
		func(w *world) { w.budget(never); w.pool().Drain.OnTimeout = api.OnTimeoutForce }, warns("BudgetsAllow", "against their budgets"),
	},
	"it does not matter while no node is replaced": {
		func(w *world) { w.budget(never); w.plan.Steps = w.plan.Steps[:2] }, nil,
	},
	"not without pods on a pool's node": {
		func(w *world) { b := never; b.Covered = nil; w.budget(b) }, nil,
	},
	"a removed pool waits by default": {
		func(w *world) {
			b := never
			b.Covered = map[string]int{"deleted": 1}
			w.budget(b)
			w.pool().Drain.OnTimeout = api.OnTimeoutForce
		},
		blocks("BudgetsAllow", "shop/web"),
	},
	"a budget whose pods have been unhealthy for long": {
		func(w *world) { w.budget(short) }, blocks("BudgetsAllow", "while only 2 of 3 pods are healthy, since 2026-11-22T21:00:00Z"),
	},
	"a budget whose pods have just become unhealthy": {
		func(w *world) {
			b := short
			b.Since = now.Add(-time.Minute)
			w.budget(b)
		}, warns("BudgetsAllow", "at the moment: 2 of 3 pods are healthy"),
	},
	"a budget that allows one": {
		func(w *world) { b := short; b.Healthy, b.Allowed = 3, 1; w.budget(b) }, nil,
	},
	"a budget that has just changed": {
		func(w *world) { b := never; b.Stale = true; w.budget(b) }, warns("BudgetsAllow", "was just changed"),
	},
	"a budget of pods without a scalable owner": {
		func(w *world) { b := never; b.Expected, b.Desired = 0, 0; w.budget(b) }, blocks("BudgetsAllow", "counts none of its pods"),
	},
	"a budget that the controller cannot compute": {
		func(w *world) {
			b := short
			b.Failed = "found no controllers for pod"
			w.budget(b)
		}, blocks("BudgetsAllow", "found no controllers for pod"),
	},
	"a budget that selects nothing": {
		func(w *world) {
			w.budget(preflight.Budget{Namespace: "shop", Name: "typo", Rule: "minAvailable 1"})
		}, warns("BudgetsAllow", "select no pod: shop/typo"),
	},
	"a pod under two budgets": {
		func(w *world) {
			w.facts.Survey.Overlaps = []preflight.Overlap{{Namespace: "shop", Pod: "web-1", Pool: "a", Budgets: []string{"web", "all"}}}
		},
		blocks("BudgetsAllow", "pod shop/web-1 is under web, all"),
	},
}

// apiCases are about APIs, kubelets and webhooks.
var apiCases = map[string]beforeCase{
	"an API in use that the target lacks": {
		func(w *world) {
			w.insight(removedAPIs)
		}, blocks("DeprecatedAPIs", "/apis/x/v1beta1/y, removed in 1.36, used by old-controller/v1, replaced with /apis/x/v1/y"),
	},
	"an API that a later version removes": {
		func(w *world) {
			i := removedAPIs
			i.Status, i.Deprecations = "WARNING", []preflight.Deprecation{{API: "/apis/x/v1beta1/y", RemovedIn: "1.38"}}
			w.insight(i)
		},
		warns("DeprecatedAPIs", "removed in 1.38"),
	},
	"an API without a removal version": {
		func(w *world) {
			i := removedAPIs
			i.Deprecations = []preflight.Deprecation{{API: "/apis/x/v1beta1/y"}}
			w.insight(i)
		},
		blocks("DeprecatedAPIs", "/apis/x/v1beta1/y"),
	},
	"an insight that is an error": {
		func(w *world) {
			w.insight(preflight.Insight{
				Name: "Cluster health issues", KubernetesVersion: "1.36", Status: "ERROR", Reason: "bad", Recommendation: "fix it",
				Resources: []string{"arn:x"},
			})
		},
		blocks("Insights", "Cluster health issues: bad (arn:x)"),
	},
	"insights with WARNING and UNKNOWN": {
		func(w *world) {
			w.insight(preflight.Insight{Name: "A", Status: "WARNING", Reason: "so"})
			w.insight(preflight.Insight{Name: "B", Status: "UNKNOWN", Reason: "who knows"})
		},
		warns("Insights", "A: so, B: who knows"),
	},
	"insights of yesterday": {
		func(w *world) {
			w.facts.InsightsRefreshed = now.Add(-23 * time.Hour)
		}, warns("Insights", "EKS checked last at 2026-11-21T23:00:00Z, 23h0m0s ago"),
	},
	"insights of ten minutes ago": {func(w *world) { w.facts.InsightsRefreshed = now.Add(-10 * time.Minute) }, nil},
	"an insight for a version beyond the target": {
		func(w *world) { w.insight(preflight.Insight{Name: "A", KubernetesVersion: "1.37", Status: "ERROR"}) }, nil,
	},

	"a foreign node, three minors older": {
		func(w *world) { w.stranger("v1.33.1") }, nil,
	},
	"a foreign node, four minors older": {
		func(w *world) {
			w.stranger("v1.32.1")
		}, blocks("KubeletSkew", "kubelet of stranger (v1.32.1) is more than 3 minor versions older than the control plane at 1.36"),
	},
	"a pool's kubelet, four minors older": {
		func(w *world) { w.node(0).Kubelet = "v1.32.1" }, blocks("KubeletSkew", "kubelet of n0"),
	},
	"a kubelet newer than the control plane": {
		func(w *world) { w.stranger("v1.36.0") }, blocks("KubeletSkew", "is newer than the control plane at 1.35"),
	},
	"a kube-proxy older than three minors": {
		func(w *world) {
			w.facts.Survey.KubeProxies = []string{"v1.32.0"}
		}, blocks("KubeletSkew", "kube-proxy v1.32.0 (v1.32.0) is more than 3 minor versions older"),
	},
	"an invalid version is not checked": {
		func(w *world) { w.stranger("custom"); w.facts.Survey.KubeProxies = []string{"latest"} }, nil,
	},

	"a webhook without a ready endpoint": {
		func(w *world) { w.facts.Survey.Webhooks = []preflight.Webhook{hook} },
		blocks("Webhooks", "v.example.com of ValidatingWebhookConfiguration policy (service policy/webhook, called for evictions)"),
	},
	"a webhook with one ready endpoint": {
		func(w *world) { h := hook; h.Endpoints = 1; w.facts.Survey.Webhooks = []preflight.Webhook{h} }, warns("Webhooks", "one ready endpoint"),
	},
	"a webhook with two ready endpoints": {
		func(w *world) { h := hook; h.Endpoints = 2; w.facts.Survey.Webhooks = []preflight.Webhook{h} }, nil,
	},
}
