package upgrade_test

// Dry runs of upgrades, as `drover upgrade --dry-run` makes them: they only read.

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	awsservicequotas "github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/cloudwatch"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/servicequotas"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/survey"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/preflight/collect"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/checker"
)

// requests lists the requests to API servers, in order.
type requests struct {
	next http.RoundTripper

	mu   sync.Mutex
	list []string
}

func (a *requests) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.list = append(a.list, r.Method+" "+r.URL.Path)
	a.mu.Unlock()
	return a.next.RoundTrip(r)
}

// dryRun does what the command does, and asserts that no request changed anything in the account or in the cluster. It returns the names of
// the blocking checks.
func (l *life) dryRun(in events.Upgrade) (plan *preflight.Plan, blocks []string, err error) {
	l.T.Helper()
	in.Cluster = "demo"
	cfg, seen := l.Config(), &requests{next: l.Reach("")}
	offered := eks.New(awseks.NewFromConfig(cfg))
	clusters := kube.NewClusters(cfg, kube.WithTransport(func(string) http.RoundTripper {
		return seen
	}))
	h := &checker.Checker{
		Specs: s3.NewBucket(s3.NewClient(cfg), harness.SpecsBucket), State: l.State(), EKS: offered, Now: time.Now,
		Stacks:     cloudformation.New(awscloudformation.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), ""),
		Executions: stepfunctions.New(sfn.NewFromConfig(cfg), ""),
	}
	g := &collect.Gatherer{
		Kubernetes: survey.New(clusters), EKS: offered, Groups: autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
		Alarms:   cloudwatch.New(l.CloudWatchClient()),
		Capacity: ec2.New(cfg),
		Quotas:   servicequotas.New(awsservicequotas.NewFromConfig(cfg)), Now: time.Now,
	}
	before, mark := l.objects(), l.Calls.Mark()
	plan, err = h.Preview(l.T.Context(), in)
	if err == nil && len(plan.Steps) > 0 {
		facts, err := g.Before(l.T.Context(), plan)
		require.NoError(l.T, err)
		for _, c := range preflight.Before(facts, plan) {
			if c.Blocks {
				blocks = append(blocks, c.Name)
			}
		}
		require.NotEmpty(l.T, seen.list)
	}
	calls := l.Calls.Since(mark)
	require.NotEmpty(l.T, calls)
	for _, call := range calls {
		require.False(l.T, call.Mutating, "%s %s %s", call.Service, call.Action, call.Resource)
	}
	for _, request := range seen.list {
		require.True(l.T, strings.HasPrefix(request, "GET "), request)
	}
	require.Equal(l.T, before, l.objects())
	return plan, blocks, err
}

// objects returns the ETags of the objects in drover's buckets.
func (l *life) objects() map[string]string {
	l.T.Helper()
	all := map[string]string{}
	for _, bucket := range []string{harness.SpecsBucket, harness.StateBucket} {
		entries, err := s3.NewBucket(s3.NewClient(l.Config()), bucket).List(l.T.Context(), "")
		require.NoError(l.T, err)
		for _, e := range entries {
			all[bucket+"/"+e.Key] = e.ETag
		}
	}
	require.NotEmpty(l.T, all)
	return all
}

func TestDryRunChangesNothing(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		plan, blocks, err := l.dryRun(events.Upgrade{Release: "r2"})
		require.NoError(t, err)
		require.Empty(t, blocks)
		require.Len(t, plan.Steps, 3)
		plan, _, err = l.dryRun(events.Upgrade{Release: "r1"})
		require.NoError(t, err)
		require.Empty(t, plan.Steps, "it is there")
		_, _, err = l.dryRun(events.Upgrade{Release: "r9"})
		require.ErrorContains(t, err, "there is no release")
		_, _, err = l.dryRun(events.Upgrade{Rollback: true})
		require.ErrorContains(t, err, "no upgrade that can be rolled back")

		l.RunBlockedPods(3)
		_, blocks, err = l.dryRun(events.Upgrade{Release: "r2"})
		require.NoError(t, err)
		require.Equal(t, []string{"BudgetsAllow"}, blocks)
		l.RunBlockedPods(0)

		// During an upgrade, after it, and for a rollback.
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForUpdate("pool-a")
		l.StepFunctions.Stop(l.UpgradeRecord().Execution, "Stopped", "by an operator")
		l.SettleAll()
		l.Sweep()
		l.SettleAll()
		plan, _, err = l.dryRun(events.Upgrade{})
		require.NoError(t, err)
		require.Len(t, plan.Steps, 1, "what is left of it")
		l.StartUpgrade(events.Upgrade{})
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		plan, _, err = l.dryRun(events.Upgrade{Rollback: true})
		require.NoError(t, err)
		require.Equal(t, upgrade.StepNodesBack, plan.Steps[0].Kind)
	})
}
