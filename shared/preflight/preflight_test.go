package preflight_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

var (
	now = time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC)
	old = now.Add(-time.Hour)
)

// world is a cluster that is well, and the plan of an upgrade from 1.35 to 1.36 with room for it: nothing is found. Each case spoils it.
type world struct {
	facts *preflight.Facts
	plan  *preflight.Plan
}

func well() *world {
	spec := func(version, proxy, image string) *api.Cluster {
		c := &api.Cluster{}
		c.Spec.KubernetesVersion = version
		c.Spec.ControlPlane.SupportType = api.SupportStandard
		c.Spec.Addons = []api.Addon{{Name: "kube-proxy", Version: proxy}, {Name: "coredns", Version: "v1.12.0"}}
		c.Spec.Pools = []api.Pool{{
			Name: "a", InstanceTypes: []string{"m7i.large", "m7i.xlarge"}, Architecture: api.AMD64, MinSize: 2, MaxSize: 4, ImageID: image,
			Update: api.Update{MaxSurge: "1", MaxUnavailable: "0"}, Drain: api.Drain{OnTimeout: api.OnTimeoutWait},
		}}
		return c
	}
	w := &world{
		plan: &preflight.Plan{
			Cluster: "demo",
			From:    upgrade.Target{Release: "1.35-1", KubernetesVersion: "1.35"}, To: upgrade.Target{Release: "1.36-1", KubernetesVersion: "1.36"},
			Steps: []upgrade.Step{
				{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36"}, {Kind: upgrade.StepAddons, KubernetesVersion: "1.36"}, {Kind: upgrade.StepNodes, KubernetesVersion: "1.36"},
			},
			Before: spec("1.35", "v1.35.0-eksbuild.1", "ami-35"), After: spec("1.36", "v1.36.0-eksbuild.1", "ami-36"), Alarms: []string{"errors"},
		},
		facts: &preflight.Facts{
			Taken:        now,
			ControlPlane: preflight.ControlPlane{Version: "1.35", Status: "ACTIVE", Subnets: []string{"subnet-1", "subnet-2"}},
			Addons:       []preflight.Addon{{Name: "kube-proxy", Version: "v1.35.0-eksbuild.1", Status: "ACTIVE"}, {Name: "coredns", Version: "v1.12.0", Status: "ACTIVE"}},
			Catalogue: []preflight.Version{
				{Version: "1.35", Status: "STANDARD_SUPPORT", EndOfStandard: now.AddDate(0, 4, 0)}, {Version: "1.36", Status: "STANDARD_SUPPORT", EndOfStandard: now.AddDate(1, 0, 0)},
			},
			Compat: upgrade.Compat{
				"kube-proxy": {{Version: "v1.36.0-eksbuild.1", Kubernetes: []string{"1.36"}}, {Version: "v1.35.0-eksbuild.1", Kubernetes: []string{"1.35", "1.36"}}},
				"coredns":    {{Version: "v1.12.0", Kubernetes: []string{"1.35", "1.36"}}},
			},
			Groups:  map[string]preflight.Group{"a": {Name: "drover-demo-pool-a", Desired: 3, InService: 3, Subnets: []string{"subnet-1", "subnet-2"}}},
			Subnets: map[string]preflight.Subnet{"subnet-1": {ID: "subnet-1", Free: 100}, "subnet-2": {ID: "subnet-2", Free: 100}},
			Images: map[string]preflight.Image{
				"ami-36": {ID: "ami-36", Name: "amazon-eks-node-al2023-x86_64-standard-1.36-v20261101", Architecture: "x86_64", State: "available"},
				"ami-35": {ID: "ami-35", Name: "amazon-eks-node-al2023-x86_64-standard-1.35-v20261101", Architecture: "x86_64", State: "available"},
			},
			InstanceTypes: map[string]preflight.InstanceType{"m7i.large": {Name: "m7i.large", VCPUs: 2, Addresses: 10}, "m7i.xlarge": {Name: "m7i.xlarge", VCPUs: 4, Addresses: 15}},
			Quotas:        map[string]preflight.Quota{"L-1216C47A": {Code: "L-1216C47A", Name: "Running On-Demand Standard instances", Limit: 100, Used: 96}},
			Alarms:        []preflight.Alarm{{Name: "errors", State: "OK"}},
		},
	}
	for i := range 3 {
		w.facts.Survey.Nodes = append(w.facts.Survey.Nodes, preflight.Node{
			Name: fmt.Sprintf("n%d", i), Pool: "a", Ready: true, Created: old, Since: old, Kubelet: "v1.35.5-eks-1",
			Requested: preflight.Resources{MilliCPU: 1000, Memory: 1 << 30, Pods: 5}, Allocatable: preflight.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 29},
		})
	}
	w.facts.Survey.KubeProxies = []string{"v1.35.0-eksbuild.1"}
	w.facts.Survey.Workloads = []preflight.Workload{
		{Kind: "DaemonSet", Namespace: "kube-system", Name: "aws-node", Desired: 20, Ready: 20}, {Kind: "Deployment", Namespace: "shop", Name: "web", Desired: 4, Ready: 3},
	}
	return w
}

func (w *world) node(i int) *preflight.Node { return &w.facts.Survey.Nodes[i] }
func (w *world) pool() *api.Pool            { return &w.plan.After.Spec.Pools[0] }
func (w *world) budget(b preflight.Budget) {
	w.facts.Survey.Budgets = append(w.facts.Survey.Budgets, b)
}
func (w *world) insight(i preflight.Insight) {
	w.facts.Insights = append(w.facts.Insights, i)
}

// nodesOnly leaves the control plane where it is.
func (w *world) nodesOnly() { w.plan.Steps = w.plan.Steps[2:]; w.plan.From.KubernetesVersion = "1.36" }

// said is a finding: its name, whether it blocks, and words of its message.
type said struct {
	name   string
	blocks bool
	words  string
}

func blocks(name, words string) []said { return []said{{name, true, words}} }
func warns(name, words string) []said  { return []said{{name, false, words}} }

func requireSaid(t *testing.T, want []said, got []status.Check) {
	t.Helper()
	require.Len(t, got, len(want), "%+v", got)
	for i, w := range want {
		require.Equal(t, w.name, got[i].Name, "%+v", got[i])
		require.Equal(t, w.blocks, got[i].Blocks, "%+v", got[i])
		require.Contains(t, got[i].Message, w.words)
		require.NotEmpty(t, got[i].Next, "what to do")
	}
	for _, c := range got {
		require.Less(t, len(c.Message), 1000, "a status is for reading")
	}
}

func TestNothingIsFoundInAClusterThatIsWell(t *testing.T) {
	w := well()
	require.Empty(t, preflight.Before(w.facts, w.plan))
	require.False(t, preflight.Blocks(nil))
}

func TestBefore(t *testing.T) {
	never := preflight.Budget{Namespace: "shop", Name: "web", Rule: "minAvailable 3", Expected: 3, Desired: 3, Healthy: 3, Covered: map[string]int{"a": 3}}
	short := preflight.Budget{Namespace: "shop", Name: "web", Rule: "maxUnavailable 1", Expected: 3, Desired: 2, Healthy: 2, Covered: map[string]int{"a": 2}, Unhealthy: 1, Since: old}
	hook := preflight.Webhook{Configuration: "ValidatingWebhookConfiguration policy", Name: "v.example.com", Service: "policy/webhook", Matches: []string{"evictions"}}
	removed := preflight.Insight{Name: "Deprecated APIs", KubernetesVersion: "1.36", Status: "ERROR", Deprecations: []preflight.Deprecation{
		{API: "/apis/x/v1beta1/y", ReplacedWith: "/apis/x/v1/y", Gone: "1.36", Clients: []string{"old-controller/v1"}},
	}}
	for name, c := range map[string]struct {
		spoil func(w *world)
		want  []said
	}{
		"an EKS cluster that is busy is not touched": {
			func(w *world) { w.facts.ControlPlane.Status = "UPDATING" }, blocks("ControlPlaneHealthy", "the EKS cluster is UPDATING"),
		},
		"what EKS calls an issue fails its updates": {
			func(w *world) { w.facts.ControlPlane.Issues = []string{"Ec2SubnetNotFound: gone"} }, blocks("ControlPlaneHealthy", "1 issue: Ec2SubnetNotFound: gone"),
		},
		"of a cluster that does not answer nothing else is said that would need it": {
			func(w *world) {
				w.facts.Unreachable, w.facts.Survey = "connection refused", preflight.Survey{}
			},
			blocks("ControlPlaneHealthy", "connection refused"),
		},
		"an API server that fails its own checks": {
			func(w *world) { w.facts.Survey.Unhealthy = []string{"etcd"} }, blocks("ControlPlaneHealthy", "/readyz): etcd"),
		},

		"one of three nodes not Ready is much": {
			func(w *world) { w.node(1).Ready, w.node(1).Message = false, "no heartbeat" }, blocks("NodesReady", "1 of 3 nodes not Ready: n1 since 2026-11-22T21:00:00Z (no heartbeat)"),
		},
		"one of ten is told": {
			func(w *world) { w.manyNodes(10); w.node(1).Ready = false }, warns("NodesReady", "1 of 10 nodes"),
		},
		"two of eleven are too many": {
			func(w *world) { w.manyNodes(11); w.node(1).Ready = false; w.node(2).Ready = false }, blocks("NodesReady", "2 of 11 nodes"),
		},
		"a node that has just registered may take its time": {
			func(w *world) { w.node(1).Ready, w.node(1).Created = false, now.Add(-9*time.Minute) }, nil,
		},
		"but no longer than ten minutes": {
			func(w *world) { w.node(1).Ready, w.node(1).Created = false, now.Add(-10*time.Minute) }, blocks("NodesReady", "n1"),
		},

		"a node that a person cordoned is not replaced under their hands": {
			func(w *world) { w.node(0).Cordoned = true }, blocks("NodesCordoned", "1 node: n0"),
		},
		"one that drover or an autoscaler takes away is nobody's": {
			func(w *world) { w.node(0).Cordoned, w.node(0).Leaving = true, true }, nil,
		},
		"one that is not of a pool is only told": {
			func(w *world) { w.node(0).Cordoned, w.node(0).Pool = true, "" }, warns("NodesCordoned", "n0"),
		},
		"and so is any while no nodes are replaced": {
			func(w *world) { w.node(0).Cordoned = true; w.plan.Steps = w.plan.Steps[:2] }, warns("NodesCordoned", "n0"),
		},

		"a system Deployment with a pod that does not run": {
			func(w *world) {
				w.pods(preflight.Pod{Namespace: "kube-system", Name: "coredns-1", Workload: "Deployment coredns", State: "CrashLoopBackOff", Since: old})
			},
			blocks("SystemPods", "coredns-1 is CrashLoopBackOff"),
		},
		"a system pod of nobody": {
			func(w *world) {
				w.pods(preflight.Pod{Namespace: "kube-system", Name: "x", State: "Pending", Since: old})
			}, blocks("SystemPods", "x is Pending"),
		},
		"two of a DaemonSet of twenty are told": {
			func(w *world) { w.daemons(2) }, warns("SystemPods", "2 pods of kube-system, at most a tenth"),
		},
		"three are too many": {
			func(w *world) { w.daemons(3) }, blocks("SystemPods", "3 pods of kube-system"),
		},
		"a system pod that has just started may take its time": {
			func(w *world) {
				w.pods(preflight.Pod{Namespace: "kube-system", Name: "x", State: "Pending", Since: now.Add(-9 * time.Minute)})
			}, nil,
		},
		"a pod on a node that is not Ready counts for its node": {
			func(w *world) {
				w.manyNodes(10)
				w.node(1).Ready = false
				w.pods(preflight.Pod{Namespace: "kube-system", Name: "x", Node: "n1", State: "NotReady", Since: old})
			},
			warns("NodesReady", "n1"),
		},
		"other people's pods that do not run are told": {
			func(w *world) {
				w.pods(preflight.Pod{Namespace: "shop", Name: "web-1", State: "Pending", Since: old}, preflight.Pod{Namespace: "shop", Name: "web-2", State: "NotReady", Since: old})
			},
			warns("WorkloadPods", "1 pod not running: shop/web-1 is Pending"),
		},

		"a budget that wants all of its pods": {
			func(w *world) { w.budget(never) }, blocks("BudgetsAllow", "shop/web (minAvailable 3) can never allow a disruption: it wants 3 of 3 pods"),
		},
		"a budget that wants more than there are": {
			func(w *world) { b := never; b.Expected, b.Healthy = 1, 1; w.budget(b) }, blocks("BudgetsAllow", "it wants 3 of 1 pods"),
		},
		"its pods are taken where the pool's drain forces": {
			func(w *world) { w.budget(never); w.pool().Drain.OnTimeout = api.OnTimeoutForce }, warns("BudgetsAllow", "against their budgets"),
		},
		"it stands in nobody's way where no node is replaced": {
			func(w *world) { w.budget(never); w.plan.Steps = w.plan.Steps[:2] }, nil,
		},
		"nor where none of its pods is on a pool's node": {
			func(w *world) { b := never; b.Covered = nil; w.budget(b) }, nil,
		},
		"a pool that is no longer in the spec waits as pools do": {
			func(w *world) {
				b := never
				b.Covered = map[string]int{"gone": 1}
				w.budget(b)
				w.pool().Drain.OnTimeout = api.OnTimeoutForce
			},
			blocks("BudgetsAllow", "shop/web"),
		},
		"a budget whose pods have been unhealthy for long": {
			func(w *world) { w.budget(short) }, blocks("BudgetsAllow", "while only 2 of 3 pods are healthy, since 2026-11-22T21:00:00Z"),
		},
		"and one whose pods just became so": {
			func(w *world) { b := short; b.Since = now.Add(-time.Minute); w.budget(b) }, warns("BudgetsAllow", "at the moment: 2 of 3 pods are healthy"),
		},
		"a budget that allows one": {
			func(w *world) { b := short; b.Healthy, b.Allowed = 3, 1; w.budget(b) }, nil,
		},
		"a budget that was changed a moment ago": {
			func(w *world) { b := never; b.Stale = true; w.budget(b) }, warns("BudgetsAllow", "was just changed"),
		},
		"a budget of pods that nothing keeps running": {
			func(w *world) { b := never; b.Expected, b.Desired = 0, 0; w.budget(b) }, blocks("BudgetsAllow", "counts none of its pods"),
		},
		"a budget that the controller cannot work out": {
			func(w *world) { b := short; b.Failed = "found no controllers for pod"; w.budget(b) }, blocks("BudgetsAllow", "found no controllers for pod"),
		},
		"a budget that selects nothing": {
			func(w *world) { w.budget(preflight.Budget{Namespace: "shop", Name: "typo", Rule: "minAvailable 1"}) }, warns("BudgetsAllow", "select no pod: shop/typo"),
		},
		"a pod under two budgets": {
			func(w *world) {
				w.facts.Survey.Overlaps = []preflight.Overlap{{Namespace: "shop", Pod: "web-1", Pool: "a", Budgets: []string{"web", "all"}}}
			},
			blocks("BudgetsAllow", "pod shop/web-1 is under web, all"),
		},

		"an API in use that the target has not": {
			func(w *world) { w.insight(removed) }, blocks("DeprecatedAPIs", "/apis/x/v1beta1/y, gone in 1.36, used by old-controller/v1, replaced with /apis/x/v1/y"),
		},
		"one that goes later": {
			func(w *world) {
				i := removed
				i.Status, i.Deprecations = "WARNING", []preflight.Deprecation{{API: "/apis/x/v1beta1/y", Gone: "1.38"}}
				w.insight(i)
			},
			warns("DeprecatedAPIs", "gone in 1.38"),
		},
		"one of which EKS does not say when counts as EKS has it": {
			func(w *world) {
				i := removed
				i.Deprecations = []preflight.Deprecation{{API: "/apis/x/v1beta1/y"}}
				w.insight(i)
			},
			blocks("DeprecatedAPIs", "/apis/x/v1beta1/y"),
		},
		"an insight that is an error": {
			func(w *world) {
				w.insight(preflight.Insight{Name: "Cluster health issues", KubernetesVersion: "1.36", Status: "ERROR", Reason: "bad", Recommendation: "mend it", Resources: []string{"arn:x"}})
			},
			blocks("Insights", "Cluster health issues: bad (arn:x)"),
		},
		"one that warns, and one that EKS does not know": {
			func(w *world) {
				w.insight(preflight.Insight{Name: "A", Status: "WARNING", Reason: "so"})
				w.insight(preflight.Insight{Name: "B", Status: "UNKNOWN", Reason: "who knows"})
			},
			warns("Insights", "A: so, B: who knows"),
		},
		"one for a version beyond the target is for another day": {
			func(w *world) { w.insight(preflight.Insight{Name: "A", KubernetesVersion: "1.37", Status: "ERROR"}) }, nil,
		},

		"a node that is not drover's may be three minors older": {
			func(w *world) { w.stranger("v1.33.1") }, nil,
		},
		"but not four": {
			func(w *world) { w.stranger("v1.32.1") }, blocks("KubeletSkew", "kubelet of stranger (v1.32.1) is more than 3 minors older than the control plane at 1.36"),
		},
		"a pool's kubelet neither, while the control plane moves first": {
			func(w *world) { w.node(0).Kubelet = "v1.32.1" }, blocks("KubeletSkew", "kubelet of n0"),
		},
		"a kubelet newer than the control plane is wrong now": {
			func(w *world) { w.stranger("v1.36.0") }, blocks("KubeletSkew", "is newer than the control plane at 1.35"),
		},
		"a kube-proxy that is older than three minors": {
			func(w *world) { w.facts.Survey.KubeProxies = []string{"v1.32.0"} }, blocks("KubeletSkew", "kube-proxy v1.32.0 (v1.32.0) is more than 3 minors older"),
		},
		"what is no version is not judged": {
			func(w *world) { w.stranger("custom"); w.facts.Survey.KubeProxies = []string{"latest"} }, nil,
		},

		"a webhook that must answer and cannot": {
			func(w *world) { w.facts.Survey.Webhooks = []preflight.Webhook{hook} },
			blocks("Webhooks", "v.example.com of ValidatingWebhookConfiguration policy (service policy/webhook, asked about evictions)"),
		},
		"one that hangs on one pod": {
			func(w *world) { h := hook; h.Endpoints = 1; w.facts.Survey.Webhooks = []preflight.Webhook{h} }, warns("Webhooks", "one ready endpoint"),
		},
		"one with two": {
			func(w *world) { h := hook; h.Endpoints = 2; w.facts.Survey.Webhooks = []preflight.Webhook{h} }, nil,
		},

		"the control plane needs five addresses": {
			func(w *world) { w.free(2, 2) },
			[]said{{"FreeAddresses", true, "may need 5 free addresses to update the control plane, and its subnets have 4: subnet-1 2, subnet-2 2"}, {"FreeAddresses", false, "pool a"}},
		},
		"and has them": {
			func(w *world) { w.free(20, 0) }, nil,
		},
		"a node without an address cannot start": {
			func(w *world) { w.nodesOnly(); w.free(0, 0) }, blocks("FreeAddresses", "1 node of pool a more, and 0 addresses are free"),
		},
		"one whose pods get none can": {
			func(w *world) { w.nodesOnly(); w.free(14, 0) }, warns("FreeAddresses", "1 node of pool a more may take 15 addresses with those for pods, and 14 are free"),
		},
		"pools that go together need theirs together, and each has room": {
			func(w *world) {
				w.nodesOnly()
				w.quota("L-1216C47A", 0)
				w.secondPool(0)
				w.free(15, 14)
			},
			warns("FreeAddresses", "2 nodes of pool a, b more may take 30 addresses with those for pods, and 29 are free"),
		},
		"pools that go one after another need them one after another": {
			func(w *world) { w.nodesOnly(); w.secondPool(1); w.free(15, 14) }, nil,
		},
		"a subnet that is gone has none": {
			func(w *world) { w.facts.Subnets = nil }, []said{{"FreeAddresses", true, "its subnets have 0"}, {"FreeAddresses", true, "pool a"}},
		},

		"the last four vCPUs are enough for one node": {
			func(w *world) {}, nil,
		},
		"three are not": {
			func(w *world) { w.quota("L-1216C47A", 97) }, blocks("InstanceQuota", "97 of 100 vCPUs are used, and the new nodes need up to 4"),
		},
		"pools that go together need theirs together": {
			func(w *world) { w.secondPool(0) }, blocks("InstanceQuota", "need up to 8"),
		},
		"pools that go one after another do not": {
			func(w *world) { w.secondPool(1) }, nil,
		},
		"spot counts to a quota of its own": {
			func(w *world) {
				w.quota("L-1216C47A", 100)
				w.quota("L-34B43A08", 99)
				w.pool().Spot = &api.Spot{}
			},
			blocks("InstanceQuota", "(L-34B43A08)"),
		},
		"a mix counts to both": {
			func(w *world) {
				w.quota("L-34B43A08", 0)
				w.quota("L-1216C47A", 100)
				w.pool().Spot = &api.Spot{OnDemandPercentage: 50}
			},
			blocks("InstanceQuota", "(L-1216C47A)"),
		},
		"a quota that nobody tells": {
			func(w *world) { w.facts.Quotas = nil }, warns("InstanceQuota", "L-1216C47A"),
		},
		"a pool without nodes starts none": {
			func(w *world) {
				w.pool().MinSize = 0
				w.facts.Groups["a"] = preflight.Group{Name: "g", Subnets: []string{"subnet-9"}}
				w.quota("L-1216C47A", 100)
			}, nil,
		},

		"a pool of which EC2 has no instance type any more": {
			func(w *world) { w.facts.InstanceTypes = nil }, blocks("SurgeCapacity", "pool a: m7i.large, m7i.xlarge"),
		},
		"one of which it has one": {
			func(w *world) { delete(w.facts.InstanceTypes, "m7i.xlarge") }, nil,
		},
		"a group whose launches somebody suspended": {
			func(w *world) { w.group(func(g *preflight.Group) { g.Suspended = []string{"AZRebalance", "Launch"} }) }, blocks("SurgeCapacity", "pool a: Launch"),
		},
		"what updates suspend stands in nobody's way": {
			func(w *world) {
				w.group(func(g *preflight.Group) { g.Suspended = []string{"AZRebalance", "HealthCheck"} })
			}, nil,
		},
		"a group that cannot have the instances it wants": {
			func(w *world) {
				w.group(func(g *preflight.Group) {
					g.InService, g.Failure, g.FailedAt = 2, "no m7i.large in eu-central-1a", now.Add(-30*time.Hour)
				})
			},
			blocks("SurgeCapacity", "no m7i.large in eu-central-1a"),
		},
		"one that could not a while ago": {
			func(w *world) {
				w.group(func(g *preflight.Group) { g.Failure, g.FailedAt = "no m7i.large", now.Add(-59*time.Minute) })
			}, warns("SurgeCapacity", "no m7i.large"),
		},
		"one that could not once, and has all it wants since": {
			func(w *world) { w.group(func(g *preflight.Group) { g.Failure, g.FailedAt = "no m7i.large", old }) }, nil,
		},
		"without a surge, pods find room on the others": {
			func(w *world) { w.noSurge() }, nil,
		},
		"or they do not": {
			func(w *world) {
				w.noSurge()
				for i := range 3 {
					w.node(i).Requested.MilliCPU = 1500
				}
			},
			warns("SurgeCapacity", "the fullest ask for 1.5 CPUs, 1.0 GiB and 5 pods, and the others have 1.0 CPUs"),
		},

		"an add-on that does not work": {
			func(w *world) {
				w.facts.Addons[1].Status, w.facts.Addons[1].Issues = "DEGRADED", []string{"InsufficientNumberOfReplicas: 0"}
			},
			blocks("AddonsHealthy", "coredns is DEGRADED (InsufficientNumberOfReplicas: 0)"),
		},
		"one whose last update failed works as before": {
			func(w *world) { w.facts.Addons[1].Status = "UPDATE_FAILED" }, warns("AddonsHealthy", "coredns is UPDATE_FAILED"),
		},
		"an add-on's version that EKS does not offer with the target": {
			func(w *world) { w.plan.After.Spec.Addons[1].Version = "v9" }, blocks("AddonsCompatible", "coredns v9 is not among those that EKS offers for Kubernetes 1.36: v1.12.0"),
		},
		"an add-on that EKS does not have for it": {
			func(w *world) { delete(w.facts.Compat, "coredns") }, blocks("AddonsCompatible", "EKS has no add-on coredns for Kubernetes 1.36"),
		},
		"one that is behind while the control plane moves": {
			func(w *world) {
				w.facts.Compat["coredns"] = []upgrade.AddonVersion{{Version: "v1.13.0", Kubernetes: []string{"1.36"}}, {Version: "v1.12.0", Kubernetes: []string{"1.35"}}}
				w.plan.After.Spec.Addons[1].Version = "v1.13.0"
			},
			warns("AddonsCompatible", "coredns is at v1.12.0 while the control plane is at 1.36"),
		},
		"one that is moved before it is not": {
			func(w *world) {
				w.facts.Compat["coredns"] = []upgrade.AddonVersion{{Version: "v1.12.5", Kubernetes: []string{"1.35", "1.36"}}, {Version: "v1.12.0", Kubernetes: []string{"1.35"}}}
				w.plan.After.Spec.Addons[1].Version = "v1.12.5"
				forced := map[string]string{"coredns": "v1.12.5"}
				w.plan.Steps[0].Addons = forced
				w.plan.Steps = append([]upgrade.Step{{Kind: upgrade.StepAddonsFirst, KubernetesVersion: "1.35", Addons: forced}}, w.plan.Steps...)
			}, nil,
		},
		"one that somebody else installed": {
			func(w *world) {
				w.facts.Addons = append(w.facts.Addons, preflight.Addon{Name: "theirs", Version: "v1", Status: "ACTIVE"})
			},
			warns("AddonsCompatible", "EKS has no add-on theirs"),
		},

		"a version that EKS does not offer": {
			func(w *world) { w.facts.Catalogue = w.facts.Catalogue[:1] }, blocks("VersionOffered", "does not offer Kubernetes 1.36 in this region; it offers 1.35"),
		},
		"a version that EKS no longer offers": {
			func(w *world) { w.facts.Catalogue[1].Status = "UNSUPPORTED" }, blocks("VersionOffered", "1.36"),
		},
		"every version on the way must be there": {
			func(w *world) {
				w.plan.Steps = append(w.plan.Steps, upgrade.Step{Kind: upgrade.StepNodes, KubernetesVersion: "1.37"})
			}, blocks("VersionOffered", "1.37"),
		},

		"a release may be reached from one minor before": {
			func(w *world) { w.plan.From.KubernetesVersion = "1.34" }, blocks("UpgradeFrom", "release 1.36-1 may be reached from Kubernetes 1.35 on, and the cluster has 1.34"),
		},
		"or from where it says": {
			func(w *world) { w.plan.From.KubernetesVersion, w.plan.UpgradeFrom = "1.34", "1.34" }, nil,
		},
		"a rollback goes where it came from": {
			func(w *world) { w.plan.From.KubernetesVersion, w.plan.Rollback = "1.33", true }, nil,
		},

		"support of the target that ends soon": {
			func(w *world) { w.facts.Catalogue[1].EndOfStandard = now.AddDate(0, 0, 59) }, warns("SupportDates", "standard support of Kubernetes 1.36 ends 2027-01-20"),
		},
		"or in sixty days": {
			func(w *world) { w.facts.Catalogue[1].EndOfStandard = now.AddDate(0, 0, 60) }, nil,
		},
		"extended support of the target": {
			func(w *world) {
				w.facts.Catalogue[1].Status, w.facts.Catalogue[1].EndOfStandard = "EXTENDED_SUPPORT", old
			}, warns("SupportDates", "in extended support since 2026-11-22"),
		},

		"an image that is not there": {
			func(w *world) { delete(w.facts.Images, "ami-36") }, blocks("Images", "ami-36 of pool a is not there"),
		},
		"an image that is not ready": {
			func(w *world) { w.image(func(i *preflight.Image) { i.State = "disabled" }) }, blocks("Images", "is disabled"),
		},
		"an image for another processor": {
			func(w *world) { w.image(func(i *preflight.Image) { i.Architecture = "arm64" }) }, blocks("Images", "is of arm64, not of amd64"),
		},
		"an image newer than the control plane": {
			func(w *world) {
				w.image(func(i *preflight.Image) { i.Name = "amazon-eks-node-al2023-x86_64-standard-1.37-v20261101" })
			}, blocks("Images", "newer than Kubernetes 1.36"),
		},
		"an image that is too old for it": {
			func(w *world) { w.image(func(i *preflight.Image) { i.Name = "amazon-eks-node-1.32-v20250101" }) }, blocks("Images", "too old for Kubernetes 1.36"),
		},
		"an image that is older": {
			func(w *world) { w.image(func(i *preflight.Image) { i.Name = "amazon-eks-arm64-node-1.35-v20250101" }) }, warns("Images", "older than Kubernetes 1.36"),
		},
		"an image that is deprecated": {
			func(w *world) { w.image(func(i *preflight.Image) { i.Deprecated = old }) }, warns("Images", "deprecated since 2026-11-22"),
		},
		"an image of their own is not judged by its name": {
			func(w *world) { w.image(func(i *preflight.Image) { i.Name = "golden-42" }) }, nil,
		},

		"an alarm that fires": {
			func(w *world) {
				w.facts.Alarms[0] = preflight.Alarm{Name: "errors", State: "ALARM", Reason: "5 > 1", Since: old}
			},
			blocks("AlarmsQuiet", "in ALARM: errors since 2026-11-22T21:00:00Z (5 > 1)"),
		},
		"an alarm that does not exist watches nothing": {
			func(w *world) { w.facts.Alarms = nil }, blocks("AlarmsQuiet", "errors"),
		},
		"an alarm without data": {
			func(w *world) { w.facts.Alarms[0].State = "INSUFFICIENT_DATA" }, warns("AlarmsQuiet", "errors"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := well()
			c.spoil(w)
			got := preflight.Before(w.facts, w.plan)
			requireSaid(t, c.want, got)
			var blocked bool
			for _, s := range c.want {
				blocked = blocked || s.blocks
			}
			require.Equal(t, blocked, preflight.Blocks(got))
		})
	}
}

func (w *world) manyNodes(n int) {
	for len(w.facts.Survey.Nodes) < n {
		another := *w.node(0)
		another.Name = fmt.Sprintf("n%d", len(w.facts.Survey.Nodes))
		w.facts.Survey.Nodes = append(w.facts.Survey.Nodes, another)
	}
}

func (w *world) pods(pods ...preflight.Pod) {
	w.facts.Survey.Pods = append(w.facts.Survey.Pods, pods...)
}

func (w *world) daemons(n int) {
	for i := range n {
		w.pods(preflight.Pod{Namespace: "kube-system", Name: fmt.Sprintf("aws-node-%d", i), Node: "n0", Workload: "DaemonSet aws-node", State: "CrashLoopBackOff", Since: old})
	}
}

func (w *world) stranger(kubelet string) {
	w.facts.Survey.Nodes = append(w.facts.Survey.Nodes, preflight.Node{Name: "stranger", Ready: true, Created: old, Kubelet: kubelet})
}

func (w *world) free(first, second int) {
	w.facts.Subnets = map[string]preflight.Subnet{"subnet-1": {ID: "subnet-1", Free: first}, "subnet-2": {ID: "subnet-2", Free: second}}
}

func (w *world) quota(code string, used int) {
	w.facts.Quotas[code] = preflight.Quota{Code: code, Name: "instances", Limit: 100, Used: used}
}

func (w *world) secondPool(order int) {
	another := *w.pool()
	another.Name, another.Update.Order = "b", order
	w.plan.After.Spec.Pools = append(w.plan.After.Spec.Pools, another)
	w.facts.Groups["b"] = w.facts.Groups["a"]
}

func (w *world) noSurge() { w.pool().Update = api.Update{MaxSurge: "0", MaxUnavailable: "1"} }

func (w *world) group(change func(*preflight.Group)) {
	g := w.facts.Groups["a"]
	change(&g)
	w.facts.Groups["a"] = g
}

func (w *world) image(change func(*preflight.Image)) {
	i := w.facts.Images["ami-36"]
	change(&i)
	w.facts.Images["ami-36"] = i
}

// Nodes go back before the control plane does: what is of a pool has the older kubelet by then.
func TestSkewOfARollback(t *testing.T) {
	w := well()
	w.plan.From.KubernetesVersion, w.plan.To.KubernetesVersion, w.plan.Rollback = "1.36", "1.35", true
	w.plan.Steps = []upgrade.Step{
		{Kind: upgrade.StepNodesBack, KubernetesVersion: "1.36"}, {Kind: upgrade.StepAddonsFirst, KubernetesVersion: "1.36", Addons: map[string]string{"kube-proxy": "v1.35.0"}},
		{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.35", Addons: map[string]string{"kube-proxy": "v1.35.0"}},
	}
	w.plan.After = w.plan.Before
	w.facts.ControlPlane.Version = "1.36"
	for i := range w.facts.Survey.Nodes {
		w.node(i).Kubelet = "v1.36.3"
	}
	w.facts.Survey.KubeProxies = []string{"v1.36.0"}
	require.Empty(t, preflight.Before(w.facts, w.plan))
	w.stranger("v1.36.3")
	requireSaid(t, blocks("KubeletSkew", "kubelet of stranger (v1.36.3) is newer than the control plane at 1.35"), preflight.Before(w.facts, w.plan))
	w.plan.Steps = append(w.plan.Steps[:1], w.plan.Steps[2])
	w.plan.Steps[1].Addons = nil
	require.Contains(t, preflight.Before(w.facts, w.plan)[0].Message, "kube-proxy v1.36.0 (v1.36.0) is newer")
	w.insight(preflight.Insight{Name: "Rollback", KubernetesVersion: "1.36", Status: "ERROR", Reason: "too late"})
	require.Contains(t, fmt.Sprint(preflight.Before(w.facts, w.plan)), "Rollback: too late")
}

// upgraded is the world after it went well.
func upgraded() (*world, preflight.Baseline) {
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
		want  []said
	}{
		"all went well": {func(*world) {}, nil},
		"its health is held to the same as before": {
			func(w *world) { w.node(0).Ready = false; w.facts.Alarms[0].State = "ALARM" }, []said{{"NodesReady", true, "n0"}, {"AlarmsQuiet", true, "errors"}},
		},
		"the control plane did not move": {
			func(w *world) { w.facts.ControlPlane.Version = "1.35" },
			blocks("VersionsReached", "the control plane is at 1.35, not 1.36"),
		},
		"an add-on did not move": {
			func(w *world) { w.facts.Addons[0].Version = "v1.35.0-eksbuild.1" }, blocks("VersionsReached", "add-on kube-proxy is at v1.35.0-eksbuild.1, not v1.36.0-eksbuild.1"),
		},
		"an add-on is missing": {
			func(w *world) { w.facts.Addons = w.facts.Addons[:1] }, blocks("VersionsReached", "add-on coredns is not installed"),
		},
		"an add-on of any version is there": {
			func(w *world) { w.plan.After.Spec.Addons[1].Version = "" }, nil,
		},
		"a node came up with the wrong version": {
			func(w *world) { w.node(1).Kubelet = "v1.35.5-eks-1" }, blocks("NodesReplaced", "n1 of pool a has kubelet v1.35.5-eks-1"),
		},
		"a node came up newer than the control plane": {
			func(w *world) { w.node(1).Kubelet = "v1.37.0"; w.plan.Steps = nil }, blocks("NodesReplaced", "n1"),
		},
		"a node of an image that is older by its name": {
			func(w *world) { w.node(1).Kubelet = "v1.35.5"; w.pool().ImageID = "ami-35" }, warns("NodesReplaced", "n1 of pool a has kubelet v1.35.5"),
		},
		"a node that is going is not looked at": {
			func(w *world) { w.node(1).Kubelet, w.node(1).Leaving = "v1.35.5-eks-1", true }, nil,
		},
		"a node of nobody's pool is theirs": {
			func(w *world) { w.stranger("v1.34.0") }, nil,
		},
		"an instance was not replaced": {
			func(w *world) { w.group(func(g *preflight.Group) { g.Outdated = []string{"i-1"} }) }, blocks("NodesReplaced", "pool a has 1 instance of an older launch template: i-1"),
		},
		"nor was it to be": {
			func(w *world) {
				w.group(func(g *preflight.Group) { g.Outdated = []string{"i-1"} })
				w.plan.Steps = w.plan.Steps[:2]
			}, nil,
		},
		"a workload has fewer ready pods": {
			func(w *world) { w.workload(2, 4) }, blocks("WorkloadsReady", "Deployment shop/web: 2 of 4 ready, 3 of 4 before"),
		},
		"a workload was short before and is as short": {
			func(w *world) { w.workload(3, 4) }, nil,
		},
		"a workload was scaled up and waits for its pods": {
			func(w *world) { w.workload(3, 9) }, nil,
		},
		"a workload was scaled down": {
			func(w *world) { w.workload(1, 1) }, nil,
		},
		"a workload was deleted, and another is new": {
			func(w *world) {
				w.facts.Survey.Workloads[1] = preflight.Workload{Kind: "Deployment", Namespace: "shop", Name: "new", Desired: 3}
			}, nil,
		},
		"of a cluster that does not answer nothing else is said that would need it": {
			func(w *world) { w.facts.Unreachable, w.facts.Survey = "no route", preflight.Survey{} }, blocks("ControlPlaneHealthy", "no route"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, before := upgraded()
			before.Workloads = append([]preflight.Workload(nil), before.Workloads...)
			c.spoil(w)
			requireSaid(t, c.want, preflight.After(before, w.facts, w.plan))
		})
	}
}

func (w *world) workload(ready, desired int) {
	w.facts.Survey.Workloads[1].Ready, w.facts.Survey.Workloads[1].Desired = ready, desired
}

func TestLongListsAreCutShort(t *testing.T) {
	w := well()
	w.manyNodes(5000)
	for i := range w.facts.Survey.Nodes {
		w.node(i).Ready = false
	}
	got := preflight.Before(w.facts, w.plan)
	require.Len(t, got, 1)
	require.Contains(t, got[0].Message, "5000 of 5000 nodes not Ready: n0 ")
	require.True(t, strings.HasSuffix(got[0].Message, "and 4995 more"), got[0].Message)
	require.Less(t, len(got[0].Message), 500)
}

func TestQuotaCode(t *testing.T) {
	for instanceType, want := range map[string][2]string{
		"m7i.large": {"L-1216C47A", "L-34B43A08"}, "t4g.small": {"L-1216C47A", "L-34B43A08"}, "i4i.large": {"L-1216C47A", "L-34B43A08"}, "inf2.xlarge": {"L-1945791B", "L-B5D1601B"},
		"im4gn.large": {"L-1216C47A", "L-34B43A08"}, "trn1.2xlarge": {"L-2C3B7624", "L-6B0D517C"}, "g5.xlarge": {"L-DB2E81BA", "L-3819A6DF"}, "vt1.3xlarge": {"L-DB2E81BA", "L-3819A6DF"},
		"p5.48xlarge": {"L-417A185B", "L-C4BD4855"}, "p4d.24xlarge": {"L-417A185B", "L-7212CCBC"}, "gr6.4xlarge": {"L-DB2E81BA", "L-3819A6DF"}, "x2gd.medium": {"L-7295265B", "L-E3A00192"}, "dl1.24xlarge": {"L-6E869C2A", "L-85EED4F7"}, "d3.xlarge": {"L-1216C47A", "L-34B43A08"},
		"hpc7a.12xlarge": {"L-F7808C92", ""}, "h1.2xlarge": {"L-1216C47A", "L-34B43A08"}, "u-6tb1.metal": {"L-43DA4232", ""}, "u7i-12tb.224xlarge": {"L-43DA4232", ""}, "f1.2xlarge": {"L-74FC7D96", "L-88CF9481"},
		"mac1.metal": {"", ""}, "unheard.of": {"", ""},
	} {
		require.Equal(t, want, [2]string{preflight.QuotaCode(instanceType, false), preflight.QuotaCode(instanceType, true)}, instanceType)
	}
}
