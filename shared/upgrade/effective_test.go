package upgrade

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func release(name, kubernetes, image, proxy string) *api.Release {
	r := &api.Release{Metadata: api.Metadata{Name: name}}
	r.Spec = api.ReleaseSpec{
		KubernetesVersion: kubernetes, Images: map[string]string{"amd64": image}, TemplateVersion: "v1",
		Addons: []api.Addon{{Name: "kube-proxy", Version: proxy}},
	}
	return r
}

// spec is a cluster with two pools and an add-on. The second pool states its image, and the spec the add-on's version.
func spec(name string) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: "demo"}}
	c.Spec.Release.Name = name
	c.Spec.Pools = []api.Pool{{Name: "a", Architecture: api.AMD64}, {Name: "b", Architecture: api.AMD64, ImageID: "ami-own"}}
	c.Spec.Addons = []api.Addon{{Name: "own", Version: "v1"}}
	return c
}

// what is a resolved cluster in one line.
func what(c *api.Cluster) string {
	return fmt.Sprintf("%s %s a=%s b=%s %s own=%s", c.Spec.Release.Name, c.Spec.KubernetesVersion, c.Spec.Pools[0].ImageID,
		c.Spec.Pools[1].ImageID,
		c.Spec.Addons[0].Version, c.Spec.Addons[1].Version)
}

func TestEffective(t *testing.T) {
	old, next := release("r1", "1.36", "ami-old", "v1.36"), release("r2", "1.37", "ami-new", "v1.37")
	for name, test := range map[string]struct {
		step Step
		next *api.Release
		want string
	}{
		"without a step the old release counts": {Step{KubernetesVersion: "1.36"}, nil, "r1 1.36 a=ami-old b=ami-own v1.36 own=v1"},
		"add-ons that go first": {
			Step{Kind: StepAddonsFirst, KubernetesVersion: "1.36", Addons: map[string]string{"kube-proxy": "v1.36.9", "own": "v2"}}, next,
			"r1 1.36 a=ami-old b=ami-own v1.36.9 own=v2",
		},
		"the control plane": {Step{Kind: StepControlPlane, KubernetesVersion: "1.37"}, next, "r1 1.37 a=ami-old b=ami-own v1.36 own=v1"},
		"the add-ons":       {Step{Kind: StepAddons, KubernetesVersion: "1.37"}, next, "r1 1.37 a=ami-old b=ami-own v1.37 own=v1"},
		"the nodes":         {Step{Kind: StepNodes, KubernetesVersion: "1.37"}, next, "r2 1.37 a=ami-new b=ami-own v1.37 own=v1"},
		"the nodes back": {
			Step{Kind: StepNodesBack, KubernetesVersion: "1.37", NodesRolledBack: true}, next, "r1 1.37 a=ami-new b=ami-own v1.36 own=v1",
		},
		"the control plane back, and the release with it": {
			Step{Kind: StepControlPlane, KubernetesVersion: "1.36", NodesRolledBack: true}, next, "r2 1.36 a=ami-new b=ami-own v1.36 own=v1",
		},
		"the add-ons after it": {
			Step{Kind: StepAddons, KubernetesVersion: "1.36", NodesRolledBack: true}, next, "r2 1.36 a=ami-new b=ami-own v1.37 own=v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := spec("r2")
			in.Spec.KubernetesVersion = "1.37"
			resolved, errs := Effective(in, old, test.next, test.step)
			require.Nil(t, errs)
			require.Equal(t, test.want, what(resolved))
			require.Equal(t, "r2", in.Spec.Release.Name, "the spec itself stays")
			require.Equal(t, "v1.36", old.Spec.Addons[0].Version)
		})
	}
}

func TestKeep(t *testing.T) {
	old := release("r1", "1.36", "ami-old", "v1.36")
	images, addons := map[string]string{"a": "ami-a", "b": "ami-b", "deleted": "ami-c"}, map[string]string{"kube-proxy": "v1.35", "own": "v0"}
	for name, test := range map[string]struct {
		keep Keep
		step Step
		want string
	}{
		"nothing":                           {Keep{}, Step{}, "a=ami-old b=ami-own v1.36 own=v1"},
		"images":                            {Keep{Images: true, OverridesSpec: true}, Step{}, "a=ami-a b=ami-b v1.36 own=v1"},
		"add-ons":                           {Keep{Addons: true, OverridesSpec: true}, Step{}, "a=ami-old b=ami-own v1.35 own=v0"},
		"only what the spec does not state": {Keep{Images: true, Addons: true}, Step{}, "a=ami-a b=ami-own v1.35 own=v1"},
		"what the step forces": {
			Keep{Addons: true, OverridesSpec: true}, Step{Addons: map[string]string{"own": "v7"}}, "a=ami-old b=ami-own v1.35 own=v7",
		},
		"before the nodes' step":     {Step{Kind: StepAddons}.keep(), Step{Kind: StepAddons}, "a=ami-a b=ami-b v1.36 own=v1"},
		"at the nodes' step nothing": {Step{Kind: StepNodes}.keep(), Step{Kind: StepNodes}, "a=ami-old b=ami-own v1.36 own=v1"},
		"at that of the way back":    {Step{Kind: StepNodesBack}.keep(), Step{Kind: StepNodesBack}, "a=ami-old b=ami-own v1.35 own=v0"},
		"before the add-ons' step":   {Step{Kind: StepControlPlane}.keep(), Step{Kind: StepControlPlane}, "a=ami-a b=ami-b v1.35 own=v0"},
	} {
		t.Run(name, func(t *testing.T) {
			in, step := spec("r1"), test.step
			step.KubernetesVersion = "1.36"
			resolved, errs := Effective(in, old, nil, step)
			require.Nil(t, errs)
			test.keep.Apply(in, resolved, step, images, addons)
			require.Equal(t, "r1 1.36 "+test.want, what(resolved))
			require.Len(t, images, 3, "what was given stays")
		})
	}
}

func TestPoolsKeepTheirTemplatesUntilItIsTheirTurn(t *testing.T) {
	next := release("r2", "1.37", "ami-new", "v1.37")
	next.Spec.TemplateVersion = "v2"
	deployed := map[string]string{"a": "v1", "b": "v2"}
	stated := func(c *api.Cluster) { c.Spec.TemplateVersion = "v3" }
	for name, test := range map[string]struct {
		spec func(*api.Cluster)
		next *api.Release
		step Step
		keep Keep
		want map[string]string
	}{
		"no upgrade in flight":                        {},
		"one that stopped among the nodes":            {keep: Keep{Images: true, Addons: true, OverridesSpec: true}, want: deployed},
		"when the spec now states others":             {spec: stated, keep: Keep{Images: true, OverridesSpec: true}, want: deployed},
		"unless the spec did not request the upgrade": {spec: stated, keep: Keep{Images: true}},
		"the step of the nodes":                       {next: next, step: Step{Kind: StepNodes}, keep: Step{Kind: StepNodes}.keep()},
		"steps before it": {
			next: next, step: Step{Kind: StepAddons}, keep: Step{Kind: StepAddons}.keep(), want: deployed,
		},
		"nodes that are rolled back": {
			next: next, step: Step{Kind: StepNodesBack}, keep: Step{Kind: StepNodesBack}.keep(), want: map[string]string{"a": "v2", "b": "v2"},
		},
		"whose spec states them": {spec: stated, next: next, step: Step{Kind: StepNodesBack}, keep: Step{Kind: StepNodesBack}.keep()},
	} {
		t.Run(name, func(t *testing.T) {
			c := spec("r2")
			if test.spec != nil {
				test.spec(c)
			}
			require.Equal(t, test.want, Templates(c, test.next, test.step, test.keep, deployed))
		})
	}
}
