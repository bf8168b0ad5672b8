package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestDifference(t *testing.T) {
	now := time.Now()
	r1 := upgrade.Target{Release: "r1", KubernetesVersion: "1.35"}
	r2 := upgrade.Target{Release: "r2", KubernetesVersion: "1.36"}
	spec := func(change func(*api.ClusterSpec)) *api.Cluster {
		c := &api.Cluster{}
		c.Spec.Release.Name, c.Spec.KubernetesVersion = "r1", "1.35"
		c.Spec.Pools = []api.Pool{{Name: "a", MinSize: 2, MaxSize: 5, InstanceTypes: []string{"m7i.large", "m6i.large"}, Architecture: api.AMD64}}
		if change != nil {
			change(&c.Spec)
		}
		return c
	}
	ends := func(u planner.UpgradeForecast) *planner.UpgradeForecast {
		u.From, u.To, u.Origin = r1, r2, upgrade.OriginSpec
		u.Request = events.Upgrade{Release: "r2", KubernetesVersion: u.Request.KubernetesVersion}
		return &u
	}
	tomorrow := now.Add(26 * time.Hour).Truncate(time.Second)
	for name, test := range map[string]struct {
		f       planner.Forecast
		differs bool
		want    []string
	}{
		"reports no change": {planner.Forecast{Spec: spec(nil)}, false, []string{"demo: no changes\n"}},
		"lists the nodes and types of a pool that is created": {
			planner.Forecast{Spec: spec(nil), Creates: true, Preview: plan.Preview{Plan: plan.Plan{Changes: []plan.Change{
				{Stack: "pool-a", StackName: "drover-demo-pool-a", Operation: plan.Create},
			}}}}, true,
			[]string{"demo would be created at release r1 (Kubernetes 1.35)", "  pool a: nodes 2 (min 2, max 5), m7i.large or m6i.large, amd64\n"},
		},
		"shows an upgrade that begins at once": {
			planner.Forecast{Spec: spec(nil), Upgrade: ends(planner.UpgradeForecast{Now: true})}, true,
			[]string{
				"demo: no stack would change before the upgrade\n", "Upgrade demo: release r1 (Kubernetes 1.35) → release r2 (Kubernetes 1.36)\n",
				"  begins: at once; checks run first\n", "drover upgrade demo --to r2 --dry-run\n",
			},
		},
		"shows the window that an upgrade waits for": {
			planner.Forecast{Spec: spec(func(s *api.ClusterSpec) {
				s.Upgrade.Window = &api.Window{Days: []string{"Sat", "Sun"}, Start: "22:00", Duration: "6h", TimeZone: "UTC"}
			}), Upgrade: ends(planner.UpgradeForecast{At: tomorrow, Message: upgrade.WaitsForWindow})}, true,
			[]string{"begins: within five minutes of " + tomorrow.UTC().Format(time.RFC3339) +
				" (in 1d2h): when the window of spec.upgrade opens: Sat, Sun from 22:00 for 6h, UTC\n"},
		},
		"shows what an upgrade waits for without a time": {
			planner.Forecast{
				Spec: spec(nil), Upgrade: ends(planner.UpgradeForecast{Message: "there is no release"}),
			}, true, []string{"  waits: there is no release\n"},
		},
		"shows that a rollout requests an upgrade": {
			planner.Forecast{Spec: spec(nil), Upgrade: &planner.UpgradeForecast{From: r1, To: r2, Origin: upgrade.OriginRollout, Now: true}}, true,
			[]string{"  requested by: a run of a rollout\n"},
		},
		"shows that a rollout requests a rollback": {
			planner.Forecast{Spec: spec(nil), Upgrade: &planner.UpgradeForecast{From: r2, To: r1, Origin: upgrade.OriginRollback, Now: true}}, true,
			[]string{"  requested by: a run of a rollout, as a rollback\n"},
		},
		"shows why an upgrade does not begin": {
			planner.Forecast{Spec: spec(nil), Upgrade: ends(planner.UpgradeForecast{Never: true, Message: "its window never opens again"})}, true,
			[]string{"  does not begin: its window never opens again\n"},
		},
		"repeats a stated Kubernetes version in the command": {
			planner.Forecast{
				Spec: spec(nil), Upgrade: ends(planner.UpgradeForecast{Now: true, Request: events.Upgrade{KubernetesVersion: "1.36"}}),
			}, true,
			[]string{"drover upgrade demo --to r2 --kubernetes-version 1.36 --dry-run\n"},
		},
		"notes a pause": {
			planner.Forecast{
				Spec: spec(nil), Paused: true,
			}, false, []string{"demo: no changes\n\nnote: spec.paused is true: uploading this spec changes nothing"},
		},
		"counts an upgrade that the spec stops": {
			planner.Forecast{Spec: spec(nil), InFlight: &upgrade.Record{Target: r2}, Stops: "spec.paused is true", Paused: true}, true,
			[]string{"note: the upgrade to release r2 (Kubernetes 1.36) is in flight: uploading this spec stops it after the open step, because " +
				"spec.paused is true\n"},
		},
		"does not count an upgrade that continues": {
			planner.Forecast{
				Spec: spec(nil), InFlight: &upgrade.Record{Target: r2},
			}, false, []string{"is in flight and continues: drover status demo\n"},
		},
		"notes an override": {
			planner.Forecast{
				Spec: spec(nil), Override: "r2 counts",
			}, false, []string{"note: the release that the spec names does not apply: r2 counts\n"},
		},
		"warns of a capability that is removed": {
			planner.Forecast{Spec: spec(nil), Preview: plan.Preview{Plan: plan.Plan{Changes: []plan.Change{{
				Stack: "capabilities", StackName: "drover-demo-capabilities", Operation: plan.Update,
				Reasons: []status.Reason{
					{Field: "spec.capabilities[gitops].type", Old: "ArgoCD"}, {Field: "spec.capabilities[gitops].name", Old: "gitops"},
				},
			}}}}}, true, []string{"\nwarning: spec.capabilities[gitops]: EKS keeps the Kubernetes objects of a capability that is removed, and " +
				"nothing manages them: delete them first\n"},
		},
		"warns": {
			planner.Forecast{
				Spec: spec(nil), Preview: plan.Preview{Plan: plan.Plan{Warnings: api.SpecWarnings{Addons: []string{"no pool"}}}},
			}, false, []string{"\nwarning: no pool\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDifference("demo", test.f, now)
			require.Equal(t, test.differs, d.differs())
			var out strings.Builder
			d.print(&out)
			for _, want := range test.want {
				require.Contains(t, out.String(), want)
			}
		})
	}
}

func TestStepsInShort(t *testing.T) {
	cluster := func(coredns, image string) *api.Cluster {
		c := &api.Cluster{}
		c.Spec.Addons = []api.Addon{{Name: "coredns", Version: coredns}, {Name: "vpc-cni", Version: "v1"}}
		c.Spec.Pools = []api.Pool{{Name: "a", ImageID: image}, {Name: "own", ImageID: "ami-own"}}
		return c
	}
	p := &preflight.Plan{Before: cluster("v1", "ami-1"), After: cluster("v2", "ami-2"), Steps: []upgrade.Step{
		{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36"}, {Kind: upgrade.StepAddons}, {Kind: upgrade.StepNodes},
	}}
	require.Equal(t, []string{
		"control plane to 1.36", "add-ons to the versions of the release: coredns", "nodes to the images of the release: a",
	},
		stepsInShort(p))
	p.After = p.Before
	require.Equal(t, []string{"control plane to 1.36"}, stepsInShort(p))
}

func TestRoughly(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0m": time.Second, "5m": 5*time.Minute + time.Second, "2h1m": 121 * time.Minute, "1d2h": 26*time.Hour + time.Minute,
	} {
		require.Equal(t, want, roughly(d))
	}
}
