package preflight_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	awsservicequotas "github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudwatch"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/servicequotas"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/survey"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/preflight/collect"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// world is a cluster in the local account, with the Kubernetes API in memory. It records the calls.
type world struct {
	*harness.Account
	gatherer *collect.Gatherer
	plan     *preflight.Plan

	mu sync.Mutex
	// called are the actions of AWS, changed those that change something, methods those of Kubernetes.
	called, changed, methods []string
	down                     bool
}

const target = "1.37"

// bubble runs a test in an account in virtual time.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		account := harness.StartWith(t, harness.Options{Bubble: true})
		defer account.Close()
		test(t, start(t, account))
	})
}

func start(t *testing.T, account *harness.Account) *world {
	w := &world{Account: account}
	w.Cluster("demo", "")
	config := w.Config()
	clusters := kube.NewClusters(config, kube.WithTransport(func(string) http.RoundTripper {
		return w
	}))
	w.gatherer = &collect.Gatherer{
		Kubernetes: survey.New(clusters), EKS: eks.New(awseks.NewFromConfig(config)),
		Groups: autoscaling.New(awsautoscaling.NewFromConfig(config)),
		Alarms: cloudwatch.New(awscloudwatch.NewFromConfig(config)), Capacity: ec2.New(config),
		Quotas: servicequotas.New(awsservicequotas.NewFromConfig(config)), Now: time.Now,
	}
	w.plan = plan(t)
	w.OnAnswer(func(call endpoint.Call) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.called = append(w.called, call.Service+":"+call.Action); call.Mutating {
			w.changed = append(w.changed, call.Service+":"+call.Action)
		}
	})
	return w
}

// RoundTrip calls the cluster's API.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.methods = append(w.methods, r.Method)
	down := w.down
	w.mu.Unlock()
	if down {
		return nil, fmt.Errorf("connection refused")
	}
	asked := r.Clone(r.Context())
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	w.API("drover-demo").ServeHTTP(answer, asked)
	return answer.Result(), nil
}

// plan returns an upgrade of the harness's cluster to the next minor version.
func plan(t *testing.T) *preflight.Plan {
	t.Helper()
	spec, errs := api.DecodeCluster("demo.yaml", []byte(harness.Spec("demo", "")))
	require.Empty(t, errs)
	release := func(body string) *api.Release {
		r, errs := api.DecodeRelease("r.yaml", []byte(body))
		require.Empty(t, errs)
		return r
	}
	old, next := release(harness.Release()), release(harness.ReleaseOf(target, "r2"))
	steps := []upgrade.Step{
		{Kind: upgrade.StepControlPlane, KubernetesVersion: target}, {
			Kind: upgrade.StepAddons, KubernetesVersion: target,
		}, {Kind: upgrade.StepNodes, KubernetesVersion: target},
	}
	resolve := func(release *api.Release, step upgrade.Step) *api.Cluster {
		c, errs := upgrade.Effective(spec, old, release, step)
		require.Empty(t, errs)
		return c
	}
	return &preflight.Plan{
		Cluster: "demo", From: upgrade.Target{
			Release: "r1", KubernetesVersion: "1.36",
		}, To: upgrade.Target{Release: "r2", KubernetesVersion: target},
		Steps: steps, Before: resolve(nil, upgrade.Step{KubernetesVersion: "1.36"}), After: resolve(next, steps[2]),
	}
}

func TestBefore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		f, err := w.gatherer.Before(context.Background(), w.plan)
		require.NoError(t, err)

		require.Equal(t, "1.36", f.ControlPlane.Version)
		require.Equal(t, "ACTIVE", f.ControlPlane.Status)
		require.Empty(t, f.ControlPlane.Issues)
		require.GreaterOrEqual(t, len(f.ControlPlane.Subnets), 2)
		require.ElementsMatch(t, []string{"vpc-cni", "coredns"}, names(f.Addons))
		for _, a := range f.Addons {
			require.Equal(t, "ACTIVE", a.Status)
			require.NotEmpty(t, a.Version)
		}
		require.Contains(t, f.Catalog, find(t, f.Catalog, target))
		require.Equal(t, "STANDARD_SUPPORT", find(t, f.Catalog, target).Status)
		require.False(t, find(t, f.Catalog, target).EndOfStandard.IsZero())
		require.True(t, f.Compat.Fits("coredns", "v1.13.2-eksbuild.1", "1.36"))
		require.NotEmpty(t, f.Compat["vpc-cni"])

		group := f.Groups["a"]
		require.Equal(t, "drover-demo-pool-a", group.Name)
		require.Equal(t, 1, group.Desired)
		require.Equal(t, 1, group.InService)
		require.Empty(t, group.Outdated)
		require.Len(t, group.Instances, 1)
		require.Equal(t, w.plan.Before.Spec.Pools[0].ImageID, f.ImageOfInstance[group.Instances[0]])
		for _, id := range slices.Concat(group.Subnets, f.ControlPlane.Subnets) {
			require.Positive(t, f.Subnets[id].Free, id)
		}
		image := w.plan.After.Spec.Pools[0].ImageID
		require.Contains(t, f.Images[image].Name, target)
		require.Equal(t, 2, f.InstanceTypes["m7i.large"].VCPUs)
		quota := f.Quotas["L-1216C47A"]
		require.Equal(t, 2, quota.Used, "the running instances")
		require.Greater(t, quota.Limit, quota.Used)
		require.NotEmpty(t, quota.Name)
		storage := f.Quotas["L-7A658B76"]
		require.Equal(t, 50, storage.Used, "the size of its disk")
		require.Equal(t, 300<<10, storage.Limit)
		clusters := f.Quotas["L-1194D53C"]
		require.Equal(t, "Clusters", clusters.Name)
		require.Equal(t, 1, clusters.Used, "itself")
		require.Equal(t, 1000, clusters.Limit)

		require.Empty(t, f.Unreachable)
		require.Len(t, f.Survey.Nodes, 1)
		require.Equal(t, "a", f.Survey.Nodes[0].Pool)
		require.True(t, f.Survey.Nodes[0].Ready)
		require.NotEmpty(t, f.Survey.Workloads)
		require.False(t, preflight.Blocks(preflight.Before(f, w.plan)), "%+v", preflight.Before(f, w.plan))
	})
}

func names(addons []preflight.Addon) (all []string) {
	for _, a := range addons {
		all = append(all, a.Name)
	}
	return all
}

func find(t *testing.T, catalog []preflight.Version, version string) preflight.Version {
	t.Helper()
	i := slices.IndexFunc(catalog, func(v preflight.Version) bool { return v.Version == version })
	require.GreaterOrEqual(t, i, 0, "%+v", catalog)
	return catalog[i]
}

// A dry run only collects facts, so every call must only read.
func TestCollectOnlyReads(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.alarm(t)
		w.mu.Lock()
		w.called, w.changed = nil, nil
		w.mu.Unlock()
		w.plan.Alarms = []string{"errors"}
		f, err := w.gatherer.Before(context.Background(), w.plan)
		require.NoError(t, err)
		_, err = w.gatherer.After(context.Background(), w.plan)
		require.NoError(t, err)
		preflight.Before(f, w.plan)

		w.mu.Lock()
		defer w.mu.Unlock()
		require.Empty(t, w.changed)
		for _, action := range w.called {
			_, verb, _ := strings.Cut(action, ":")
			require.Regexp(t, "^(Describe|List|Get)", verb, action)
		}
		slices.Sort(w.called)
		require.Equal(t, []string{
			"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities",
			"ec2:DescribeImages", "ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeSubnets", "ec2:DescribeVolumes",
			"eks:DescribeAddon", "eks:DescribeAddonVersions", "eks:DescribeCluster", "eks:DescribeClusterVersions", "eks:DescribeInsight",
			"eks:ListAddons", "eks:ListClusters", "eks:ListInsights",
			"monitoring:DescribeAlarms", "monitoring:ListTagsForResource", "servicequotas:GetServiceQuota",
		}, slices.Compact(w.called), "what the role of the upgrade function must allow")
		require.NotEmpty(t, w.methods)
		for _, method := range w.methods {
			require.Equal(t, http.MethodGet, method)
		}
	})
}

// refusing is a cluster that denies access.
type refusing struct{}

func (refusing) Survey(context.Context, string) (preflight.Survey, error) {
	return preflight.Survey{Budgets: []preflight.Budget{{}}}, fmt.Errorf("demo: %w", collect.ErrForbidden)
}

// A forbidden cluster is no finding. Everything else is known.
func TestForbiddenCluster(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.gatherer.Kubernetes = refusing{}
		f, err := w.gatherer.Before(context.Background(), w.plan)
		require.NoError(t, err)
		require.True(t, f.Forbidden)
		require.Empty(t, f.Unreachable)
		require.Equal(t, preflight.Survey{}, f.Survey)
		require.False(t, preflight.Blocks(preflight.Before(f, w.plan)))
		require.NotEmpty(t, f.Catalog)
	})
}

// A check reports an API that does not answer. If AWS does not answer, that is an error, and the caller retries.
func TestUnreachableAPIs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.mu.Lock()
		w.down = true
		w.mu.Unlock()
		f, err := w.gatherer.Before(context.Background(), w.plan)
		require.NoError(t, err)
		require.Contains(t, f.Unreachable, "connection refused")
		checks := preflight.Before(f, w.plan)
		require.Equal(t, preflight.ControlPlaneHealthy, checks[0].Name)
		require.True(t, checks[0].Blocks)
		for _, c := range checks[1:] {
			require.False(t, c.Blocks, "%+v", c)
		}

		for _, action := range []string{
			"DescribeCluster", "ListAddons", "DescribeAddon", "ListInsights", "DescribeClusterVersions", "DescribeAddonVersions",
			"DescribeAutoScalingGroups", "DescribeScalingActivities",
			"DescribeSubnets", "DescribeImages", "DescribeInstanceTypes", "DescribeInstances", "ListClusters", "GetServiceQuota",
		} {
			w.OnCall(func(call endpoint.Call) error {
				if call.Action == action {
					return &fault.Throttled{Cause: fmt.Errorf("not now")}
				}
				return nil
			})
			_, err := w.gatherer.Before(context.Background(), w.plan)
			require.Error(t, err, action)
		}
	})
}

// alarm creates an alarm named errors.
func (w *world) alarm(t *testing.T) {
	_, err := awscloudwatch.NewFromConfig(w.Config()).PutMetricAlarm(context.Background(), &awscloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String("errors"), Namespace: aws.String("shop"), MetricName: aws.String("Errors"),
		Statistic: cloudwatchtypes.StatisticSum, Period: aws.Int32(60),
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1), ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
	})
	require.NoError(t, err)
}

// The alarms of the spec are described, disabled and enabled again.
func TestAlarms(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		client, ctx := awscloudwatch.NewFromConfig(w.Config()), context.Background()
		w.alarm(t)
		set := func(state cloudwatchtypes.StateValue) {
			_, err := client.SetAlarmState(ctx, &awscloudwatch.SetAlarmStateInput{
				AlarmName: aws.String("errors"), StateValue: state, StateReason: aws.String("test"),
			})
			require.NoError(t, err)
		}
		w.plan.Alarms = []string{"errors", "nothing"}
		of := func() map[string]preflight.Alarm {
			f, err := w.gatherer.After(ctx, w.plan)
			require.NoError(t, err)
			found := map[string]preflight.Alarm{}
			for _, a := range f.Alarms {
				found[a.Name] = a
			}
			return found
		}
		set(cloudwatchtypes.StateValueOk)
		require.Len(t, of(), 1, "one does not exist")
		require.Equal(t, "OK", of()["errors"].State)
		set(cloudwatchtypes.StateValueAlarm)
		require.Equal(t, "ALARM", of()["errors"].State)
		require.Equal(t, "test", of()["errors"].Reason)
		require.False(t, of()["errors"].Since.IsZero())
		require.True(t, of()["errors"].Actions)
		require.False(t, of()["errors"].Silence, "its owner has not set the tag")
		tag := func(value string) {
			_, err := client.TagResource(ctx, &awscloudwatch.TagResourceInput{
				ResourceARN: aws.String("arn:aws:cloudwatch:" + w.Config().Region + ":" + harness.ID + ":alarm:errors"),
				Tags:        []cloudwatchtypes.Tag{{Key: aws.String("drover:silence"), Value: aws.String(value)}},
			})
			require.NoError(t, err)
		}
		tag("never")
		require.False(t, of()["errors"].Silence)
		tag("upgrade")
		require.True(t, of()["errors"].Silence)

		own := cloudwatch.New(client)
		for range 2 {
			require.NoError(t, own.DisableActions(ctx, []string{"errors"}))
			require.False(t, of()["errors"].Actions)
		}
		for range 2 {
			require.NoError(t, own.EnableActions(ctx, []string{"errors", "nothing"}))
			require.True(t, of()["errors"].Actions)
		}
		require.NoError(t, own.DisableActions(ctx, nil))
		require.True(t, of()["errors"].Actions, "no names means no alarms")
	})
}

func TestUnknownQuotas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, known, err := w.gatherer.Quotas.Limit(context.Background(), "L-00000000")
		require.NoError(t, err)
		require.False(t, known)
	})
}

// EKS finds what the API server counts and a later version removes. The check names it.
func TestDeprecatedAPIs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.API("drover-demo").Requested("flowcontrol.apiserver.k8s.io", "v1beta3", "flowschemas", target)
		client, ctx, name := awseks.NewFromConfig(w.Config()), context.Background(), aws.String("drover-demo")
		_, err := client.StartInsightsRefresh(ctx, &awseks.StartInsightsRefreshInput{ClusterName: name})
		require.NoError(t, err)
		w.Until("EKS has looked", func() bool {
			time.Sleep(time.Minute)
			out, err := client.DescribeInsightsRefresh(ctx, &awseks.DescribeInsightsRefreshInput{ClusterName: name})
			require.NoError(t, err)
			return out.Status == types.InsightsRefreshStatusCompleted
		})
		f, err := w.gatherer.Before(ctx, w.plan)
		require.NoError(t, err)
		i := slices.IndexFunc(f.Insights, func(i preflight.Insight) bool { return len(i.Deprecations) > 0 })
		require.GreaterOrEqual(t, i, 0, "%+v", f.Insights)
		insight := f.Insights[i]
		require.Equal(t, "ERROR", insight.Status)
		require.Equal(t, target, insight.KubernetesVersion)
		require.NotEmpty(t, insight.Recommendation)
		require.Less(t, f.ReadAt.Sub(f.InsightsRefreshed), 10*time.Minute)
		require.Equal(t, []preflight.Deprecation{{API: "/apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas", RemovedIn: target}},
			insight.Deprecations)
		found := preflight.Before(f, w.plan)
		i = slices.IndexFunc(found, func(c status.Check) bool { return c.Name == preflight.DeprecatedAPIs })
		require.GreaterOrEqual(t, i, 0, "%+v", found)
		require.True(t, found[i].Blocks)

		w.plan.Rollback, w.plan.To.KubernetesVersion = true, "1.35"
		w.plan.Steps = []upgrade.Step{{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.35"}}
		f, err = w.gatherer.Before(ctx, w.plan)
		require.NoError(t, err)
		for _, i := range f.Insights {
			require.Empty(t, i.Deprecations, "insights of a rollback have none")
		}
		w.plan.Steps = []upgrade.Step{{Kind: upgrade.StepNodes, KubernetesVersion: "1.36"}}
		w.plan.Rollback, w.plan.From.KubernetesVersion = false, "1.36"
		f, err = w.gatherer.Before(ctx, w.plan)
		require.NoError(t, err)
		require.Empty(t, f.Insights, "the control plane is not upgraded")
		require.Zero(t, f.InsightsRefreshed)
	})
}
