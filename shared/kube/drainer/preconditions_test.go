package drainer

// A drain changes one node and its pods by UID: another object may have taken the name.

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/drain"
)

// sentBody is the body of a request that changes something.
type sentBody struct {
	what string
	body map[string]any
}

// record collects the bodies of all later requests that change something.
func (s *simulation) record() *[]sentBody {
	var all []sentBody
	s.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || r.Body == nil {
			return false
		}
		body, err := io.ReadAll(r.Body)
		require.NoError(s.t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var object map[string]any
		require.NoError(s.t, json.Unmarshal(body, &object))
		all = append(all, sentBody{r.Method + " " + r.URL.Path, object})
		return false
	}
	return &all
}

func (s *simulation) say(annotations map[string]any, spec map[string]any) {
	s.t.Helper()
	require.NoError(s.t, s.nodes.patch(s.t.Context(), "n1", s.read("n1").UID, map[string]any{
		"metadata": map[string]any{"annotations": annotations}, "spec": spec,
	}))
}

func TestNodePatchPrecondition(t *testing.T) {
	t.Run("each patch names the UID of the node that was read", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			all, uid := s.record(), string(s.read("n1").UID)
			h, err := s.nodes.cordonNode(t.Context(), "n1", time.Now())
			require.NoError(t, err)
			require.Equal(t, uid, string(h.uid))
			c := &drainRun{Drainer: s.nodes, node: "n1", cordon: h}
			require.NoError(t, c.annotate(t.Context(), map[string]any{annotationWaits: "x"}))
			_, err = c.emptySince(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.nodes.Restore(t.Context(), "n1", false))
			require.Len(t, *all, 4)
			for _, patch := range *all {
				require.Equal(t, "PATCH /api/v1/nodes/n1", patch.what)
				require.Equal(t, uid, patch.body["metadata"].(map[string]any)["uid"])
			}
		})
	})
	t.Run("a node of the same name that took its place is left alone", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			before := s.read("n1")
			c := &drainRun{Drainer: s.nodes, node: "n1", cordon: cordonState{uid: types.UID("of the node before")}}
			_, err := c.emptySince(t.Context())
			for _, err := range []error{err, c.annotate(t.Context(), map[string]any{annotationWaits: "x"})} {
				require.True(t, apierrors.IsConflict(err), "%v", err)
				require.ErrorContains(t, err, "patching node n1")
			}
			require.Equal(t, before.ResourceVersion, s.read("n1").ResourceVersion)
		})
	})
	t.Run("a node that cannot be read is not patched", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			call := map[string]func() error{
				"cordonNode": func() error { _, err := s.nodes.cordonNode(t.Context(), "n1", time.Now()); return err },
				"Restore":    func() error { return s.nodes.Restore(t.Context(), "n1", false) },
			}
			for _, name := range []string{"cordonNode", "Restore"} {
				failures, early := 2, 0
				s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPatch && failures > 0 {
						early++
					}
					if r.Method != http.MethodGet || failures == 0 {
						return false
					}
					failures--
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not yet"}`)
					return true
				}
				require.NoError(t, call[name]())
				require.Zero(t, failures)
				require.Zero(t, early, name)
			}
			s.intercept = nil
		})
	})
}

func TestRestore(t *testing.T) {
	t.Run("writes nothing to a node that no drain touched", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			s.say(map[string]any{annotationScaleDownDisabled: "true"}, map[string]any{"unschedulable": true})
			all := s.record()
			require.NoError(t, s.nodes.Restore(t.Context(), "n1", false))
			require.Empty(t, *all)
		})
	})
	t.Run("keeps what an operator set for the autoscaler", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			_, err := s.nodes.cordonNode(t.Context(), "n1", time.Now())
			require.NoError(t, err)
			s.say(map[string]any{annotationScaleDownDisabled: "false"}, map[string]any{})
			require.NoError(t, s.nodes.Restore(t.Context(), "n1", false))
			require.Equal(t, "false", s.read("n1").Annotations[annotationScaleDownDisabled])
		})
	})
	t.Run("leaves no annotation where there was none", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			_, err := s.nodes.cordonNode(t.Context(), "n1", time.Now())
			require.NoError(t, err)
			require.NotContains(t, s.read("n1").Annotations, annotationScaleDownBefore)
			require.NoError(t, s.nodes.Restore(t.Context(), "n1", false))
			require.NotContains(t, s.read("n1").Annotations, annotationScaleDownDisabled)
		})
	})
}

func TestPodPrecondition(t *testing.T) {
	for name, forced := range map[string]bool{"an eviction": false, "a deletion": true} {
		t.Run(name+" is of the pod with its UID only", func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				pods := func() (list corev1.PodList) {
					require.NoError(t, s.nodes.cluster.Core.Get().Resource("pods").Do(t.Context()).Into(&list))
					return list
				}
				before := pods()
				require.Len(t, before.Items, 1)
				pod := drain.NewPod(&before.Items[0])
				another := *pod
				another.UID = "of the pod before"
				err := s.nodes.remove(t.Context(), drain.Request{Pod: &another, Forced: forced, Grace: 7})
				require.True(t, apierrors.IsConflict(err), "%v", err)
				require.Nil(t, pods().Items[0].DeletionTimestamp)
				require.NoError(t, s.nodes.remove(t.Context(), drain.Request{Pod: pod, Forced: forced, Grace: 7}))
				for _, now := range pods().Items {
					if now.UID == pod.UID {
						require.EqualValues(t, 7, *now.DeletionGracePeriodSeconds)
					}
				}
			}, apiserver.App{Name: "web", Replicas: 1, MaxUnavailable: 1, Stop: time.Minute})
		})
	}
}
