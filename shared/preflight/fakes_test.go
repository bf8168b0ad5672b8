package preflight_test

// A healthy cluster, and its problems.

import (
	"fmt"
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

// world is a healthy cluster with the plan of an upgrade from 1.35 to 1.36, and room for it. No check finds anything. Each case adds a
// problem.
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
			RootVolume: api.RootVolume{SizeGiB: 50, Type: "gp3"},
			Update:     api.Update{MaxSurge: "1", MaxUnavailable: "0"}, Drain: api.Drain{OnTimeout: api.OnTimeoutWait},
		}}
		return c
	}
	w := &world{
		plan: &preflight.Plan{
			Cluster: "demo",
			From:    upgrade.Target{Release: "1.35-1", KubernetesVersion: "1.35"}, To: upgrade.Target{Release: "1.36-1", KubernetesVersion: "1.36"},
			Steps: []upgrade.Step{
				{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36"}, {
					Kind: upgrade.StepAddons, KubernetesVersion: "1.36",
				}, {Kind: upgrade.StepNodes, KubernetesVersion: "1.36"},
			},
			Before: spec("1.35", "v1.35.0-eksbuild.1", "ami-35"), After: spec("1.36", "v1.36.0-eksbuild.1", "ami-36"), Alarms: []string{"errors"},
		},
		facts: &preflight.Facts{
			ReadAt:       now,
			ControlPlane: preflight.ControlPlane{Version: "1.35", Status: "ACTIVE", Subnets: []string{"subnet-1", "subnet-2"}},
			Addons: []preflight.Addon{
				{Name: "kube-proxy", Version: "v1.35.0-eksbuild.1", Status: "ACTIVE"}, {Name: "coredns", Version: "v1.12.0", Status: "ACTIVE"},
			},
			Catalog: []preflight.Version{
				{Version: "1.35", Status: "STANDARD_SUPPORT", EndOfStandard: now.AddDate(0, 4, 0)}, {
					Version: "1.36", Status: "STANDARD_SUPPORT", EndOfStandard: now.AddDate(1, 0, 0),
				},
			},
			Compat: upgrade.Compat{
				"kube-proxy": {
					{Version: "v1.36.0-eksbuild.1", Kubernetes: []string{"1.36"}}, {Version: "v1.35.0-eksbuild.1", Kubernetes: []string{"1.35", "1.36"}},
				},
				"coredns": {{Version: "v1.12.0", Kubernetes: []string{"1.35", "1.36"}}},
			},
			Groups: map[string]preflight.Group{
				"a": {Name: "drover-demo-pool-a", Desired: 3, InService: 3, Subnets: []string{"subnet-1", "subnet-2"}},
			},
			Subnets: map[string]preflight.Subnet{"subnet-1": {ID: "subnet-1", Free: 100}, "subnet-2": {ID: "subnet-2", Free: 100}},
			Images: map[string]preflight.Image{
				"ami-36": {ID: "ami-36", Name: "amazon-eks-node-al2023-x86_64-standard-1.36-v20261101", Architecture: "x86_64", State: "available"},
				"ami-35": {ID: "ami-35", Name: "amazon-eks-node-al2023-x86_64-standard-1.35-v20261101", Architecture: "x86_64", State: "available"},
			},
			InstanceTypes: map[string]preflight.InstanceType{
				"m7i.large": {Name: "m7i.large", VCPUs: 2, Addresses: 10}, "m7i.xlarge": {Name: "m7i.xlarge", VCPUs: 4, Addresses: 15},
			},
			Quotas: map[string]preflight.Quota{
				"L-1216C47A": {Code: "L-1216C47A", Name: "Running On-Demand Standard instances", Limit: 100, Used: 96},
				"L-7A658B76": {Code: "L-7A658B76", Name: "Storage of gp3 volumes, in TiB", Limit: 1 << 20, Used: 1000},
				"L-1194D53C": {Code: "L-1194D53C", Name: "Clusters", Limit: 100, Used: 98},
			},
			Alarms: []preflight.Alarm{{Name: "errors", State: "OK", Actions: true, Silence: true}},
		},
	}
	for i := range 3 {
		w.facts.Survey.Nodes = append(w.facts.Survey.Nodes, preflight.Node{
			Name: fmt.Sprintf("n%d", i), Pool: "a", Ready: true, Message: "no heartbeat", Created: old, Since: old, Kubelet: "v1.35.5-eks-1",
			Requested: preflight.Resources{
				MilliCPU: 1000, Memory: 1 << 30, Pods: 5,
			}, Allocatable: preflight.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 29},
		})
	}
	w.facts.Survey.KubeProxies = []string{"v1.35.0-eksbuild.1"}
	w.facts.Survey.Workloads = []preflight.Workload{
		{Kind: "DaemonSet", Namespace: "kube-system", Name: "aws-node", Desired: 20, Ready: 20}, {
			Kind: "Deployment", Namespace: "shop", Name: "web", Desired: 4, Ready: 3,
		},
	}
	return w
}

func (w *world) node(i int) *preflight.Node { return &w.facts.Survey.Nodes[i] }

func (w *world) pool() *api.Pool { return &w.plan.After.Spec.Pools[0] }

func (w *world) budget(b preflight.Budget) {
	w.facts.Survey.Budgets = append(w.facts.Survey.Budgets, b)
}

func (w *world) insight(i preflight.Insight) {
	w.facts.Insights = append(w.facts.Insights, i)
}

// nodesOnly makes the plan upgrade nodes only.
func (w *world) nodesOnly() {
	w.plan.Steps = w.plan.Steps[2:]
	w.plan.From.KubernetesVersion, w.facts.ControlPlane.Version = "1.36", "1.36"
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
		w.pods(preflight.Pod{
			Namespace: "kube-system", Name: fmt.Sprintf("aws-node-%d", i), Node: "n0", Workload: "DaemonSet aws-node", State: "CrashLoopBackOff",
			Since: old,
		})
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

func (w *world) workload(ready, desired int) {
	w.facts.Survey.Workloads[1].Ready, w.facts.Survey.Workloads[1].Desired = ready, desired
}

// from sets another Kubernetes version than 1.35 for everything before the upgrade.
func (w *world) from(version string) {
	w.plan.From.KubernetesVersion, w.facts.ControlPlane.Version = version, version
	for i := range w.facts.Survey.Nodes {
		w.node(i).Kubelet = "v" + version + ".5-eks-1"
	}
	w.facts.Survey.KubeProxies = []string{"v" + version + ".0-eksbuild.1"}
}

// finding is an expected finding: its name, whether it blocks, and words of its message.
type finding struct {
	name   string
	blocks bool
	words  string
}

func blocks(name, words string) []finding { return []finding{{name, true, words}} }

func warns(name, words string) []finding { return []finding{{name, false, words}} }

func requireFindings(t *testing.T, want []finding, got []status.Check) {
	t.Helper()
	require.Len(t, got, len(want), "%+v", got)
	for i, w := range want {
		require.Equal(t, w.name, got[i].Name, "%+v", got[i])
		require.Equal(t, w.blocks, got[i].Blocks, "%+v", got[i])
		require.Contains(t, got[i].Message, w.words)
		require.NotEmpty(t, got[i].Next, "what to do")
	}
	for _, c := range got {
		require.Less(t, len(c.Message), 1000, "a status must be readable")
		require.NotRegexp(t, `\(\)|used by (,|$)|and 0 more`, c.Message, "what is empty is left out")
	}
}
