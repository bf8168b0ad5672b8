package drain

import (
	"testing"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
)

// https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy
func TestBudgetCounts(t *testing.T) {
	always, healthy := policyv1.AlwaysAllow, policyv1.IfHealthyBudget
	for name, c := range map[string]struct {
		policy         *policyv1.UnhealthyPodEvictionPolicyType
		healthy, least int32
		unready        bool // counts, too
	}{
		"enough are healthy":                   {nil, 9, 9, false},
		"enough are healthy, explicit policy":  {&healthy, 9, 9, false},
		"too few are healthy":                  {nil, 8, 9, true},
		"too few are healthy, explicit policy": {&healthy, 8, 9, true},
		"too few are healthy, always allowed":  {&always, 8, 9, false},
		"none need to be healthy":              {nil, 3, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBudget(budget("web", 0, func(b *policyv1.PodDisruptionBudget) {
				b.Spec.UnhealthyPodEvictionPolicy, b.Status.CurrentHealthy, b.Status.DesiredHealthy = c.policy, c.healthy, c.least
			}))
			require.True(t, b.Counts(NewPod(pod("a"))))
			require.Equal(t, c.unready, b.Counts(NewPod(pod("a", unready))))
			require.True(t, b.Covers(NewPod(pod("a"))))
			require.False(t, b.Covers(NewPod(pod("a", in("other")))))
			require.False(t, b.Covers(NewPod(pod("a", withLabel("app", "db")))))
		})
	}
}
