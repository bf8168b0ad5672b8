package workload

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/local/kubernetes"
)

func TestMustKeep(t *testing.T) {
	tests := map[string]struct {
		workload Workload
		want     int
		err      string
	}{
		"no budget keeps nothing":                    {Workload{Replicas: 3}, 0, ""},
		"so many may be out":                         {Workload{Replicas: 20, MaxUnavailable: "1"}, 19, ""},
		"a percentage that may be out is rounded up": {Workload{Replicas: 15, MaxUnavailable: "10%"}, 13, ""},
		"more may be out than there are":             {Workload{Replicas: 2, MaxUnavailable: "5"}, 0, ""},
		"so many must stay":                          {Workload{Replicas: 20, MinAvailable: "19"}, 19, ""},
		"a percentage that must stay is rounded up":  {Workload{Replicas: 7, MinAvailable: "50%"}, 4, ""},
		"a word is no budget": {
			Workload{Replicas: 7, MinAvailable: "half"}, 0, `"half" is neither a number nor a percentage`,
		},
		"a negative number is no budget":              {Workload{Replicas: 7, MaxUnavailable: "-1"}, 0, `"-1" is neither`},
		"a sign is not what makes it a percentage":    {Workload{Replicas: 7, MaxUnavailable: "%"}, 0, `"%" is neither`},
		"no replica may be out of a workload of none": {Workload{MaxUnavailable: "10%"}, 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tt.workload.MustKeep()
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestWorkloads(t *testing.T) {
	bin, err := filepath.Abs(kubernetes.BinDir("../../.."))
	require.NoError(t, err)
	control, err := kubernetes.Start(t.Context(), kubernetes.Options{
		Name: "test", Dir: t.TempDir(), BinDir: bin, ServiceCIDR: "172.20.0.0/16",
	})
	require.NoError(t, err)
	t.Cleanup(control.Stop)
	c, err := Connect(Admin(control))
	require.NoError(t, err)
	ctx := t.Context()

	require.NoError(t, c.AddNodes(ctx, Node{
		Name: "a", Pods: 20, Labels: map[string]string{"drover.run/pool": "workers"},
	}, Node{Name: "b", Pods: 20}))
	watcher, err := c.Watch(ctx)
	require.NoError(t, err)
	workloads := []Workload{
		{Namespace: "shop", Name: "web", Kind: Deployment, Replicas: 4, MaxUnavailable: "25%", ReadyAfter: 200 * time.Millisecond},
		{Namespace: "shop", Name: "db", Kind: StatefulSet, Replicas: 2, MinAvailable: "1", Grace: time.Second,
			EndsAfter: time.Second, EmptyDir: true},
		{Namespace: "system", Name: "agent", Kind: DaemonSet},
		{Namespace: "batch", Name: "once", Kind: Pods, Replicas: 2},
	}
	require.NoError(t, c.Deploy(ctx, workloads...))
	settled := func() bool { return watcher.Settled(workloads...) && len(watcher.On("system", "b")) == 1 }
	require.NoError(t, watcher.Wait(ctx, "the workloads", settled))
	require.NoError(t, c.Budgeted(ctx, workloads...))

	t.Run("sees a replica that was unhealthy for a moment", func(t *testing.T) {
		watcher.Forget()
		now, least := watcher.Healthy("shop", "web")
		require.Equal(t, []int{4, 4}, []int{now, least})
		pods := append(watcher.On("shop", "a"), watcher.On("shop", "b")...)
		require.Len(t, pods, 6)
		require.NoError(t, c.core.Pods("shop").DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: nameLabel + "=db"}))
		require.NoError(t, watcher.Wait(ctx, "db to be back", func() bool {
			_, least := watcher.Healthy("shop", "db")
			return least == 0 && settled()
		}))
		_, least = watcher.Healthy("shop", "web")
		require.Equal(t, 4, least)
	})
	t.Run("schedules no pods on a cordoned node until Reset", func(t *testing.T) {
		require.NoError(t, c.Reset(ctx, false, "a"))
		require.NoError(t, c.Remove(ctx, workloads[0]))
		require.NoError(t, c.Deploy(ctx, workloads[0]))
		require.NoError(t, watcher.Wait(ctx, "web", func() bool { return watcher.Settled(workloads[0]) }))
		require.GreaterOrEqual(t, len(watcher.On("shop", "b")), 4)
		require.NoError(t, c.Reset(ctx, true, "a"))
		node, err := c.core.Nodes().Get(ctx, "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.False(t, node.Spec.Unschedulable)
		require.Equal(t, "workers", node.Labels["drover.run/pool"])
	})
	t.Run("removes budgets and pods with a workload", func(t *testing.T) {
		require.NoError(t, c.Remove(ctx, workloads...))
		require.NoError(t, watcher.Wait(ctx, "nothing", func() bool { return len(watcher.On("shop", "a"))+len(watcher.On("shop", "b")) == 0 }))
		budgets, err := c.policy.PodDisruptionBudgets("shop").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, budgets.Items)
		require.NoError(t, c.Remove(ctx, workloads...), "it may be done again")
	})
	t.Run("reports mistakes", func(t *testing.T) {
		require.ErrorContains(t, c.Deploy(ctx, Workload{Namespace: "shop", Name: "job", Kind: "Job"}),
			`shop/job: there is no kind of workload "Job"`)
		require.ErrorContains(t, c.Deploy(ctx, Workload{Namespace: "shop", Name: "x", Kind: Deployment, MinAvailable: "all"}), "neither a number")
		require.ErrorContains(t, c.Reset(ctx, true, "nowhere"), "reset node nowhere")
	})
	require.NoError(t, watcher.Close())
}
