package steps

import (
	"context"
	"time"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// All returns the steps of a run, in order.
func (t *Target) All() []runner.Step {
	onFirst := func(run func(context.Context, *runner.Log, string) error) func(context.Context, *runner.Log) error {
		return func(ctx context.Context, log *runner.Log) error { return run(ctx, log, t.cluster()) }
	}
	before := []runner.Step{
		{
			Name: "doctor", Title: "drover doctor finds nothing that blocks drover or the clusters of this run",
			Timeout: 5 * time.Minute, Run: t.examine,
		},
		{
			Name: "account", Title: "the account and region have no drover, which this run would remove",
			Timeout: 5 * time.Minute, Run: t.checkAccount,
		},
		t.prepareQuestions(),
	}
	before = append(before, questionSteps(t.questionsAlone())...)
	before = append(before, []runner.Step{
		{
			Name: "bootstrap", Title: "make bootstrap prepares the account for the CDK",
			Needs: []string{"doctor", "account"}, Timeout: 15 * time.Minute, Run: t.bootstrap,
		},
		{
			Name: "deploy", Title: "make deploy deploys drover",
			Needs: []string{"bootstrap"}, Timeout: 30 * time.Minute, Run: t.deploy,
		},
		{
			Name: "releases", Title: "drover accepts releases of the images and add-on versions that EKS recommends",
			Needs: []string{"deploy"}, Timeout: 10 * time.Minute, Run: t.releases,
		},
		{
			Name: "cluster", Title: "drover creates the smallest cluster",
			Needs: []string{"releases"}, Timeout: time.Hour,
			Run: func(ctx context.Context, log *runner.Log) error { return t.create(ctx, log, t.smallest()) },
		},
		{
			Name: "node", Title: "its API server reports a node as Ready",
			Needs: []string{"cluster"}, Timeout: 10 * time.Minute,
			Run: onFirst(t.nodeReady),
		},
		{
			Name: "pod-identity", Title: "a pod has the identity of its association",
			Needs: []string{"node"}, Timeout: 15 * time.Minute, Run: onFirst(t.podIdentity),
		},
	}...)
	return append(append(before, questionSteps(t.questionsOfClusters())...), []runner.Step{
		{
			Name: "roll", Title: "drover replaces the nodes under a disruption budget",
			Needs: []string{"node"}, Timeout: time.Hour, Run: onFirst(t.roll),
		},
		{
			Name: "upgrade", Title: "drover upgrades the cluster by one minor version under a disruption budget",
			Needs: []string{"node"}, Timeout: 2 * time.Hour, Run: onFirst(t.upgrade),
		},
		{
			Name: "back", Title: "drover rolls that upgrade back under a disruption budget",
			Needs: []string{"upgrade"}, Timeout: 2 * time.Hour, Run: onFirst(t.rollBack),
		},
		{
			Name: "private", Title: "drover creates a private cluster, and its API server answers through the relay",
			Needs: []string{"releases"}, Timeout: time.Hour, Run: t.private,
		},
		{
			Name: "delete", Title: "drover deletes every cluster of this run",
			Timeout: 2 * time.Hour, Cleanup: true, Run: t.remove,
		},
		{
			Name: "force", Title: "CloudFormation deletes what drover did not delete",
			Timeout: 90 * time.Minute, Cleanup: true, Run: t.force,
		},
		{
			Name: "leftovers", Title: "no resource of the clusters exists",
			Timeout: 30 * time.Minute, Cleanup: true, Run: t.nothingLeft,
		},
		{
			Name: "destroy", Title: "make destroy removes drover and keeps its buckets",
			Needs: []string{"deploy"}, Timeout: 30 * time.Minute, Run: t.destroy,
		},
		{
			Name: "deploy-again", Title: "make deploy brings drover back",
			Needs: []string{"destroy"}, Timeout: 30 * time.Minute, Run: t.deploy,
		},
		{
			Name: "destroy-all", Title: "make destroy-all removes everything of drover",
			Timeout: 45 * time.Minute, Cleanup: true, Run: t.destroyAll,
		},
	}...)
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
