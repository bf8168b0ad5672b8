package upgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// at is a resolved cluster of a Kubernetes version with add-ons, each "name version".
func at(kubernetes string, addons ...string) *api.Cluster {
	c := &api.Cluster{}
	c.Spec.KubernetesVersion = kubernetes
	for _, addon := range addons {
		name, version, _ := strings.Cut(addon, " ")
		c.Spec.Addons = append(c.Spec.Addons, api.Addon{Name: name, Version: version})
	}
	return c
}

// lines returns each step as one line.
func lines(steps []Step) (list []string) {
	for _, s := range steps {
		line := fmt.Sprintf("%s %s", s.Kind, s.KubernetesVersion)
		if len(s.Addons) > 0 {
			line += fmt.Sprint(" ", s.Addons)
		}
		list = append(list, line)
	}
	return list
}

// on is a version of an add-on.
func on(version string, kubernetes ...string) AddonVersion {
	return AddonVersion{Version: version, Kubernetes: kubernetes}
}

var catalog = Compat{
	"coredns": {
		on("v4", "1.36", "1.37"), on("v3", "1.35", "1.36"), on("v2", "1.34", "1.35"), on("v1", "1.33", "1.34"),
	},
	"cni": {on("v9", "1.33", "1.34", "1.35", "1.36", "1.37")},
	"dns": {
		on("v5", "1.36"), on("v4", "1.35"), on("v3", "1.33", "1.34", "1.35"), on("v2", "1.33", "1.34"),
		on("v1", "1.33"),
	},
}

func TestSteps(t *testing.T) {
	tests := map[string]struct {
		from, to *api.Cluster
		want     []string
	}{
		"the same Kubernetes version moves add-ons and nodes": {
			at("1.36", "cni v9"), at("1.36", "cni v9"), []string{"Addons 1.36", "Nodes 1.36"},
		},
		"one minor version": {
			at("1.36", "coredns v4", "cni v9"), at("1.37", "coredns v4", "cni v9"),
			[]string{"ControlPlane 1.37", "Addons 1.37", "Nodes 1.37"},
		},
		"two are made one by one": {
			at("1.34"), at("1.36"), []string{"ControlPlane 1.35", "ControlPlane 1.36", "Addons 1.36", "Nodes 1.36"},
		},
		"an add-on that does not run on the next version goes first": {
			at("1.35", "coredns v2"), at("1.36", "coredns v3"),
			[]string{"AddonsFirst 1.35 map[coredns:v3]", "ControlPlane 1.36 map[coredns:v3]", "Addons 1.36", "Nodes 1.36"},
		},
		"an intermediate version if the last one does not run yet": {
			at("1.34", "coredns v1"), at("1.37", "coredns v4"),
			[]string{
				"AddonsFirst 1.34 map[coredns:v2]", "ControlPlane 1.35 map[coredns:v2]", "AddonsFirst 1.35 map[coredns:v3]",
				"ControlPlane 1.36 map[coredns:v3]", "AddonsFirst 1.36 map[coredns:v4]", "ControlPlane 1.37 map[coredns:v4]", "Addons 1.37",
				"Nodes 1.37",
			},
		},
		"the wanted version, although a newer one runs on both": {
			at("1.33", "dns v1"), at("1.34", "dns v2"),
			[]string{"AddonsFirst 1.33 map[dns:v2]", "ControlPlane 1.34 map[dns:v2]", "Addons 1.34", "Nodes 1.34"},
		},
		"the wanted version, although none runs on both": {
			at("1.35", "dns v3"), at("1.36", "dns v4"),
			[]string{"AddonsFirst 1.35 map[dns:v4]", "ControlPlane 1.36 map[dns:v4]", "Addons 1.36", "Nodes 1.36"},
		},
		"no version before the control plane if none runs on the first": {
			at("1.35", "dns v3"), at("1.36", "dns v5"), []string{"ControlPlane 1.36", "Addons 1.36", "Nodes 1.36"},
		},
		"the oldest versions": {at("1.0"), at("1.1"), []string{"ControlPlane 1.1", "Addons 1.1", "Nodes 1.1"}},
		"kube-proxy three minors older stays": {
			at("1.36", "kube-proxy v1.34.0"), at("1.37", "kube-proxy v1.34.0"), []string{"ControlPlane 1.37", "Addons 1.37", "Nodes 1.37"},
		},
		"an add-on that EKS does not know keeps its version": {
			at("1.35", "own v1"), at("1.36", "own v2"), []string{"ControlPlane 1.36", "Addons 1.36", "Nodes 1.36"},
		},
		"kube-proxy is as old as allowed": {
			at("1.33", "kube-proxy v1.33.1-eksbuild.1"), at("1.36", "kube-proxy v1.36.0-eksbuild.1"),
			[]string{"ControlPlane 1.34", "ControlPlane 1.35", "ControlPlane 1.36", "Addons 1.36", "Nodes 1.36"},
		},
		"kube-proxy is never newer": {
			at("1.35", "kube-proxy v1.32.1-eksbuild.1"), at("1.36", "kube-proxy v1.36.0-eksbuild.1"),
			[]string{"ControlPlane 1.36", "Addons 1.36", "Nodes 1.36"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			steps, err := Steps(test.from, test.to, catalog)
			require.NoError(t, err)
			require.Equal(t, test.want, lines(steps))
		})
	}
}

// An upgrade stopped after the update of the control plane, before that of kube-proxy. The next route updates kube-proxy to
// an intermediate version in time.
func TestStepsAfterAStoppedUpgrade(t *testing.T) {
	steps, err := Steps(at("1.36", "kube-proxy v1.33.0"), at("1.38", "kube-proxy v1.38.0"), proxies())
	require.NoError(t, err)
	require.Equal(t, []string{
		"AddonsFirst 1.36 map[kube-proxy:v1.36.0]", "ControlPlane 1.37 map[kube-proxy:v1.36.0]", "ControlPlane 1.38 map[kube-proxy:v1.36.0]",
		"Addons 1.38", "Nodes 1.38",
	}, lines(steps))
}

func TestStepsRefuses(t *testing.T) {
	for name, test := range map[string]struct{ from, to, err string }{
		"a downgrade":                 {"1.37", "1.36", "only a rollback downgrades Kubernetes"},
		"more than the skew of nodes": {"1.33", "1.37", "upgrade to 1.36 first"},
		"no version":                  {"1.36", "2.0", "both must be minor versions"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Steps(at(test.from), at(test.to), nil)
			require.ErrorContains(t, err, test.err)
		})
	}
}

// The error suggests only versions that EKS offers.
func TestTooFar(t *testing.T) {
	for name, test := range map[string]struct {
		offered []string
		says    string
	}{
		"the offers are unknown": {nil, "during the upgrade: upgrade to 1.38 first"},
		"all are offered":        {[]string{"1.35", "1.44", "1.36"}, "during the upgrade: upgrade to 1.38 first"},
		"the next is not offered": {
			[]string{"1.37", "1.36", "1.35"}, "during the upgrade: EKS offers up to 1.37 here, upgrade to 1.37 first",
		},
		"no newer version is offered": {
			[]string{"1.35", "1.34"}, "during the upgrade: EKS offers up to 1.35 here, which the cluster already runs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, &TooFar{From: "1.35", To: "1.44", Offered: test.offered}, test.says)
		})
	}
}

func TestRollbackSteps(t *testing.T) {
	steps, err := RollbackSteps(at("1.37", "kube-proxy v1.37.0-eksbuild.1"), at("1.36", "kube-proxy v1.36.0-eksbuild.1"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"NodesBack 1.37", "AddonsFirst 1.37 map[kube-proxy:v1.36.0-eksbuild.1]", "ControlPlane 1.36 map[kube-proxy:v1.36.0-eksbuild.1]",
		"Addons 1.36", "Nodes 1.36",
	}, lines(steps))
	for _, step := range steps {
		require.True(t, step.NodesRolledBack, step.Kind)
	}
	steps, err = RollbackSteps(at("1.37"), at("1.37"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"NodesBack 1.37", "Addons 1.37", "Nodes 1.37"}, lines(steps), "of the same version")
	steps, err = RollbackSteps(at("1.1"), at("1.0"), nil)
	require.NoError(t, err)
	require.Len(t, steps, 4)
	_, err = RollbackSteps(at("1.36"), at("1.37"), nil)
	require.ErrorContains(t, err, "by one minor version")
	_, err = RollbackSteps(at("1.37"), at("1.35"), nil)
	require.ErrorContains(t, err, "by one minor version only. Continue with ")
}

// An external update of the control plane completes some of the steps.
func TestSkipReached(t *testing.T) {
	steps, err := Steps(at("1.34", "coredns v1"), at("1.37", "coredns v4"), catalog)
	require.NoError(t, err)
	rest := []string{
		"ControlPlane 1.36 map[coredns:v3]", "AddonsFirst 1.36 map[coredns:v4]", "ControlPlane 1.37 map[coredns:v4]", "Addons 1.37", "Nodes 1.37",
	}
	require.Equal(t, lines(steps), lines(SkipReached(steps, 0, "1.34")), "the version is the same")
	require.Equal(t, append([]string{"ControlPlane 1.35 map[coredns:v2]", "AddonsFirst 1.35 map[coredns:v3]"}, rest...),
		lines(SkipReached(steps, 0, "1.35")))
	require.Equal(t, rest, lines(SkipReached(steps, 0, "1.36")), "two versions newer")
	require.Equal(t, append([]string{"AddonsFirst 1.34 map[coredns:v2]", "ControlPlane 1.35 map[coredns:v2]"}, rest...),
		lines(SkipReached(steps, 2, "1.36")), "completed steps stay")
	require.Equal(t, lines(steps), lines(SkipReached(steps, 2, "1.35")))
	require.Equal(t, lines(steps), lines(SkipReached(steps, len(steps), "1.37")))
	require.Equal(t, lines(steps), lines(SkipReached(steps, 0, "1.38")), "newer than all steps: the checks report it")

	back, err := RollbackSteps(at("1.36"), at("1.35"), catalog)
	require.NoError(t, err)
	require.Equal(t, lines(back), lines(SkipReached(back, 0, "1.35")), "nodes are rolled back first")
}

// Completed steps before the next update of the control plane may have been undone, so they are planned again. The first keeps its start.
func TestReplan(t *testing.T) {
	steps, err := Steps(at("1.34", "coredns v1"), at("1.36", "coredns v3"), catalog)
	require.NoError(t, err)
	require.Equal(t, []StepKind{StepAddonsFirst, StepControlPlane, StepAddonsFirst, StepControlPlane, StepAddons, StepNodes}, kinds(steps))
	back, err := RollbackSteps(at("1.36", "kube-proxy v1.36.0"), at("1.35", "kube-proxy v1.35.0"), proxies())
	require.NoError(t, err)
	require.Equal(t, []StepKind{StepNodesBack, StepAddonsFirst, StepControlPlane, StepAddons, StepNodes}, kinds(back))
	for name, test := range map[string]struct {
		steps    []Step
		open     int
		deployed string
		want     int
	}{
		"no steps":                                   {nil, 0, "1.34", 0},
		"before the first update":                    {steps, 0, "1.34", 0},
		"during the first update":                    {steps, 1, "1.34", 0},
		"after the first update":                     {steps, 1, "1.35", -1},
		"between two updates":                        {steps, 2, "1.35", 2},
		"during the second update":                   {steps, 3, "1.35", 2},
		"after the second update":                    {steps, 4, "1.36", -1},
		"during the last step":                       {steps, 5, "1.36", -1},
		"after all steps":                            {steps, 6, "1.36", -1},
		"rollback, during that of the control plane": {back, 2, "1.36", 0},
		"rollback, after that of the control plane":  {back, 2, "1.35", -1},
		"rollback, before the nodes":                 {back, 0, "1.36", 0},
		"rollback, after all steps":                  {back, 3, "1.35", -1},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, FirstToReplan(test.steps, test.open, test.deployed)) })
	}

	steps[0].Started, steps[2].Started = noon, noon.Add(time.Hour)
	replanned, err := Steps(at("1.35", "coredns v3"), at("1.36", "coredns v3"), catalog)
	require.NoError(t, err)
	all := Replan(steps, 2, replanned)
	require.Equal(t, []StepKind{StepAddonsFirst, StepControlPlane, StepControlPlane, StepAddons, StepNodes}, kinds(all))
	require.Equal(t, noon, all[0].Started)
	require.Equal(t, noon.Add(time.Hour), all[2].Started)
	require.Zero(t, replanned[0].Started)
	require.Equal(t, replanned, Replan(nil, 0, replanned))
}

func kinds(steps []Step) (all []StepKind) {
	for _, s := range steps {
		all = append(all, s.Kind)
	}
	return all
}
