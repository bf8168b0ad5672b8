package account

// Pools that roll, with both settings of CloudFormation and with both strategies, under workloads.

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

var rolledWorkloads = []workload.Workload{
	{Namespace: "shop", Name: "web", Kind: workload.Deployment, Replicas: 9, MaxUnavailable: "2", ReadyAfter: 200 *
		time.Millisecond, EndsAfter: 500 * time.Millisecond, Grace: time.Second},
	{Namespace: "shop", Name: "cart", Kind: workload.Deployment, Replicas: 4, MinAvailable: "75%",
		ReadyAfter: 100 * time.Millisecond, Grace: time.Second, EmptyDir: true},
	{Namespace: "shop", Name: "db", Kind: workload.StatefulSet, Replicas: 2, MaxUnavailable: "1",
		ReadyAfter: 200 * time.Millisecond, EndsAfter: 500 * time.Millisecond, Grace: time.Second},
	{Namespace: "shop", Name: "agent", Kind: workload.DaemonSet},
}

// keptBudgets fails the test if a workload had fewer healthy replicas than its budget requires.
func keptBudgets(t *testing.T, pods *workload.Watcher, workloads []workload.Workload) {
	t.Helper()
	for _, w := range workloads {
		keep, err := w.MustKeep()
		require.NoError(t, err)
		_, least := pods.Healthy(w.Namespace, w.Name)
		require.GreaterOrEqual(t, least, keep, "the budget of %s is broken", w.Name)
	}
}

func TestRolls(t *testing.T) {
	t.Parallel()
	const name, size = "rolling", 4
	cloud.retire(t, name)
	workers := object{"name": "workers", "instanceTypes": []string{"m7i.large"}, "minSize": size, "maxSize": size}
	spec := specOf(name, workers)
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	cluster := connect(t, name)
	require.NoError(t, cluster.Deploy(ctx, rolledWorkloads...))
	pods, err := cluster.Watch(ctx)
	require.NoError(t, err)
	defer pods.Close()
	settled := func(t *testing.T) {
		require.NoError(t, pods.Wait(ctx, "all pods to run", func() bool { return pods.Settled(rolledWorkloads...) }))
		require.NoError(t, cluster.Budgeted(ctx, rolledWorkloads...))
		pods.Forget()
	}
	cloud.atRest(t, name, "workers", size)

	rolls := func(how string, waits bool, update object, unavailable, batch int) {
		t.Run(how, func(t *testing.T) {
			settled(t)
			cloud.AutoScaling.WaitForTerminateHooks(waits, names.Group(name, "workers"))
			seen, started := observe(t, name, "workers"), time.Now()
			before := instancesOf(t, name)
			workers["update"], workers["labels"] = update, object{"example.com/roll": fmt.Sprint(started.Unix())}
			cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
			cloud.atRest(t, name, "workers", size)
			cloud.quiet(t, name) // an instance ends just before the execution that allowed it
			took := time.Since(started)
			seen.stop()
			seen.requireKept(t, size, unavailable, batch)
			require.NoError(t, pods.Wait(ctx, "all pods to be back", func() bool { return pods.Settled(rolledWorkloads...) }))
			keptBudgets(t, pods, rolledWorkloads)
			for id := range instancesOf(t, name) {
				require.NotContains(t, before, id)
			}
			for _, n := range nodesOf(t, name) {
				require.Equal(t, fmt.Sprint(started.Unix()), n.Labels["example.com/roll"])
			}
			for _, machine := range []string{"drover-join-node", "drover-drain-node"} {
				hooks := 0
				for _, x := range cloud.endedExecutions(t, name, machine, started) {
					require.Equal(t, "SUCCEEDED", x.Status, x.Cause)
					if strings.Contains(x.Input, "LifecycleActionToken") { // the sweep of another test may start one that has nothing to do
						hooks++
					}
				}
				require.Equal(t, size, hooks)
			}
			t.Logf("rolled in %.1f s: at most %d out, at least %d in service", took.Seconds(), seen.out, seen.least)
		})
	}
	// A node with a too new image registers and is rejected, and so is its replacement. The update is rolled back by the
	// strategy of the previous roll. The desired capacity stays at the value to which CloudFormation raised it; a second
	// failing attempt does not raise it further. stay is the least number of old nodes that the first rollback keeps.
	fails := func(what string, stay int, tries ...string) {
		t.Run("rolls back when nodes never join, after "+what, func(t *testing.T) {
			settled(t)
			cloud.AutoScaling.WaitForTerminateHooks(false, names.Group(name, "workers"))
			nodes := instancesOf(t, name)
			workers["update"], workers["imageID"] = object{"maxSurge": 1}, ec2.TooNewImage
			for i, try := range tries {
				seen := observe(t, name, "workers")
				workers["labels"] = object{"example.com/roll": try}
				s := cloud.rest(t, name, cloud.upload(t, name, text(t, spec)))
				require.Equal(t, status.Failed, s.Phase)
				require.NotEmpty(t, s.Nodes, s.Message)
				for _, n := range s.Nodes {
					require.Equal(t, status.NodeNotJoined, n.State)
					require.Contains(t, n.Message, "newer than the control plane")
				}
				require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", string(stackOf(t, name, names.PoolStack("workers")).StackStatus))
				cloud.atRest(t, name, "workers", size+1)
				seen.stop()
				seen.requireKept(t, size, 0, 1)
				if i == 0 { // the second starts with a surplus node and ends one to make room
					maps.DeleteFunc(nodes, func(id, _ string) bool { return instancesOf(t, name)[id] == "" })
					require.GreaterOrEqual(t, len(nodes), stay, "the nodes that were there are there")
				}
				for _, n := range nodesOf(t, name) {
					require.Contains(t, n.Status.NodeInfo.KubeletVersion, "v1.36.")
				}
			}
			delete(workers, "imageID")
			cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
			cloud.atRest(t, name, "workers", size)
			require.NoError(t, pods.Wait(ctx, "all pods", func() bool { return pods.Settled(rolledWorkloads...) }))
			keptBudgets(t, pods, rolledWorkloads)
		})
	}

	// Both strategies, with a CloudFormation that continues while nodes drain and with one that waits for drains.
	// TestRandomRolls mixes all of it, and local/aws/autoscaling tests each combination.
	rolls("surge 2", false, object{"maxSurge": 2}, 0, 2)
	rolls("a quarter out, and CloudFormation waits for drains", true, object{"maxUnavailable": "25%", "maxSurge": 0}, 1, 1)
	fails("a rolling update", size, "first", "second")
	rolls("instance refresh, surge of 50%, and it waits for drains", true, object{"strategy": "InstanceRefresh", "maxSurge": "50%"}, 0, 2)
	rolls("instance refresh, one out", false, object{"strategy": "InstanceRefresh", "maxUnavailable": 1, "maxSurge": 0}, 1, 1)
	// A refresh that replaces a node which then ends by itself has a surplus node, and Auto Scaling ends an old one.
	fails("an instance refresh", size-1, "third")
}
