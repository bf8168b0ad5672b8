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

// What a node says of a drain before counts, if it can be, and nothing that somebody else made of it meanwhile.
func TestWhatANodeThatWasDrainedBeforeKeeps(t *testing.T) {
	const never, began = 1000 * time.Hour, -10 * time.Minute // by whoever goes on
	for name, c := range map[string]struct {
		annotations        map[string]time.Duration // from now; never is that nobody can read it
		cordoned, excluded bool
		// Those that hold says.
		began, contact, since time.Duration
	}{
		"nothing is known": {nil, false, false, began, began, 0},
		"it began before": {
			map[string]time.Duration{annotationBegan: -30 * time.Minute}, false, false, -30 * time.Minute, -30 * time.Minute, 0,
		},
		"it began later than whoever goes on": {map[string]time.Duration{annotationBegan: -5 * time.Minute}, false, false, began, began, 0},
		"nobody can read when": {
			map[string]time.Duration{annotationBegan: never, annotationContact: never, annotationSince: never}, true, true, began, began, 0,
		},
		"somebody had contact":            {map[string]time.Duration{annotationContact: -time.Minute}, false, false, began, -time.Minute, 0},
		"somebody had, of a drain before": {map[string]time.Duration{annotationContact: -40 * time.Minute}, false, false, began, began, 0},
		"it is as the drain left it": {
			map[string]time.Duration{annotationSince: -3 * time.Minute}, true, true, began, began, -3 * time.Minute,
		},
		"it was uncordoned meanwhile":        {map[string]time.Duration{annotationSince: -3 * time.Minute}, false, true, began, began, 0},
		"load balancers were told otherwise": {map[string]time.Duration{annotationSince: -3 * time.Minute}, true, false, began, began, 0},
		"people cordoned it":                 {nil, true, true, began, began, 0},
	} {
		t.Run(name, func(t *testing.T) {
			drained(t, func(t *testing.T, s *simulated) {
				now := time.Now().UTC()
				annotations, labels := map[string]any{}, map[string]any{}
				for key, at := range c.annotations {
					annotations[key] = now.Add(at).Format(time.RFC3339Nano)
					if at == never {
						annotations[key] = "yesterday"
					}
				}
				if c.excluded {
					labels[corev1.LabelNodeExcludeBalancers] = ""
				}
				require.NoError(t, s.nodes.patch(t.Context(), "n1", s.read("n1").UID, map[string]any{
					"metadata": map[string]any{"annotations": annotations, "labels": labels}, "spec": map[string]any{"unschedulable": c.cordoned},
				}))
				got, err := s.nodes.hold(t.Context(), "n1", now.Add(began))
				require.NoError(t, err)
				ago := func(at time.Time) time.Duration { return at.Sub(now).Round(100 * time.Millisecond) }
				require.Equal(t, c.began, ago(got.began))
				require.Equal(t, c.contact, ago(got.contact))
				require.Equal(t, c.since, ago(got.since))

				node := s.read("n1")
				require.True(t, node.Spec.Unschedulable)
				require.Contains(t, node.Labels, corev1.LabelNodeExcludeBalancers)
				require.Equal(t, "true", node.Annotations[autoscalerHold])
				again, err := s.nodes.hold(t.Context(), "n1", now.Add(began))
				require.NoError(t, err)
				require.Equal(t, c.began, ago(again.began))
				require.Equal(t, c.since, ago(again.since), "it goes on")
				require.Equal(t, node.ResourceVersion, s.read("n1").ResourceVersion, "nothing is written again")
			})
		})
	}
}

// A node whose drain was given up is as it was before, and one that was drained stays away from pods and load
// balancers; what people said of it to the autoscaler stays either way.
func TestWhatANodeIsWhenItIsGivenBack(t *testing.T) {
	for bits := range 8 {
		done, byPeople, toldByPeople := bits&1 > 0, bits&2 > 0, bits&4 > 0
		for _, said := range []string{"", "true", "false"} {
			t.Run(fmt.Sprintf("drained %t, cordoned before %t, excluded before %t, autoscaler told %q", done, byPeople, toldByPeople, said),
				func(t *testing.T) {
					drained(t, func(t *testing.T, s *simulated) { givenBack(t, s, done, byPeople, toldByPeople, said) })
				})
		}
	}
}

// givenBack drains n1 and gives it back. People had cordoned it or not, had taken it out of load balancers or not,
// and had said something to the autoscaler, or nothing.
func givenBack(t *testing.T, s *simulated, done, byPeople, toldByPeople bool, said string) {
	annotations, labels := map[string]any{}, map[string]any{}
	if said != "" {
		annotations[autoscalerHold] = said
	}
	if toldByPeople {
		labels[corev1.LabelNodeExcludeBalancers] = ""
	}
	patch := func(metadata map[string]any, cordoned bool) {
		require.NoError(t, s.nodes.patch(t.Context(), "n1", s.read("n1").UID, map[string]any{
			"metadata": metadata, "spec": map[string]any{"unschedulable": cordoned},
		}))
	}
	patch(map[string]any{"annotations": annotations, "labels": labels}, byPeople)
	for range 2 {
		_, err := s.nodes.hold(t.Context(), "n1", time.Now())
		require.NoError(t, err)
		if !byPeople { // somebody uncordons it meanwhile, and the drain goes on
			patch(map[string]any{}, false)
		}
	}
	_, err := s.nodes.hold(t.Context(), "n1", time.Now())
	require.NoError(t, err)
	node := s.read("n1")
	require.True(t, node.Spec.Unschedulable)
	require.Equal(t, "true", node.Annotations[autoscalerHold])
	var ours []string
	for what, theirs := range map[string]bool{autoscaler: said == "true", cordoned: byPeople, excluded: toldByPeople} {
		if !theirs {
			ours = append(ours, what)
		}
	}
	require.ElementsMatch(t, ours, holds(&node))

	require.NoError(t, s.nodes.Release(t.Context(), "n1", done))
	node = s.read("n1")
	require.Equal(t, done || byPeople, node.Spec.Unschedulable)
	_, away := node.Labels[corev1.LabelNodeExcludeBalancers]
	require.Equal(t, done || toldByPeople, away)
	require.Equal(t, said, node.Annotations[autoscalerHold])
	for key := range node.Annotations {
		require.False(t, strings.HasPrefix(key, "drover.run/"), key)
	}
	require.NoError(t, s.nodes.Release(t.Context(), "n1", done))
	require.Equal(t, node.ResourceVersion, s.read("n1").ResourceVersion, "nothing is written again")
}

func TestANodeThatIsNotThereIsNotWaitedFor(t *testing.T) {
	drained(t, func(t *testing.T, s *simulated) {
		began := time.Now()
		_, err := s.nodes.hold(t.Context(), "n9", began)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.True(t, apierrors.IsNotFound(s.nodes.Release(t.Context(), "n9", false)))
		require.Less(t, time.Since(began), time.Second)
	})
}
