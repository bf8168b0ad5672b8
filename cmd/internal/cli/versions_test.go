package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// Parts that an upgrade did not reach still have its versions as targets. Every part shows its current version.
func TestVersionsOfUnfinishedUpgrades(t *testing.T) {
	release := func(name, version, image, coredns string) *api.Release {
		r := &api.Release{}
		r.Metadata.Name, r.Spec.KubernetesVersion, r.Spec.TemplateVersion = name, version, "v1"
		r.Spec.Images = map[string]string{"amd64": image}
		r.Spec.Addons = []api.Addon{{Name: "coredns", Version: coredns}}
		return r
	}
	current, next := release("1.36-1", "1.36", "ami-36", "v1"), release("1.37-1", "1.37", "ami-37", "v2")
	deployed := func(pin, version, image, coredns string) map[string]stack.Deployed {
		return map[string]stack.Deployed{
			names.ControlPlane: {
				Tags: map[string]string{names.TagRelease: pin + "@" + pin}, Outputs: map[string]string{"KubernetesVersion": version},
			},
			names.PoolPrefix + "a": {Outputs: map[string]string{"ImageId": image}},
			names.NodeAddons:       {Outputs: map[string]string{render.AddonOutput("coredns"): coredns}},
		}
	}
	at := time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC)
	begins, stays := deployed("1.36-1", "1.36", "ami-36", "v1"), moves{"1.36-1", ""}
	tests := map[string]struct {
		upgrade  status.Upgrade
		spec     string
		deployed map[string]stack.Deployed
		due      string
		release  moves
		plane    moves
		pool     moves
		addon    moves
	}{
		"blocked": {
			upgrade: status.Upgrade{Phase: "Blocked", To: "1.37-1", ToVersion: "1.37", Origin: "Spec"}, spec: "1.37-1", deployed: begins,
			due: "Blocked: see drover status", release: moves{"1.36-1", "1.37-1"}, plane: moves{"1.36", "1.37"}, pool: moves{"ami-36", "ami-37"},
			addon: moves{"v1", "v2"},
		},
		"missed": {
			upgrade: status.Upgrade{Phase: "Missed", To: "1.37-1", Origin: "Spec"}, spec: "1.37-1", deployed: begins,
			due: "Missed: see drover status", release: moves{"1.36-1", "1.37-1"}, plane: moves{"1.36", "1.37"}, pool: moves{"ami-36", "ami-37"},
			addon: moves{"v1", "v2"},
		},
		"blocked, and no longer requested": {
			upgrade: status.Upgrade{Phase: "Blocked", To: "1.37-1", ToVersion: "1.37", Origin: "Spec"}, spec: "1.36-1", deployed: begins,
			release: stays, plane: moves{"1.36", ""}, pool: moves{"ami-36", ""}, addon: moves{"v1", ""},
		},
		"blocked, and requested by hand": {
			upgrade: status.Upgrade{Phase: "Blocked", To: "1.37-1", ToVersion: "1.37", Origin: "Command"}, spec: "1.36-1", deployed: begins,
			release: stays, plane: moves{"1.36", ""}, pool: moves{"ami-36", ""}, addon: moves{"v1", ""},
		},
		"stopped after the control plane": {
			upgrade: status.Upgrade{
				Phase: "Stopped", To: "1.37-1", ToVersion: "1.37", Origin: "Channel",
			},
			spec: "1.36-1", deployed: deployed("1.36-1", "1.37", "ami-36", "v1"), due: "Stopped: see drover status",
			release: moves{"1.36-1", "1.37-1"}, plane: moves{"1.37", ""}, pool: moves{"ami-36", "ami-37"}, addon: moves{"v1", "v2"},
		},
		"stopped at the nodes, after all other parts changed": {
			upgrade: status.Upgrade{Phase: "Stopped", To: "1.37-1", ToVersion: "1.37", Origin: "Spec"}, spec: "1.37-1",
			deployed: deployed("1.37-1", "1.37", "ami-36", "v2"), due: "Stopped: see drover status", release: moves{"1.37-1", ""},
			plane: moves{"1.37", ""}, pool: moves{"ami-36", "ami-37"}, addon: moves{"v2", ""},
		},
		"to another Kubernetes version with the same release": {
			upgrade: status.Upgrade{Phase: "Running", To: "1.36-1", ToVersion: "1.37", Origin: "Spec"}, spec: "1.36-1", deployed: begins,
			due: "Running", release: stays, plane: moves{"1.36", "1.37"}, pool: moves{"ami-36", ""}, addon: moves{"v1", ""},
		},
		"scheduled, and paused": {
			upgrade: status.Upgrade{Phase: "Scheduled", To: "1.37-1", ToVersion: "1.37", Origin: "Spec", At: &at}, spec: "paused",
			deployed: begins, due: "paused", release: moves{"1.36-1", "1.37-1"}, plane: moves{"1.36", "1.37"}, pool: moves{"ami-36", "ami-37"},
			addon: moves{"v1", "v2"},
		},
		"done": {
			upgrade: status.Upgrade{Phase: "Done", To: "1.36-1", ToVersion: "1.36", Origin: "Spec"}, spec: "1.36-1", deployed: begins,
			release: stays, plane: moves{"1.36", ""}, pool: moves{"ami-36", ""}, addon: moves{"v1", ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &api.Cluster{}
			spec.Spec.Paused = test.spec == "paused"
			spec.Spec.Release.Name, spec.Spec.Pools = test.spec, []api.Pool{{Name: "a", Architecture: api.AMD64}}
			r := &fleetReader{c: NewCell(aws.Config{Region: "eu-west-1"}, "aws", "1"), stacks: map[string]stack.Deployed{},
				releases: map[string]*api.Release{
					names.PinnedRelease("1.36-1"): current, names.PinnedRelease("1.37-1"): next, names.ReleaseSpec("1.37-1"): next,
				}}
			v := ClusterVersions{Upgrade: &test.upgrade}
			v.Release.Current, _ = plan.Pin(test.deployed)
			v.ControlPlane.Current = plan.KubernetesVersion(test.deployed)
			v.Pools = []poolMove{{namedVersion: namedVersion{"a", moves{Current: plan.Images(test.deployed)["a"]}}}}
			require.NoError(t, r.setParts(t.Context(), &v, spec, test.deployed))
			require.Equal(t, test.due, v.Due)
			require.Equal(t, test.release, v.Release)
			require.Equal(t, planeMove{moves: test.plane}, v.ControlPlane)
			require.Equal(t, []poolMove{{namedVersion: namedVersion{"a", test.pool}}}, v.Pools)
			require.Equal(t, []namedVersion{{"coredns", test.addon}}, v.Addons)
		})
	}
}

// The table shows the upgrade in flight, the next upgrade, and new add-ons.
func TestVersionsOfNextUpgrade(t *testing.T) {
	release := func(name, version string, addons ...api.Addon) *api.Release {
		r := &api.Release{}
		r.Metadata.Name, r.Spec.KubernetesVersion, r.Spec.TemplateVersion, r.Spec.Addons = name, version, "v1", addons
		return r
	}
	coredns, agent := api.Addon{Name: "coredns", Version: "v1"}, api.Addon{Name: "eks-pod-identity-agent", Version: "v9"}
	r := &fleetReader{c: NewCell(aws.Config{Region: "eu-west-1"}, "aws", "1"), releases: map[string]*api.Release{
		names.PinnedRelease("1.36-1"): release("1.36-1", "1.36", coredns), names.ReleaseSpec("1.37-1"): release("1.37-1", "1.37", coredns, agent),
	}}
	at := time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC)
	v := ClusterVersions{
		Cluster: "demo", Release: moves{Current: "1.36-1"}, ControlPlane: planeMove{moves: moves{Current: "1.36"}},
		Upgrade:     &status.Upgrade{Phase: "Running", To: "1.37-1", Started: &at},
		NextUpgrade: &status.Upgrade{Phase: "Scheduled", To: "1.37-2", Origin: "At", At: &at},
	}
	require.NoError(t, r.setParts(t.Context(), &v, &api.Cluster{}, map[string]stack.Deployed{
		names.ControlPlane: {Tags: map[string]string{names.TagRelease: "1.36-1@1.36-1"}, Outputs: map[string]string{"KubernetesVersion": "1.36"}},
		names.NodeAddons:   {Outputs: map[string]string{render.AddonOutput("coredns"): "v1"}},
	}))
	var b strings.Builder
	(&display{out: &b, now: at.Add(-73 * time.Hour)}).parts([]ClusterVersions{v})
	require.Regexp(t, `(?m)^demo +release +1\.36-1 +1\.37-1 +Running, then 1\.37-2 in 3d \(At\) +-$`, b.String())
	require.Contains(t, v.Due, "2026-11-23T22:00:00Z", "documents have the time itself")
	require.Regexp(t, `(?m)^demo +add-on coredns +v1 +- +- +-$`, b.String())
	require.Regexp(t, `(?m)^demo +add-on eks-pod-identity-agent +- +v9 +- +-$`, b.String())
}

func TestUpgradesInAStatus(t *testing.T) {
	at := func(minute int) *time.Time {
		t := time.Date(2026, 11, 20, 12, minute, 0, 0, time.UTC)
		return &t
	}
	done := status.Upgrade{
		Phase: "Done", From: "1.35-1", FromVersion: "1.35", To: "1.36-1", ToVersion: "1.36", Origin: "Channel", Started: at(0), Ended: at(30),
	}
	var b strings.Builder
	d := &display{out: &b, now: *at(55)}
	d.upgrades(status.Status{})
	require.Empty(t, b.String())

	running := status.Upgrade{
		Phase: "Running", From: "1.36-1", FromVersion: "1.36", To: "1.37-1", ToVersion: "1.37", Origin: "Command", Started: at(40),
		Message: "the nodes are replaced",
		Steps: []status.UpgradeStep{
			{Name: "control plane to 1.37", Started: at(41), Ended: at(50)}, {Name: "nodes", Started: at(50)}, {Name: "more"},
		},
		Checks: []status.Check{{Name: "BudgetsAllow", Message: "shop/web allows nothing", Next: "Raise it."}}, Checked: at(40),
		Images: map[string]string{"workers": "ami-36", "spot": "ami-own"},
	}
	next := status.Upgrade{Phase: "Delayed", From: "1.37-1", To: "1.37-2", Origin: "At", At: at(45), Message: "it waits"}
	d.upgrades(status.Status{Upgrade: &running, NextUpgrade: &next, Upgrades: []status.Upgrade{done}})
	require.Equal(t, `
upgrade Running: 1.36-1 (Kubernetes 1.36) → 1.37-1 (Kubernetes 1.37), requested by Command, began 15m ago: the nodes are replaced
  STEP                   PROGRESS
  control plane to 1.37  done in 9m0s
  nodes                  running for 5m
  more                   pending
  found 15m ago (a dry run checks again):
  BudgetsAllow warning: shop/web allows nothing
    → Raise it.
  pool spot had ami-own
  pool workers had ami-36
then Delayed: 1.37-1 → 1.37-2, requested by At, due 10m ago: it waits
earlier Done: 1.35-1 (Kubernetes 1.35) → 1.36-1 (Kubernetes 1.36), requested by Channel, ended 25m ago, took 30m0s
`, b.String())

	b.Reset()
	d.upgrades(status.Status{Upgrade: &done, Upgrades: []status.Upgrade{done}})
	require.Equal(t, 1, strings.Count(b.String(), "1.36-1"), "the last upgrade is shown once")

	b.Reset()
	missed := status.Upgrade{Phase: "Missed", From: "1.35-1", To: "1.36-1", Origin: "Command", At: at(5), Execution: "x"}
	d.upgrades(status.Status{Upgrade: &missed, Upgrades: []status.Upgrade{missed}})
	require.Equal(t, 1, strings.Count(b.String(), "1.36-1"), "a missed upgrade is shown once, too")

	require.Equal(t, "Scheduled: 1.36-1, requested by At, in 5m (2026-11-20 12:05 UTC), within five minutes",
		upgradeLine(status.Upgrade{Phase: "Scheduled", To: "1.36-1", Origin: "At", At: at(5)}, firstLine, *at(0)))
	require.Equal(t, []string{"Images blocks: absent"}, CheckLines([]status.Check{{Name: "Images", Blocks: true, Message: "absent"}}))
}

func TestVersionsRow(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	fleet := []ClusterVersions{{
		Cluster: "demo", Release: moves{"1.36-1", "1.37-1"}, ControlPlane: planeMove{moves: moves{"1.36", "1.37"}},
		StandardSupportEnds: "2027-08-03",
		Due:                 "2026-11-23T22:00:00Z (Channel)", Pools: []poolMove{
			{namedVersion: namedVersion{"a", moves{"ami-1", "ami-2"}}}, {namedVersion: namedVersion{"b", moves{"ami-1", ""}}},
		},
		Addons: []namedVersion{{"coredns", moves{"v1", "v2"}}, {"vpc-cni", moves{"v1", "v2"}}},
	}, {Cluster: "other", ControlPlane: planeMove{moves: moves{Current: "1.36"}, Deployed: "1.35"}}}
	show := func(width int) string {
		var out strings.Builder
		(&display{out: &out, now: now, width: width}).versions(fleet)
		return out.String()
	}
	require.Equal(t, `CLUSTER  RELEASE          KUBERNETES                 CHANGES            DUE              SUPPORTED UNTIL
demo     1.36-1 → 1.37-1  1.36 → 1.37                1 pool, 2 add-ons  in 3d (Channel)  2027-08-03
other    -                1.36 (deployed with 1.35)  -                  -                -
`, show(0))
	for _, line := range strings.Split(show(80), "\n") {
		require.LessOrEqual(t, len([]rune(line)), 80, line)
	}
}
