package drainer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/drain"
)

var (
	attachments = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

func (s *simulation) attach(name, node string) {
	s.t.Helper()
	_, err := s.nodes.cluster.Dynamic.Resource(attachments).Create(s.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": name,
		}, "spec": map[string]any{"attacher": "ebs.csi.aws.com", "nodeName": node, "source": map[string]any{"persistentVolumeName": name}},
	}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// stays creates a pod on n1 that a drain leaves there, with a volume of its own.
func (s *simulation) stays(name, phase string) {
	s.t.Helper()
	_, err := s.nodes.cluster.Dynamic.Resource(podResource).Namespace("kube-system").Create(s.t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{
				"name": name, "ownerReferences": []any{
					map[string]any{"apiVersion": "apps/v1", "kind": owners[phase], "name": "o", "uid": "o", "controller": true},
				},
			},
			"spec": map[string]any{
				"nodeName": "n1", "containers": []any{
					map[string]any{"name": "c"},
				}, "volumes": []any{map[string]any{"name": "v", "ephemeral": map[string]any{}}},
			},
			"status": map[string]any{"phase": phase},
		}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

var owners = map[string]string{"Running": "DaemonSet", "Succeeded": "Job"}

// A drain waits ten minutes for the volumes of evicted pods, and not for those of pods that stay, or of other nodes.
func TestVolumesOfEvictedPods(t *testing.T) {
	for name, c := range map[string]struct {
		here, elsewhere int      // volumes
		stay            []string // pods
		detached        int      // after 20 s
		left            int      // volumes that the drain waits for
		took            time.Duration
	}{
		"none":                           {},
		"volumes of another node":        {elsewhere: 2},
		"volumes of evicted pods":        {here: 2, left: 2, detached: 2, took: 20 * time.Second},
		"the volume of a pod that stays": {here: 1, elsewhere: 1, stay: []string{"Running"}},
		"volumes of both kinds of pods":  {here: 3, stay: []string{"Running"}, left: 2, detached: 2, took: 20 * time.Second},
		"a finished pod has none":        {here: 1, stay: []string{"Succeeded"}, left: 1, detached: 1, took: 20 * time.Second},
		"a volume that stays attached":   {here: 3, left: 3, detached: 2, took: volumesTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				for _, phase := range c.stay {
					s.stays(strings.ToLower(phase), phase)
				}
				for i := range c.here {
					s.attach(fmt.Sprint("here-", i), "n1")
				}
				for i := range c.elsewhere {
					s.attach(fmt.Sprint("there-", i), "n2")
				}
				began := time.Now()
				for i := range c.detached {
					time.AfterFunc(time.Duration(19+i)*time.Second, func() {
						require.NoError(t, s.nodes.cluster.Dynamic.Resource(attachments).Delete(t.Context(), fmt.Sprint("here-", i), metav1.DeleteOptions{}))
					})
				}
				if c.detached == 1 {
					c.took -= time.Second
				}
				most := 0
				report := s.drain(10 * time.Second)
				for slices := 0; report.Outcome == drain.Remaining && slices < 100; slices++ {
					most = max(most, report.Volumes)
					require.Zero(t, report.Left)
					require.Contains(t, report.Summary(), "volume")
					report = s.drain(10 * time.Second)
				}
				require.Equal(t, drain.Done, report.Outcome, "%+v", report)
				require.InDelta(t, c.took, time.Since(began), float64(2500*time.Millisecond),
					"the pods take a second, and two lists a tenth of one")
				require.Equal(t, c.left, most)
				require.Equal(t, c.took == volumesTimeout, strings.Contains(report.Message, "1 volume is still attached 10m0s after the pods left"),
					report.Message)
			}, quick("web", 3, -1))
		})
	}
}

// Volumes may take minutes. Pods that arrive in that time, because the node was uncordoned, are evicted too.
func TestPodsThatArriveDuringTheWaitForVolumes(t *testing.T) {
	inSimulation(t, func(t *testing.T, s *simulation) {
		s.attach("here", "n1")
		time.AfterFunc(10*time.Second, func() {
			require.NoError(t, s.nodes.Restore(t.Context(), "n1", false))
			s.server.Run(quick("web", 20, -1))
		})
		time.AfterFunc(20*time.Second, func() {
			require.NoError(t, s.nodes.cluster.Dynamic.Resource(attachments).Delete(t.Context(), "here", metav1.DeleteOptions{}))
		})
		report := s.drain(slice)
		require.Equal(t, drain.Done, report.Outcome, "%+v", report)
		require.Greater(t, report.Evicted, 3)
		require.Zero(t, report.Volumes)
		for _, p := range s.server.Pods() {
			require.NotEqual(t, "n1", p.Node)
		}
	}, quick("web", 3, -1))
}

// While attachments cannot be listed, the drain does not end.
func TestVolumesThatCannotBeListed(t *testing.T) {
	inSimulation(t, func(t *testing.T, s *simulation) {
		s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			fails := strings.HasSuffix(r.URL.Path, "/volumeattachments") && time.Since(s.began) < 10*time.Second
			if fails {
				http.Error(w, "no", http.StatusInternalServerError)
			}
			return fails
		}
		report := s.drain(slice)
		require.Equal(t, drain.Done, report.Outcome, "%+v", report)
		require.InDelta(t, 11*time.Second, time.Since(s.began), float64(1500*time.Millisecond))
	}, quick("web", 3, -1))
}
