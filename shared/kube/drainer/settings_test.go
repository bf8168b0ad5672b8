package drainer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// cordonNode uses the annotations of an earlier drain if they are valid and the node was not changed since.
func TestCordonContinuesAnEarlierDrain(t *testing.T) {
	const invalid, began = 1000 * time.Hour, -10 * time.Minute // began is an argument of cordonNode
	for name, c := range map[string]struct {
		annotations        map[string]time.Duration // from now
		cordoned, excluded bool
		// The result of cordonNode.
		began, contact, since time.Duration
	}{
		"no annotations": {began: began, contact: began},
		"the drain began earlier": {
			annotations: map[string]time.Duration{annotationBegan: -30 * time.Minute}, began: -30 * time.Minute, contact: -30 * time.Minute,
		},
		"the annotation is later than the argument": {
			annotations: map[string]time.Duration{annotationBegan: -5 * time.Minute}, began: began, contact: began,
		},
		"invalid times": {
			annotations: map[string]time.Duration{annotationBegan: invalid, annotationContact: invalid, annotationSince: invalid}, cordoned: true,
			excluded: true, began: began, contact: began,
		},
		"an earlier call had contact": {
			annotations: map[string]time.Duration{annotationContact: -time.Minute}, began: began, contact: -time.Minute,
		},
		"a call of an earlier drain had contact": {
			annotations: map[string]time.Duration{annotationContact: -40 * time.Minute}, began: began, contact: began,
		},
		"the node is as the drain left it": {
			annotations: map[string]time.Duration{annotationSince: -3 * time.Minute}, cordoned: true, excluded: true, began: began,
			contact: began, since: -3 * time.Minute,
		},
		"the node was uncordoned": {
			annotations: map[string]time.Duration{annotationSince: -3 * time.Minute}, excluded: true, began: began, contact: began,
		},
		"the node was added to load balancers": {
			annotations: map[string]time.Duration{annotationSince: -3 * time.Minute}, cordoned: true, began: began, contact: began,
		},
		"an operator cordoned the node": {cordoned: true, excluded: true, began: began, contact: began},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				now := time.Now().UTC()
				annotations, labels := map[string]any{}, map[string]any{}
				for key, at := range c.annotations {
					annotations[key] = now.Add(at).Format(time.RFC3339Nano)
					if at == invalid {
						annotations[key] = "yesterday"
					}
				}
				if c.excluded {
					labels[corev1.LabelNodeExcludeBalancers] = ""
				}
				require.NoError(t, s.nodes.patch(t.Context(), "n1", s.read("n1").UID, map[string]any{
					"metadata": map[string]any{"annotations": annotations, "labels": labels}, "spec": map[string]any{"unschedulable": c.cordoned},
				}))
				got, err := s.nodes.cordonNode(t.Context(), "n1", now.Add(began))
				require.NoError(t, err)
				ago := func(at time.Time) time.Duration { return at.Sub(now).Round(100 * time.Millisecond) }
				require.Equal(t, c.began, ago(got.began))
				require.Equal(t, c.contact, ago(got.contact))
				require.Equal(t, c.since, ago(got.since))

				node := s.read("n1")
				require.True(t, node.Spec.Unschedulable)
				require.Contains(t, node.Labels, corev1.LabelNodeExcludeBalancers)
				require.Equal(t, "true", node.Annotations[annotationScaleDownDisabled])
				again, err := s.nodes.cordonNode(t.Context(), "n1", now.Add(began))
				require.NoError(t, err)
				require.Equal(t, c.began, ago(again.began))
				require.Equal(t, c.since, ago(again.since), "the drain continues")
				require.Equal(t, node.ResourceVersion, s.read("n1").ResourceVersion, "no second write")
			})
		})
	}
}

// After an aborted drain the node is as before. A drained node stays cordoned and out of load balancers. The
// autoscaler's annotation is restored in both cases.
func TestReleaseRestoresTheNode(t *testing.T) {
	for bits := range 8 {
		done, cordonedBefore, excludedBefore := bits&1 > 0, bits&2 > 0, bits&4 > 0
		for _, value := range []string{"", "true", "false"} {
			t.Run(fmt.Sprintf("drained %t, cordoned before %t, excluded before %t, scale-down %q", done, cordonedBefore, excludedBefore, value),
				func(t *testing.T) {
					inSimulation(t, func(t *testing.T, s *simulation) { checkRestore(t, s, done, cordonedBefore, excludedBefore, value) })
				})
		}
	}
}

// checkRestore drains n1 and restores it. Before, an operator may have cordoned it, excluded it from load balancers, or
// set the autoscaler's annotation.
func checkRestore(t *testing.T, s *simulation, done, cordonedBefore, excludedBefore bool, value string) {
	annotations, labels := map[string]any{}, map[string]any{}
	if value != "" {
		annotations[annotationScaleDownDisabled] = value
	}
	if excludedBefore {
		labels[corev1.LabelNodeExcludeBalancers] = ""
	}
	patch := func(metadata map[string]any, cordoned bool) {
		require.NoError(t, s.nodes.patch(t.Context(), "n1", s.read("n1").UID, map[string]any{
			"metadata": metadata, "spec": map[string]any{"unschedulable": cordoned},
		}))
	}
	patch(map[string]any{"annotations": annotations, "labels": labels}, cordonedBefore)
	for range 2 {
		_, err := s.nodes.cordonNode(t.Context(), "n1", time.Now())
		require.NoError(t, err)
		if !cordonedBefore { // an operator uncordons it during the drain
			patch(map[string]any{}, false)
		}
	}
	_, err := s.nodes.cordonNode(t.Context(), "n1", time.Now())
	require.NoError(t, err)
	node := s.read("n1")
	require.True(t, node.Spec.Unschedulable)
	require.Equal(t, "true", node.Annotations[annotationScaleDownDisabled])
	var ours []string
	for what, theirs := range map[string]bool{autoscaler: value == "true", cordoned: cordonedBefore, excluded: excludedBefore} {
		if !theirs {
			ours = append(ours, what)
		}
	}
	require.ElementsMatch(t, ours, ownSettings(&node))

	require.NoError(t, s.nodes.Restore(t.Context(), "n1", done))
	node = s.read("n1")
	require.Equal(t, done || cordonedBefore, node.Spec.Unschedulable)
	_, away := node.Labels[corev1.LabelNodeExcludeBalancers]
	require.Equal(t, done || excludedBefore, away)
	require.Equal(t, value, node.Annotations[annotationScaleDownDisabled])
	for key := range node.Annotations {
		require.False(t, strings.HasPrefix(key, "drover.run/"), key)
	}
	require.NoError(t, s.nodes.Restore(t.Context(), "n1", done))
	require.Equal(t, node.ResourceVersion, s.read("n1").ResourceVersion, "no second write")
}

func TestMissingNodeIsNotAwaited(t *testing.T) {
	inSimulation(t, func(t *testing.T, s *simulation) {
		began := time.Now()
		_, err := s.nodes.cordonNode(t.Context(), "n9", began)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.True(t, apierrors.IsNotFound(s.nodes.Restore(t.Context(), "n9", false)))
		require.Less(t, time.Since(began), time.Second)
	})
}
