package lives

// Functions that are killed at each of their calls.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// RequireConverged requires that a cluster matches its spec, without leftovers.
func (l *Life) RequireConverged(cluster string) {
	l.T.Helper()
	s := l.Status(cluster)
	require.Equal(l.T, status.Ready, s.Phase, s.Message)
	p, reason, message, err := l.Functions.Planner.Preview(context.Background(), cluster)
	require.NoError(l.T, err)
	require.Empty(l.T, reason, message)
	require.Empty(l.T, p.Changes, "of a cluster that is Ready")
	waiters, err := l.State().List(context.Background(), names.Waiters)
	require.NoError(l.T, err)
	require.Empty(l.T, waiters)
	lease, err := l.State().Lease(context.Background(), cluster)
	require.NoError(l.T, err)
	require.Empty(l.T, lease.Execution)
	require.Equal(l.T, []string{
		"addons", "addons-on-nodes", "control-plane", "network", "pool-a",
	}, slices.Sorted(maps.Keys(l.Stacks(cluster))))
	for stack, stackStatus := range l.Stacks(cluster) {
		require.Contains(l.T, []string{"CREATE_COMPLETE", "UPDATE_COMPLETE"}, stackStatus, stack)
		require.Empty(l.T, l.StackLeftovers(names.Stack(cluster, stack)), stack)
	}
}

// StackLeftovers lists the rollbacks and deletions of a stack, and its remaining change sets.
func (l *Life) StackLeftovers(stackName string) (found []string) {
	l.T.Helper()
	events, err := l.CloudFormation.DescribeStackEvents(context.Background(), l.Admin(), &cloudformation.StackPageInput{StackName: stackName})
	require.NoError(l.T, err)
	for _, event := range events.StackEvents {
		if event.LogicalResourceId == stackName && (strings.Contains(event.ResourceStatus, "ROLLBACK") ||
			strings.Contains(event.ResourceStatus, "DELETE")) {
			found = append(found, event.ResourceStatus)
		}
	}
	sets, err := l.CloudFormation.ListChangeSets(context.Background(), l.Admin(), &cloudformation.StackPageInput{StackName: stackName})
	require.NoError(l.T, err)
	for _, set := range sets.Summaries {
		found = append(found, "change set "+set.ChangeSetName)
	}
	return found
}

// MaxCalls exceeds the calls of any invocation.
const MaxCalls = 60

// KillEachCall runs a test for every death at every call that functions make, by number. die kills every function at that call of
// every odd attempt, and the retry after that survives.
func KillEachCall(t *testing.T, functions []string, test func(t *testing.T, die func(harness.Call) harness.Death)) {
	for death, name := range map[harness.Death]string{harness.Before: "before", harness.After: "after"} {
		died := map[string]bool{}
		for number := 1; number <= MaxCalls; number++ {
			var mu sync.Mutex
			ran, deaths := false, 0
			t.Run(fmt.Sprintf("%s call %d", name, number), func(t *testing.T) {
				ran = true
				test(t, func(c harness.Call) harness.Death {
					if c.Number != number || c.Attempt%2 == 0 || !slices.Contains(functions, c.Function) {
						return harness.Lives
					}
					mu.Lock()
					defer mu.Unlock()
					died[c.Function] = true
					deaths++
					return death
				})
			})
			if ran && deaths == 0 {
				require.Len(t, died, len(functions), "all of them died: %v", died)
				break
			}
			require.False(t, ran && number == MaxCalls)
		}
	}
}
