package lives

// Deletions by drover and by users, and the state after them.

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// Unprotected is the field of a cluster that may be deleted.
const Unprotected = "  deletionProtection: false\n"

// PersistVolume creates a PersistentVolume for a volume.
func (l *Life) PersistVolume(cluster, volume, policy string) {
	l.T.Helper()
	_, err := l.Kubernetes(cluster).Resource(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}).
		Create(context.Background(),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": "pv-" + volume},
				"spec": map[string]any{
					"persistentVolumeReclaimPolicy": policy, "csi": map[string]any{"driver": "ebs.csi.aws.com", "volumeHandle": volume},
				},
			}}, metav1.CreateOptions{})
	require.NoError(l.T, err)
}

// RequireDeleted asserts that only the status of a cluster is left.
func (l *Life) RequireDeleted(cluster string, before map[string]tagging.Tagged) {
	l.T.Helper()
	s := l.Status(cluster)
	require.Equal(l.T, status.Deleted, s.Phase, s.Message)
	for _, stack := range s.Stacks { // a late copy of an event may have recorded a stack
		require.Equal(l.T, "DELETE_COMPLETE", stack.Status, stack.Name)
	}
	require.Empty(l.T, s.Plan)
	left := l.AllResources()
	for arn := range before {
		require.Contains(l.T, left, arn, "what is not the cluster's is still there")
		delete(left, arn)
	}
	require.Empty(l.T, slices.Sorted(maps.Keys(left)), "no resource remains")
	waiters, err := l.State().List(context.Background(), names.Waiters)
	require.NoError(l.T, err)
	require.Empty(l.T, waiters)
	lease, err := l.State().Lease(context.Background(), cluster)
	require.NoError(l.T, err)
	require.Empty(l.T, lease.Execution)
}

// RecordPendingWork records pending work for a cluster.
func (l *Life) RecordPendingWork(cluster string) {
	l.T.Helper()
	ctx := context.Background()
	require.NoError(l.T, l.State().AddRolls(ctx, cluster, []string{"a"}, time.Now().Add(time.Hour)))
	require.NoError(l.T, l.State().AddDue(ctx, cluster, time.Now().Add(1000*time.Hour)))
	for key, body := range map[string]string{names.Upgrade(cluster): `{"state": "Done"}`, names.UpgradeBaseline(cluster, 1): "{}"} {
		_, err := l.State().Put(ctx, key, []byte(body))
		require.NoError(l.T, err)
	}
}

// PendingWork lists the keys of pending work for a cluster.
func (l *Life) PendingWork(cluster string) (keys []string) {
	l.T.Helper()
	for _, prefix := range []string{"rolls/", "upgrades/", "baselines/", names.Dues} {
		entries, err := l.State().List(context.Background(), prefix)
		require.NoError(l.T, err)
		for _, entry := range entries {
			if strings.HasSuffix(entry.Key, "/"+cluster) || strings.HasSuffix(entry.Key, "/"+cluster+".json") ||
				strings.Contains(entry.Key, "/"+cluster+"/") {
				keys = append(keys, entry.Key)
			}
		}
	}
	return keys
}

// DeleteStack deletes a protected stack outside drover.
func (l *Life) DeleteStack(cluster, stack string) {
	l.T.Helper()
	l.TryDeleteStack(cluster, stack)
	require.NotContains(l.T, l.Stacks(cluster), stack)
}

// TryDeleteStack starts the deletion of a protected stack outside drover, and waits. Some of its resources may remain.
func (l *Life) TryDeleteStack(cluster, stack string) {
	l.T.Helper()
	name := names.Stack(cluster, stack)
	_, err := l.CloudFormation.UpdateTerminationProtection(l.T.Context(), l.Admin(), &cloudformation.UpdateTerminationProtectionInput{
		StackName: name,
	})
	require.NoError(l.T, err)
	_, err = l.CloudFormation.DeleteStack(l.T.Context(), l.Admin(), &cloudformation.DeleteStackInput{StackName: name})
	require.NoError(l.T, err)
	l.Settle()
}

// ResourceIDs lists the resources of a kind in the account.
func (l *Life) ResourceIDs(kind string) (ids []string) {
	for arn := range l.AllResources() {
		if at := strings.LastIndex(arn, kind); at >= 0 {
			ids = append(ids, arn[at+len(kind):])
		}
	}
	slices.Sort(ids)
	return ids
}

// DeleteEKSCluster deletes an EKS cluster outside drover.
func (l *Life) DeleteEKSCluster(cluster string) {
	l.T.Helper()
	name := names.EKSCluster(cluster)
	_, err := l.EKS.UpdateClusterConfig(l.T.Context(), l.Admin(), eks.UpdateClusterConfigInput{
		Name: name, DeletionProtection: aws.Bool(false),
	})
	require.NoError(l.T, err)
	time.Sleep(10 * time.Minute)
	_, err = l.EKS.DeleteCluster(l.T.Context(), l.Admin(), eks.NamedInput{Name: name})
	require.NoError(l.T, err)
	time.Sleep(20 * time.Minute)
	require.Empty(l.T, l.ResourceIDs(":cluster/"))
}
