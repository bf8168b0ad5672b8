package steps

import (
	"context"
	"time"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// All returns the steps of a run, in order.
func (t *Target) All() []runner.Step {
	smallest := func() spec { return spec{name: t.cluster(), release: t.older.name, cidr: "10.64.0.0/16"} }
	return []runner.Step{
		{
			Name: "account", Title: "the account and region have no drover, which this run would remove",
			Timeout: 5 * time.Minute, Run: t.checkAccount,
		},
		{
			Name: "bootstrap", Title: "make bootstrap prepares the account for the CDK",
			Needs: []string{"account"}, Timeout: 15 * time.Minute, Run: t.bootstrap,
		},
		{
			Name: "deploy", Title: "make deploy deploys drover",
			Needs: []string{"bootstrap"}, Timeout: 30 * time.Minute, Run: t.up,
		},
		{
			Name: "releases", Title: "drover accepts releases of the images and add-on versions that EKS recommends",
			Needs: []string{"deploy"}, Timeout: 10 * time.Minute, Run: t.releases,
		},
		{
			Name: "cluster", Title: "drover creates the smallest cluster",
			Needs: []string{"releases"}, Timeout: time.Hour,
			Run: func(ctx context.Context, log *runner.Log) error { return t.create(ctx, log, smallest()) },
		},
		{
			Name: "node", Title: "its API server reports a node as Ready",
			Needs: []string{"cluster"}, Timeout: 10 * time.Minute,
			Run: func(ctx context.Context, log *runner.Log) error { return t.nodeReady(ctx, log, t.cluster()) },
		},
		{
			Name: "delete", Title: "drover deletes every cluster of this run",
			Timeout: 90 * time.Minute, Cleanup: true, Run: t.remove,
		},
		{
			Name: "leftovers", Title: "no resource of the clusters exists",
			Timeout: 30 * time.Minute, Cleanup: true, Run: t.nothingLeft,
		},
		{
			Name: "destroy", Title: "make destroy removes drover and keeps its buckets",
			Needs: []string{"deploy"}, Timeout: 30 * time.Minute, Run: t.down,
		},
		{
			Name: "deploy-again", Title: "make deploy brings drover back",
			Needs: []string{"destroy"}, Timeout: 30 * time.Minute, Run: t.up,
		},
		{
			Name: "destroy-all", Title: "make destroy-all removes everything of drover",
			Timeout: 45 * time.Minute, Cleanup: true, Run: t.downAll,
		},
	}
}

// Cleanup returns the steps that remove what an earlier run made.
func (t *Target) Cleanup() (steps []runner.Step) {
	for _, step := range t.All() {
		if step.Cleanup {
			steps = append(steps, step)
		}
	}
	return steps
}
