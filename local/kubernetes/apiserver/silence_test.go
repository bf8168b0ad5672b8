package apiserver

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client, cluster := serve(t)
		addNode(t, client, "n1")
		addNode(t, client, "n2")
		time.Sleep(time.Minute)
		s.Run(App{Name: "web", Replicas: 2, MaxUnavailable: 1, Start: 10 * time.Second, Stop: 5 * time.Second, Grace: 30 * time.Second})
		time.Sleep(time.Minute)
		on := func(node string) Pod {
			all := s.Pods()
			i := slices.IndexFunc(all, func(p Pod) bool { return p.Node == node })
			require.GreaterOrEqual(t, i, 0, all)
			return all[i]
		}
		require.True(t, on("n1").Ready)
		require.False(t, s.Silence("absent", true))
		require.False(t, s.Silence("n1", false), "it speaks")
		before := time.Now()
		require.True(t, s.Silence("n1", true))
		require.False(t, s.Silence("n1", true))
		time.Sleep(4 * time.Minute)
		require.False(t, s.Nodes()[0].Ready)
		require.False(t, on("n1").Ready)
		require.Len(t, s.Pods(), 2)
		health, err := cluster.Health(t.Context())
		require.NoError(t, err)
		require.Empty(t, health, "it is of no pool")
		time.Sleep(2 * time.Minute)
		require.True(t, on("n1").Terminating, "no kubelet confirms its end")
		require.Len(t, s.Pods(), 3, "its successor runs elsewhere")
		s.mu.Lock()
		n, err := s.find(nodes, "", "n1")
		s.mu.Unlock()
		require.NoError(t, err)
		condition := n["status"].(object)["conditions"].([]any)[0].(object)
		require.Equal(t, before.UTC().Format(time.RFC3339), condition["lastTransitionTime"])

		require.True(t, s.Silence("n1", false))
		require.True(t, s.Nodes()[0].Ready)
		require.Len(t, s.Pods(), 2)
		time.Sleep(time.Minute)
		require.True(t, s.Nodes()[0].Ready)
	})
}

func TestSilenceOutlastsTheNetworkPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client, _ := serve(t)
		addNode(t, client, "n1")
		time.Sleep(time.Minute)
		s.Run(App{Name: "web", Replicas: 1, MaxUnavailable: 1, Start: time.Second, Stop: time.Second, Grace: time.Second})
		time.Sleep(time.Minute)
		require.True(t, s.Silence("n1", true))
		_, err := client.Resource(nodeResource).Patch(t.Context(), "n1", types.MergePatchType,
			[]byte(`{"metadata": {"annotations": {"local.drover.run/network": "ready"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.False(t, s.Nodes()[0].Ready, "its kubelet reports nothing")
		require.False(t, s.Pods()[0].Ready)
		require.True(t, s.Silence("n1", false), "it was still silent")
		require.True(t, s.Nodes()[0].Ready)
		require.True(t, s.Pods()[0].Ready)
	})
}
