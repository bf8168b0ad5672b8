package eks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statuses returns a cluster's insights of one category, by name.
func (b *testbed) statuses(t *testing.T, category string) map[string]string {
	t.Helper()
	in := ListInsightsInput{ClusterName: "demo"}
	in.Filter.Categories = []string{category}
	out, err := b.ListInsights(t.Context(), b.admin, in)
	require.NoError(t, err)
	found := map[string]string{}
	for _, i := range out.Insights {
		found[i.Name] = i.KubernetesVersion + " " + i.InsightStatus.Status
	}
	return found
}

func (b *testbed) refresh(t *testing.T) {
	t.Helper()
	_, err := b.StartInsightsRefresh(t.Context(), b.admin, InsightsRefreshInput{"demo"})
	require.NoError(t, err)
	require.NoError(t, b.wait(t.Context(), func() (bool, error) {
		c, err := b.find("demo")
		return err == nil && c.insights.refresh.Status == "COMPLETED", err
	}))
}

func (b *testbed) addon(t *testing.T, name, version string) {
	t.Helper()
	_, err := b.CreateAddon(t.Context(), b.admin, CreateAddonInput{ClusterName: "demo", AddonName: name, AddonVersion: version})
	require.NoError(t, err)
	if name == "coredns" {
		require.Eventually(t, func() bool {
			_, err := b.planes["demo"].client.Resource(deploymentResource).Namespace("kube-system").Get(t.Context(), name, metav1.GetOptions{})
			return err == nil
		}, time.Minute, time.Millisecond)
		b.planes["demo"].makeAvailable(t, name)
	}
	require.NoError(t, b.wait(t.Context(), func() (bool, error) { return b.clusters["demo"].addons[name].Status == active, nil }))
}

func TestInsightsBeforeAnUpgrade(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	b.addon(t, "kube-proxy", "v1.35.3-eksbuild.2")
	b.node(t, "demo", "young", "v1.35.5-eks-1")
	require.Equal(t, map[string]string{
		"Kubelet version skew": "1.36 PASSING", "kube-proxy version skew": "1.36 PASSING", "EKS add-on version compatibility": "1.36 PASSING",
		"Cluster health issues":                       "1.36 PASSING",
		"Deprecated APIs removed in Kubernetes v1.36": "1.36 PASSING", "Deprecated APIs removed in Kubernetes v1.37": "1.37 PASSING",
	}, b.statuses(t, upgradeReadiness))

	// Insights change at the next refresh, and not before.
	b.node(t, "demo", "old", "v1.32.1-eks-1")
	b.node(t, "demo", "older", "v1.33.1-eks-1")
	b.addon(t, "vpc-cni", "v1.20.4-eksbuild.2")
	b.clusters["demo"].addons["vpc-cni"].AddonVersion = "v1.20.0-eksbuild.1" // the version of a cluster with 1.34
	b.planes["demo"].metrics =
		"apiserver_requested_deprecated_apis{group=\"networking.k8s.io\",removed_release=\"1.37\",resource=\"ipaddresses\"," +
			"subresource=\"\",version=\"v1beta1\"} 1\n" +
			"apiserver_requested_deprecated_apis{group=\"policy\",removed_release=\"1.36\",resource=\"poddisruptionbudgets\"," +
			"subresource=\"\",version=\"v1beta1\"} 1\n" +
			"apiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",resource=\"componentstatuses\",subresource=\"\",version=\"v1\"} 1\n"
	require.Equal(t, "1.36 PASSING", b.statuses(t, upgradeReadiness)["Kubelet version skew"])
	b.refresh(t)
	require.Equal(t, map[string]string{
		"Kubelet version skew": "1.36 ERROR", "kube-proxy version skew": "1.36 PASSING", "EKS add-on version compatibility": "1.36 ERROR",
		"Cluster health issues":                       "1.36 PASSING",
		"Deprecated APIs removed in Kubernetes v1.36": "1.36 ERROR", "Deprecated APIs removed in Kubernetes v1.37": "1.37 WARNING",
	}, b.statuses(t, upgradeReadiness))
	require.Empty(t, b.statuses(t, rollbackReadiness))
}

func TestInsightsAfterAnUpgrade(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	b.addon(t, "kube-proxy", "v1.35.3-eksbuild.2")
	b.addon(t, "coredns", "v1.12.4-eksbuild.1")
	b.node(t, "demo", "old", "v1.35.1-eks-1")
	_, err := b.version(t, "demo", "1.36", false)
	require.NoError(t, err)
	ready := map[string]string{
		"Incompatible API usage": "1.35 UNKNOWN", "Kubelet version rollback compatibility": "1.35 PASSING",
		"kube-proxy version rollback compatibility": "1.35 PASSING",
		"EKS add-on version rollback compatibility": "1.35 PASSING", "Cluster health issues": "1.35 PASSING",
	}
	require.Equal(t, ready, b.statuses(t, rollbackReadiness))
	b.node(t, "demo", "new", "v1.36.1-eks-1")
	_, err = b.UpdateAddon(t.Context(), b.admin, UpdateAddonInput{
		AddonInput: AddonInput{"demo", "coredns"}, AddonVersion: "v1.14.0-eksbuild.1",
	})
	require.NoError(t, err)
	b.refresh(t)
	ready["Kubelet version rollback compatibility"], ready["EKS add-on version rollback compatibility"] = "1.35 ERROR", "1.35 ERROR"
	require.Equal(t, ready, b.statuses(t, rollbackReadiness))
}

// EKS refreshes insights once a day. They keep their ID and the time of their last change.
func TestInsightsGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.cluster(t, "demo")
		find := func() InsightSummary {
			in := ListInsightsInput{ClusterName: "demo"}
			in.Filter.KubernetesVersions = []string{"1.37"}
			out, err := b.ListInsights(t.Context(), b.admin, in)
			require.NoError(t, err)
			require.Len(t, out.Insights, 1)
			return out.Insights[0]
		}
		first := find()
		time.Sleep(23 * time.Hour)
		require.Equal(t, first, find())
		time.Sleep(2 * time.Hour)
		again := find()
		require.Equal(t, first.ID, again.ID)
		require.Equal(t, first.LastTransitionTime, again.LastTransitionTime)
		require.Equal(t, 25*time.Hour, again.LastRefreshTime.Sub(first.LastRefreshTime))
	})
}

func TestInsightsByTheSDK(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	_, credentials := b.identities.Admin()
	sdk, ctx, name := b.sdk(t, credentials), t.Context(), aws.String("demo")
	b.node(t, "demo", "old", "v1.32.1-eks-1")
	b.addon(t, "vpc-cni", "v1.20.4-eksbuild.2")
	b.clusters["demo"].addons["vpc-cni"].AddonVersion = "v1.20.0-eksbuild.1"

	_, err := sdk.DescribeInsightsRefresh(ctx, &awseks.DescribeInsightsRefreshInput{ClusterName: name})
	require.Equal(t, "ResourceNotFoundException", code(t, err))
	begun, err := sdk.StartInsightsRefresh(ctx, &awseks.StartInsightsRefreshInput{ClusterName: name})
	require.NoError(t, err)
	require.Equal(t, types.InsightsRefreshStatusInProgress, begun.Status)
	require.Eventually(t, func() bool {
		out, err := sdk.DescribeInsightsRefresh(ctx, &awseks.DescribeInsightsRefreshInput{ClusterName: name})
		require.NoError(t, err)
		return out.Status == types.InsightsRefreshStatusCompleted && out.EndedAt.After(*out.StartedAt)
	}, time.Minute, time.Millisecond)

	list, err := sdk.ListInsights(ctx, &awseks.ListInsightsInput{ClusterName: name, Filter: &types.InsightsFilter{
		Categories: []types.Category{types.CategoryUpgradeReadiness}, Statuses: []types.InsightStatusValue{types.InsightStatusValueError},
	}})
	require.NoError(t, err)
	found := map[string]*types.Insight{}
	for _, i := range list.Insights {
		out, err := sdk.DescribeInsight(ctx, &awseks.DescribeInsightInput{ClusterName: name, Id: i.Id})
		require.NoError(t, err)
		require.Equal(t, *i.InsightStatus.Reason, *out.Insight.InsightStatus.Reason)
		found[*i.Name] = out.Insight
	}
	require.Len(t, found, 2)
	require.Equal(t, "/api/v1/nodes/old", *found["Kubelet version skew"].Resources[0].KubernetesResourceUri)
	require.Equal(t, "Upgrade your worker nodes to match the Kubernetes version of your cluster control plane.",
		*found["Kubelet version skew"].Recommendation)
	addon := found["EKS add-on version compatibility"].CategorySpecificSummary.AddonCompatibilityDetails[0]
	require.Equal(t, "vpc-cni", *addon.Name)
	require.Equal(t, []string{"v1.21.1-eksbuild.1", "v1.20.4-eksbuild.2"}, addon.CompatibleVersions)

	_, err = sdk.DescribeInsight(ctx, &awseks.DescribeInsightInput{ClusterName: name, Id: aws.String("none")})
	require.Equal(t, "ResourceNotFoundException", code(t, err))
	_, none := b.assume(t, "powerless", "")
	_, err = b.sdk(t, none).ListInsights(ctx, &awseks.ListInsightsInput{ClusterName: name})
	require.ErrorContains(t, err, "eks:ListInsights on resource: arn:aws:eks:us-east-1:111122223333:cluster/demo")
}
