package collect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/preflight/collect"
	"github.com/drover-run/drover/shared/upgrade"
)

var (
	noon         = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	earlier      = noon.Add(-time.Hour)
	errThrottled = errors.New("throttled")
)

// account answers all interfaces of a Gatherer. It records the calls in order. The call in fails returns throttled.
type account struct {
	calls    []string
	fails    string
	surveyed error
	groups   map[string]pool.Group
	limits   map[string]int
}

func (a *account) call(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	a.calls = append(a.calls, call)
	if a.fails == call {
		return errThrottled
	}
	return nil
}

type (
	kubernetes struct{ *account }
	eks        struct{ *account }
	groups     struct{ *account }
	alarms     struct{ *account }
	capacity   struct{ *account }
	quotas     struct{ *account }
)

func (k kubernetes) Survey(_ context.Context, cluster string) (preflight.Survey, error) {
	return preflight.Survey{Unhealthy: []string{cluster}}, errors.Join(k.call("survey %s", cluster), k.surveyed)
}

func (e eks) ControlPlane(_ context.Context, cluster string) (preflight.ControlPlane, error) {
	return preflight.ControlPlane{Version: "1.35", Subnets: []string{"subnet-2", "subnet-1"}}, e.call("control plane %s", cluster)
}

func (e eks) Addons(_ context.Context, cluster string) ([]preflight.Addon, error) {
	return []preflight.Addon{{Name: "kube-proxy"}, {Name: "foreign"}}, e.call("addons %s", cluster)
}

func (e eks) Insights(_ context.Context, cluster string, rollback bool, versions []string) ([]preflight.Insight, time.Time, error) {
	return []preflight.Insight{{Name: "insight"}}, earlier, e.call("insights %s %t %v", cluster, rollback, versions)
}

func (e eks) Catalog(context.Context) ([]preflight.Version, error) {
	return []preflight.Version{{Version: "1.36"}}, e.call("catalog")
}

func (e eks) Compat(_ context.Context, addons []string) (upgrade.Compat, error) {
	return upgrade.Compat{"kube-proxy": nil}, e.call("compat %v", addons)
}

func (e eks) Clusters(context.Context) (int, error) { return 98, e.call("clusters") }

func (g groups) Describe(_ context.Context, name string) (pool.Group, bool, error) {
	group, found := g.groups[name]
	return group, found, g.call("group %s", name)
}

func (g groups) LaunchFailure(_ context.Context, name string) (string, time.Time, error) {
	return "no capacity", earlier, g.call("launch failure %s", name)
}

func (a alarms) Describe(_ context.Context, names []string) ([]preflight.Alarm, error) {
	return []preflight.Alarm{{Name: "errors"}}, a.call("alarms %v", names)
}

func (c capacity) Subnets(_ context.Context, ids []string) (map[string]preflight.Subnet, error) {
	return map[string]preflight.Subnet{"subnet-1": {Free: 9}}, c.call("subnets %v", ids)
}

func (c capacity) Images(_ context.Context, ids []string) (map[string]preflight.Image, error) {
	return map[string]preflight.Image{"ami-1": {ID: "ami-1"}}, c.call("images %v", ids)
}

func (c capacity) InstanceTypes(_ context.Context, names []string) (map[string]preflight.InstanceType, error) {
	return map[string]preflight.InstanceType{"m7i.large": {VCPUs: 2}}, c.call("instance types %v", names)
}

func (c capacity) Started(_ context.Context, instances []string) (map[string]string, error) {
	return map[string]string{"i-1": "ami-1"}, c.call("started %v", instances)
}

func (c capacity) Running(context.Context) (map[string]int, error) {
	return map[string]int{standard: 96, "L-OTHER": 5}, c.call("running")
}

func (c capacity) Volumes(_ context.Context, types []string) (map[string]int, error) {
	return map[string]int{gp3: 1000}, c.call("volumes %v", types)
}

func (q quotas) quota(what, code string) (preflight.Quota, bool, error) {
	limit, found := q.limits[code]
	return preflight.Quota{Code: code, Limit: limit}, found, q.call("%s %s", what, code)
}

func (q quotas) Limit(_ context.Context, code string) (preflight.Quota, bool, error) {
	return q.quota("limit", code)
}

func (q quotas) Storage(_ context.Context, code string) (preflight.Quota, bool, error) {
	return q.quota("storage", code)
}

func (q quotas) Clusters(_ context.Context, code string) (preflight.Quota, bool, error) {
	return q.quota("clusters", code)
}

// Codes of quotas.
const standard, gp3, clusters = "L-1216C47A", "L-7A658B76", preflight.ClusterQuotaCode

func gatherer(change ...func(*account)) (*account, *collect.Gatherer) {
	a := &account{
		groups: map[string]pool.Group{"drover-demo-pool-a": {
			Desired: 3, TemplateVersion: "2", Suspended: []string{"Launch"}, Subnets: []string{"subnet-2", "subnet-3"},
			Instances: []pool.Instance{
				{ID: "i-2", State: pool.InService, TemplateVersion: "2"}, {ID: "i-1", State: pool.InService, TemplateVersion: "1"},
				{ID: "i-3", State: pool.PendingWait, TemplateVersion: "2"}, {ID: "i-4", State: pool.TerminatingWait, TemplateVersion: "1"},
				{ID: "i-5", State: pool.InService, TemplateVersion: "2"},
			},
		}},
		limits: map[string]int{standard: 100, gp3: 5000, clusters: 100},
	}
	for _, change := range change {
		change(a)
	}
	return a, &collect.Gatherer{
		Kubernetes: kubernetes{a}, EKS: eks{a}, Groups: groups{a}, Alarms: alarms{a}, Capacity: capacity{a}, Quotas: quotas{a},
		Now: func() time.Time { return noon },
	}
}

func plan() *preflight.Plan {
	after := &api.Cluster{}
	after.Spec.Addons = []api.Addon{{Name: "coredns"}, {Name: "kube-proxy"}}
	after.Spec.Pools = []api.Pool{
		{
			Name: "a", ImageID: "ami-1", InstanceTypes: []string{"m7i.large", "m7i.xlarge"}, RootVolume: api.RootVolume{Type: "gp3", SizeGiB: 50},
			Update: api.Update{MaxSurge: "1", MaxUnavailable: "0"},
		},
		{Name: "new", ImageID: "ami-1", InstanceTypes: []string{"m7i.large"}, RootVolume: api.RootVolume{Type: "gp3"}},
	}
	return &preflight.Plan{
		Cluster: "demo", From: upgrade.Target{KubernetesVersion: "1.35"}, To: upgrade.Target{KubernetesVersion: "1.36"},
		Steps: []upgrade.Step{
			{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36"}, {Kind: upgrade.StepNodes, KubernetesVersion: "1.36"},
		},
		After: after, Alarms: []string{"errors"},
	}
}

// The calls of After and Before, in order.
var (
	afterCalls = []string{
		"control plane drover-demo", "addons drover-demo", "alarms [errors]", "group drover-demo-pool-a", "launch failure drover-demo-pool-a",
		"group drover-demo-pool-new", "started [i-1 i-2 i-5]", "images [ami-1]", "survey demo",
	}
	beforeCalls = append(slices.Clone(afterCalls),
		"insights drover-demo false [1.36]", "catalog", "compat [coredns foreign kube-proxy]", "subnets [subnet-1 subnet-2 subnet-3]",
		"instance types [m7i.large m7i.xlarge]", "clusters", "clusters "+clusters, "running", "limit "+standard, "volumes [gp3]", "storage "+gp3)
)

func TestFactsAfter(t *testing.T) {
	a, g := gatherer()
	f, err := g.After(t.Context(), plan())
	require.NoError(t, err)
	require.Equal(t, afterCalls, a.calls)
	require.Equal(t, &preflight.Facts{
		ReadAt: noon, ControlPlane: preflight.ControlPlane{Version: "1.35", Subnets: []string{"subnet-2", "subnet-1"}},
		Survey: preflight.Survey{Unhealthy: []string{"demo"}}, Addons: []preflight.Addon{{Name: "kube-proxy"}, {Name: "foreign"}},
		Groups: map[string]preflight.Group{"a": {
			Name: "drover-demo-pool-a", Desired: 3, InService: 2, Instances: []string{"i-2", "i-1", "i-5"}, Outdated: []string{"i-1"},
			Suspended: []string{"Launch"}, Subnets: []string{"subnet-2", "subnet-3"}, Failure: "no capacity", FailedAt: earlier,
		}},
		Images: map[string]preflight.Image{"ami-1": {ID: "ami-1"}}, ImageOfInstance: map[string]string{"i-1": "ami-1"},
		Alarms: []preflight.Alarm{{Name: "errors"}},
	}, f)
}

func TestFactsBefore(t *testing.T) {
	before := func(t *testing.T, p *preflight.Plan, change ...func(*account)) (*account, *preflight.Facts) {
		t.Helper()
		a, g := gatherer(change...)
		f, err := g.Before(t.Context(), p)
		require.NoError(t, err)
		return a, f
	}
	t.Run("adds versions and room to the facts after an upgrade", func(t *testing.T) {
		a, f := before(t, plan())
		require.Equal(t, beforeCalls, a.calls)
		require.Equal(t, []preflight.Insight{{Name: "insight"}}, f.Insights)
		require.Equal(t, earlier, f.InsightsRefreshed)
		require.Equal(t, []preflight.Version{{Version: "1.36"}}, f.Catalog)
		require.Equal(t, upgrade.Compat{"kube-proxy": nil}, f.Compat)
		require.Equal(t, map[string]preflight.Subnet{"subnet-1": {Free: 9}}, f.Subnets)
		require.Equal(t, map[string]preflight.InstanceType{"m7i.large": {VCPUs: 2}}, f.InstanceTypes)
		require.Equal(t, map[string]preflight.Quota{
			clusters: {Code: clusters, Limit: 100, Used: 98}, standard: {Code: standard, Limit: 100, Used: 96},
			gp3: {Code: gp3, Limit: 5000, Used: 1000},
		}, f.Quotas)
	})
	t.Run("leaves out quotas that Service Quotas does not know", func(t *testing.T) {
		_, f := before(t, plan(), func(a *account) { delete(a.limits, standard) })
		require.NotContains(t, f.Quotas, standard)
		require.Contains(t, f.Quotas, gp3)
	})
	t.Run("reads no insights when the control plane keeps its version", func(t *testing.T) {
		p := plan()
		p.From.KubernetesVersion = "1.36"
		a, f := before(t, p)
		require.NotContains(t, a.calls, "insights drover-demo false [1.36]")
		require.Empty(t, f.Insights)
		require.Zero(t, f.InsightsRefreshed)
	})
	t.Run("reads the insights of a rollback without a version", func(t *testing.T) {
		p := plan()
		p.Rollback = true
		a, _ := before(t, p)
		require.Contains(t, a.calls, "insights drover-demo true []")
	})
	t.Run("reads no quota of nodes when none is replaced", func(t *testing.T) {
		p := plan()
		p.Steps = p.Steps[:1]
		a, f := before(t, p)
		require.Equal(t, []string{"clusters", "clusters " + clusters}, a.calls[len(a.calls)-2:])
		require.Len(t, f.Quotas, 1)
	})
	t.Run("ignores volumes of other types", func(t *testing.T) {
		p := plan()
		p.After.Spec.Pools[0].RootVolume.Type = "standard"
		a, f := before(t, p)
		require.Equal(t, "limit "+standard, a.calls[len(a.calls)-1])
		require.Len(t, f.Quotas, 2)
	})
}

func TestFactsFail(t *testing.T) {
	for _, call := range beforeCalls {
		t.Run("with AWS: "+call, func(t *testing.T) {
			a, g := gatherer(func(a *account) { a.fails = call })
			f, err := g.Before(t.Context(), plan())
			require.ErrorIs(t, err, errThrottled)
			require.Nil(t, f)
			require.Equal(t, call, a.calls[len(a.calls)-1], "it reads no further")
		})
	}
}

func TestFactsWithoutTheClustersAPI(t *testing.T) {
	unreachable := &fault.ClusterUnreachable{Cause: errors.New("i/o timeout")}
	for name, test := range map[string]struct {
		err         error
		unreachable string
		forbidden   bool
	}{
		"unreachable": {unreachable, unreachable.Error(), false},
		"forbidden":   {fmt.Errorf("%w: arn:aws:iam::1:user/a", collect.ErrForbidden), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			a, g := gatherer(func(a *account) { a.surveyed = test.err })
			f, err := g.Before(t.Context(), plan())
			require.NoError(t, err)
			require.Equal(t, beforeCalls, a.calls, "AWS has the rest")
			require.Equal(t, test.unreachable, f.Unreachable)
			require.Equal(t, test.forbidden, f.Forbidden)
			require.Empty(t, f.Survey)
		})
	}
}
