package planner

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

const specWithoutPools = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: 1.36-1}
  network: {cidr: 10.0.0.0/16, zones: [us-east-1a, us-east-1b]}
`

const specOfA = specWithoutPools + `  pools:
    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3, rollAt: "2026-11-27T12:00:00Z"}
`

var planTime = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// cluster is one cluster in memory, as planning reads it.
type cluster struct {
	State
	Specs
	status *status.Status
	// objects are those of both buckets by key, versions those of the spec by version.
	objects, versions map[string]string
	// err are the errors of calls: by key, or "status" or "version".
	err map[string]error
	// assignment is nil if no run assigned a release. freezes are read only if they matter.
	assignment *rollout.CellAssignment
	freezes    rollout.CellFreezes
	reads      []string
}

func withSpec(t *testing.T) *cluster {
	t.Helper()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	release, err := os.ReadFile("../../examples/releases/1.36-1.yaml")
	require.NoError(t, err)
	return &cluster{
		status: &status.Status{}, err: map[string]error{},
		objects: map[string]string{names.ClusterSpec("demo"): specOfA, names.ReleaseSpec("1.36-1"): string(release)},
	}
}

func (c *cluster) planner() *Planner {
	return &Planner{Specs: c, State: c, Stacks: noStacks{c}, Now: func() time.Time { return planTime }}
}

func (c *cluster) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	body, found := c.objects[key]
	if !found {
		return store.Object{}, store.ErrNotFound
	}
	return store.Object{Body: []byte(body), Version: "v1"}, c.err[key]
}

func (c *cluster) GetVersion(_ context.Context, key, version string, _ int64) (store.Object, error) {
	if body, found := c.versions[version]; found && key == names.ClusterSpec("demo") {
		return store.Object{Version: version, Body: []byte(body)}, c.err["version"]
	}
	return store.Object{}, cmp.Or(c.err["version"], store.ErrNotFound)
}

func (c *cluster) Status(context.Context, string) (*status.Cluster, error) {
	document := status.New("demo")
	if c.status == nil {
		return document, store.ErrNotFound
	}
	document.Status = *c.status
	return document, c.err["status"]
}

func (c *cluster) Assignment(context.Context, string) (*rollout.CellAssignment, string, error) {
	return c.assignment, "", c.err["assignment"]
}

func (c *cluster) CellFreezes(context.Context) (*rollout.CellFreezes, string, error) {
	c.reads = append(c.reads, "freezes")
	return &c.freezes, "", c.err["freezes"]
}

// noStacks has no stack.
type noStacks struct{ *cluster }

func (noStacks) ListCluster(context.Context, string, []string) (map[string]stack.Deployed, error) {
	return nil, nil
}

func (noStacks) Owners(context.Context, []string) (map[string]string, error) { return nil, nil }

// live is an EKS cluster that exists.
type live struct{ EKS }

func (live) Exists(context.Context, string) (bool, error) { return true, nil }
