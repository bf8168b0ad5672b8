package releases_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/releases"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// fixture is an account whose EKS offers Kubernetes 1.36 and CoreDNS, and whose EC2 has an image for it. It implements releases.EKS and
// releases.Images.
type fixture struct {
	specs, objects *storetest.Bucket
	state          *store.State
	checker        *releases.Checker
	// failing are the errors of EKS and EC2, by method.
	failing map[string]error
	// described are the names of the add-ons and images that were described.
	described []string
}

func newFixture() *fixture {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	f := &fixture{specs: storetest.NewBucket("specs"), objects: storetest.NewBucket("state"), failing: map[string]error{}}
	now := func() time.Time { return noon }
	f.state = store.NewState(f.objects, store.Silent, now)
	f.checker = &releases.Checker{Specs: f.specs, State: f.state, EKS: f, Images: f, Now: now}
	return f
}

func (f *fixture) Catalog(context.Context) ([]preflight.Version, error) {
	return []preflight.Version{{Version: "1.36", Status: "STANDARD_SUPPORT"}}, f.failing["catalog"]
}

func (f *fixture) Compat(_ context.Context, addons []string) (upgrade.Compat, error) {
	f.described = append(f.described, addons...)
	return upgrade.Compat{
		"coredns":      {{Version: "v1.13.2", Kubernetes: []string{"1.36"}}},
		"external-dns": {{Version: "v0.20.0", Kubernetes: []string{"1.36"}, NeedsPermissions: true}},
	}, f.failing["compat"]
}

func (f *fixture) Recommended(_ context.Context, addon, _ string) ([]api.RecommendedIdentity, error) {
	f.described = append(f.described, "configuration of "+addon)
	return []api.RecommendedIdentity{{ServiceAccount: "dns", Policies: []string{"AmazonRoute53FullAccess"}}}, f.failing["recommended"]
}

func (f *fixture) Images(_ context.Context, ids []string) (map[string]preflight.Image, error) {
	f.described = append(f.described, ids...)
	found := map[string]preflight.Image{}
	for _, image := range []preflight.Image{
		{ID: "ami-0000000000000000a", Name: "amazon-eks-node-al2023-x86_64-standard-1.36-v20261101", Architecture: "x86_64", State: "available",
			Deprecated: noon.Add(time.Hour)},
		{ID: "ami-0000000000000000b", Name: "amazon-eks-node-al2023-arm64-standard-1.36-v20261101", Architecture: "arm64", State: "available",
			Deprecated: noon.Add(-time.Hour)},
	} {
		found[image.ID] = image
	}
	return found, f.failing["images"]
}

// upload uploads a release or the channels and returns its version.
func (f *fixture) upload(name, body string) string {
	return f.specs.Upload(names.ReleaseSpec(name), body)
}

// refuseOnce refuses the next read of a release.
func (f *fixture) refuseOnce() {
	f.specs.OnCall = func(storetest.Call) error {
		f.specs.OnCall = nil
		return storetest.Refusal("AccessDenied")
	}
}

// check checks a release or the channels, and returns the verdict.
func (f *fixture) check(t *testing.T, name string) status.ReleaseStatus {
	t.Helper()
	require.NoError(t, f.checker.Check(t.Context(), name))
	return f.verdict(t, name)
}

func (f *fixture) verdict(t *testing.T, name string) status.ReleaseStatus {
	t.Helper()
	r, err := f.state.ReleaseStatus(t.Context(), name)
	require.NoError(t, err)
	return r.Status
}

const release = `apiVersion: drover.run/v1alpha1
kind: Release
metadata: {name: r1}
spec:
  kubernetesVersion: "1.36"
  images: {amd64: ami-0000000000000000a}
  addons: [{name: coredns, version: v1.13.2}]
  templateVersion: v1
`

// editedRelease returns the release after replacements, given in pairs.
func editedRelease(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(release) }

const channels = `apiVersion: drover.run/v1alpha1
kind: Channels
metadata: {name: channels}
spec: {stable: r1, nodes: {"1.36": r1}}
`
