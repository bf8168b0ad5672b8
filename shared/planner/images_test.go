package planner

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// described are the images of an account. It records the requests.
type described struct {
	images   map[string]preflight.Image
	err      error
	requests [][]string
}

func (d *described) Images(_ context.Context, ids []string) (map[string]preflight.Image, error) {
	d.requests = append(d.requests, ids)
	found := map[string]preflight.Image{}
	for _, id := range ids {
		if image, ok := d.images[id]; ok {
			found[id] = image
		}
	}
	return found, d.err
}

func TestImagesOfPools(t *testing.T) {
	const standard = "amazon-eks-node-al2023-x86_64-standard-1.36-v20261101"
	pools := []api.Pool{
		{Name: "a", Architecture: api.AMD64, ImageID: "ami-a"}, {Name: "b", Architecture: api.AMD64, ImageID: "ami-b"},
		{Name: "same", Architecture: api.AMD64, ImageID: "ami-old"}, {Name: "still", Architecture: api.AMD64, ImageID: "ami-new"},
	}
	given := func() (*described, *Outcome) {
		d := &described{images: map[string]preflight.Image{}}
		for _, id := range []string{"ami-a", "ami-b", "ami-source"} {
			d.images[id] = preflight.Image{ID: id, Name: standard, Architecture: "x86_64", State: "available"}
		}
		spec := api.ClusterSpec{KubernetesVersion: "1.36", Pools: slices.Clone(pools)}
		o := &Outcome{work: work{cluster: "demo", resolved: &api.Cluster{Spec: spec}}}
		o.work.deployed = map[string]stack.Deployed{
			"pool-b": {Outputs: map[string]string{"ImageId": "ami-old"}}, "pool-same": {Outputs: map[string]string{"ImageId": "ami-old"}},
		}
		for _, name := range []string{"pool-a", "pool-b", "pool-same"} {
			o.Plan.Changes = append(o.Plan.Changes, plan.Change{Stack: name, Operation: plan.Update})
		}
		return d, o
	}
	check := func(d *described, o *Outcome) error { return (&Planner{Images: d}).checkImages(t.Context(), o) }

	t.Run("asks once, about images that are not deployed", func(t *testing.T) {
		d, o := given()
		require.NoError(t, check(d, o))
		require.Equal(t, [][]string{{"ami-a", "ami-b"}}, d.requests)
		require.Empty(t, o.Plan.Changes[0].Reasons)
	})
	t.Run("asks nothing without a new image, and in previews", func(t *testing.T) {
		d, o := given()
		o.Plan.Changes = o.Plan.Changes[2:]
		require.NoError(t, check(d, o))
		require.Empty(t, d.requests)
		_, o = given()
		require.NoError(t, (&Planner{}).checkImages(t.Context(), o))
	})
	t.Run("asks about a deployed image of another family", func(t *testing.T) {
		d, o := given()
		o.work.deployed["pool-same"].Outputs["Image"] = "Bottlerocket/Standard/amd64"
		require.Error(t, check(d, o))
		require.Equal(t, []string{"ami-a", "ami-b", "ami-old"}, d.requests[0])
	})
	t.Run("asks about a deployed image of another architecture", func(t *testing.T) {
		d, o := given()
		d.images["ami-old"] = preflight.Image{ID: "ami-old", Name: standard, Architecture: "x86_64", State: "available"}
		o.work.resolved.Spec.Pools[2].Architecture = api.ARM64
		require.ErrorContains(t, check(d, o), "pool same: ami-old ("+standard+") is for x86_64, not for arm64\n")
	})
	t.Run("refuses what does not fit, and names each pool", func(t *testing.T) {
		d, o := given()
		d.images["ami-a"] = preflight.Image{ID: "ami-a", Name: "bottlerocket-aws-k8s-1.36-x86_64-v1.60.1-0", Architecture: "x86_64"}
		delete(d.images, "ami-b")
		err := check(d, o)
		var stopped *Stop
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, status.ReasonChangeRefused, stopped.Reason)
		require.Equal(t, "no stack was changed, because nodes could not join from these images:\n"+
			"pool a: ami-a (bottlerocket-aws-k8s-1.36-x86_64-v1.60.1-0) is an image of Bottlerocket, and not of AL2023\n"+
			"pool b: ami-b does not exist in this region, or is not shared with this account\n"+
			"Name another image in the release or in imageID of the pool, or correct image and architecture of the pool. "+
			"If you change the image itself, or share it, run `drover converge demo` afterwards", err.Error())
	})
	t.Run("refuses an image that EC2 does not launch", func(t *testing.T) {
		d, o := given()
		image := d.images["ami-a"]
		image.State = "disabled"
		d.images["ami-a"] = image
		require.ErrorContains(t, check(d, o), "pool a: ami-a ("+standard+") is disabled, and EC2 launches available images only\n")
	})
	t.Run("follows the source of a copy once", func(t *testing.T) {
		d, o := given()
		d.images["ami-a"] = preflight.Image{ID: "ami-a", Name: "mine", Architecture: "x86_64", State: "available", SourceID: "ami-source"}
		d.images["ami-source"] = preflight.Image{ID: "ami-source", Name: "mine too", SourceID: "ami-b"}
		require.NoError(t, check(d, o))
		require.Equal(t, [][]string{{"ami-a", "ami-b"}, {"ami-source"}}, d.requests)
		require.Equal(t, []status.Reason{{Field: "image of pool a, not verified", New: "ami-a (mine)"}}, o.Plan.Changes[0].Reasons)
		d.images["ami-source"] = preflight.Image{ID: "ami-source", Name: standard, Architecture: "x86_64", State: "available"}
		_, o = given()
		require.NoError(t, check(d, o))
		require.Empty(t, o.Plan.Changes[0].Reasons)
		o.work.resolved.Spec.KubernetesVersion = "1.35"
		require.ErrorContains(t, check(d, o), "pool a: ami-a (mine) has a kubelet newer than Kubernetes 1.35")
	})
	t.Run("fails if EC2 does", func(t *testing.T) {
		d, o := given()
		d.err = errors.New("throttled")
		require.ErrorIs(t, check(d, o), d.err)
	})
}
