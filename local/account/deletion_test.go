package account

// The deletion of a real cluster and of the resources that its Kubernetes created. Another cluster remains.

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/local/aws/iam/iamapi"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// resources returns all resources of clusters and of their Kubernetes. A key that waits for its deletion does not count.
func (w *world) resources() map[string]tagging.Tagged {
	found := map[string]tagging.Tagged{}
	for _, source := range []tagging.Source{
		w.CloudFormation.Tagged, w.EC2.Tagged, w.ELB.Tagged, w.AutoScaling.Tagged, w.EKS.Tagged, w.CloudWatch.Tagged, w.Keys.Tagged,
		iamapi.New(w.Identities).Created,
	} {
		for _, tagged := range source(context.Background()) {
			found[tagged.ARN] = tagged
		}
	}
	return found
}

func TestDeletion(t *testing.T) {
	const name = "leaving"
	before := cloud.resources()
	spec := specOf(name, pool("one", 2))
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))

	object, err := cloud.specs.Get(t.Context(), names.ClusterSpec(name), 1<<20)
	require.NoError(t, err)
	require.NoError(t, cloud.specs.DeleteIf(t.Context(), names.ClusterSpec(name), object.ETag))
	s := cloud.await(t, name, "kept by its protection", func(s status.Status) bool { return s.Phase == status.Stopped })
	require.Equal(t, status.ReasonDeletionProtected, s.Condition(status.Converged).Reason)
	cloud.settle(t)

	spec["spec"].(map[string]any)["deletionProtection"] = false
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))

	// Kubernetes' volumes: one is deleted with the cluster, one is retained.
	owned := map[string]string{names.OwnershipTag(name): "owned"}
	var subnet, vpc string
	for _, output := range stackOf(t, name, "network").Outputs {
		switch *output.OutputKey {
		case "PublicSubnetIds":
			subnet, _, _ = strings.Cut(*output.OutputValue, ",")
		case "VpcId":
			vpc = *output.OutputValue
		}
	}
	group, err := cloud.EC2.CreateSecurityGroup(vpc, "k8s-elb-leaving", "made by Kubernetes", false, owned)
	require.NoError(t, err)
	_, err = cloud.EC2.CreateNetworkInterface(subnet, []string{group}, "aws-K8S-i-0123", "", map[string]string{
		"cluster.k8s.amazonaws.com/name": names.EKSCluster(name),
	})
	require.NoError(t, err)
	_, err = cloud.ELB.Create("leaving-classic", "classic", subnet, []string{group}, false, owned)
	require.NoError(t, err)
	alb, err := cloud.ELB.Create("leaving-alb", "application", subnet, nil, false, map[string]string{
		"elbv2.k8s.aws/cluster": names.EKSCluster(name),
	})
	require.NoError(t, err)
	cloud.ELB.CreateTargetGroup("leaving", alb, map[string]string{"elbv2.k8s.aws/cluster": names.EKSCluster(name)})
	volumes := map[string]string{}
	for _, policy := range []string{"Delete", "Retain"} {
		id, err := cloud.EC2.CreateVolume("us-east-1a", 1, owned)
		require.NoError(t, err)
		volumes[policy] = id
		client, _, err := cloud.EKS.Administrator(names.EKSCluster(name))
		require.NoError(t, err)
		_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}).Create(t.Context(),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": strings.ToLower(policy)},
				"spec": map[string]any{
					"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "persistentVolumeReclaimPolicy": policy,
					"csi": map[string]any{"driver": "ebs.csi.aws.com", "volumeHandle": id},
				},
			}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	// The pods of the last node cannot move: their budgets would delay its drain for minutes.
	client, _, err := cloud.EKS.Administrator(names.EKSCluster(name))
	require.NoError(t, err)
	budgets := client.Resource(schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}).
		Namespace("kube-system")
	require.NoError(t, budgets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	// By its tag this volume belongs to another cluster.
	stranger, err := cloud.EC2.CreateVolume("us-east-1a", 1, map[string]string{names.OwnershipTag(name + "s"): "owned"})
	require.NoError(t, err)

	object, err = cloud.specs.Get(t.Context(), names.ClusterSpec(name), 1<<20)
	require.NoError(t, err)
	require.NoError(t, cloud.specs.DeleteIf(t.Context(), names.ClusterSpec(name), object.ETag))
	s = cloud.await(t, name, "deleted", func(s status.Status) bool { return s.Phase == status.Deleted || s.Phase == status.Failed })
	cloud.settle(t)
	require.Equal(t, status.Deleted, s.Phase, s.Message)
	require.Equal(t, []string{"volume " + volumes["Retain"]}, s.Deletion.Retained)
	require.Len(t, s.Deletion.Removed, 6)

	remaining := cloud.resources()
	for arn := range before {
		require.Contains(t, remaining, arn)
		delete(remaining, arn)
	}
	var still []string
	for _, arn := range slices.Sorted(maps.Keys(remaining)) {
		still = append(still, arn[strings.LastIndex(arn, "/")+1:])
	}
	require.ElementsMatch(t, []string{volumes["Retain"], stranger}, still, "nothing else is left")
}
