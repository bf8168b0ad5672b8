package status

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	noon    = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	evening = noon.Add(6 * time.Hour)
)

func TestAConditionRemembersWhenItsStatusChanged(t *testing.T) {
	var s Status
	require.Nil(t, s.Condition(Converged))
	s.Set(Condition{Type: SpecAccepted, Status: "True", Reason: "Valid"}, noon)
	s.Set(Condition{Type: Converged, Status: "False", Reason: "Converging"}, noon)
	s.Set(Condition{Type: Converged, Status: "False", Reason: "StackFailed", Message: "no capacity"}, evening)
	require.Equal(t, &Condition{Type: Converged, Status: "False", Reason: "StackFailed", Message: "no capacity", LastTransitionTime: noon}, s.Condition(Converged))
	s.Set(Condition{Type: Converged, Status: "True", Reason: "UpToDate"}, evening)
	require.Equal(t, &Condition{Type: Converged, Status: "True", Reason: "UpToDate", LastTransitionTime: evening}, s.Condition(Converged), "no message is left of before")
	require.Equal(t, []string{Converged, SpecAccepted}, []string{s.Conditions[0].Type, s.Conditions[1].Type}, "in one order")
}

func TestAStackRemembersSinceWhen(t *testing.T) {
	var s Status
	s.SetStack(Stack{Name: "network", Status: "ROLLBACK_COMPLETE", Resource: "Vpc", Reason: "no more"}, noon)
	s.SetStack(Stack{Name: "network", Status: "ROLLBACK_COMPLETE"}, evening)
	require.Equal(t, []Stack{{Name: "network", Status: "ROLLBACK_COMPLETE", Since: noon}}, s.Stacks)
	s.SetStack(Stack{Name: "network", Status: "CREATE_COMPLETE"}, evening)
	require.Equal(t, []Stack{{Name: "network", Status: "CREATE_COMPLETE", Since: evening}}, s.Stacks)
}

func TestWhatIsObservedReplacesWhatWasKnown(t *testing.T) {
	s := Status{Stacks: []Stack{
		{Name: "network", Status: "CREATE_COMPLETE", Since: noon},
		{Name: "pool-a", Status: "ROLLBACK_COMPLETE", Resource: "Group", Reason: "no capacity", Since: noon},
		{Name: "pool-gone", Status: "DELETE_COMPLETE", Since: noon},
	}}
	s.Observe([]Stack{{Name: "network", Status: "UPDATE_COMPLETE"}, {Name: "pool-a", Status: "ROLLBACK_COMPLETE"}, {Name: "addons", Status: "CREATE_COMPLETE"}}, evening)
	require.Equal(t, []Stack{
		{Name: "network", Status: "UPDATE_COMPLETE", Since: evening},
		{Name: "pool-a", Status: "ROLLBACK_COMPLETE", Resource: "Group", Reason: "no capacity", Since: noon},
		{Name: "addons", Status: "CREATE_COMPLETE", Since: evening},
	}, s.Stacks)
}

func TestAStatusReadsAsKubernetesObjectsDo(t *testing.T) {
	body, err := json.Marshal(New("demo"))
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion": "drover.run/v1alpha1", "kind": "ClusterStatus", "metadata": {"name": "demo"},
		"status": {"phase": "Pending", "updatedAt": "0001-01-01T00:00:00Z"}}`, string(body))
}
