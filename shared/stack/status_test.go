package stack

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/stretchr/testify/require"
)

func TestStatuses(t *testing.T) {
	tests := map[string]struct{ absent, mustRecreate, settled, inProgress bool }{
		"":                                    {absent: true},
		"DELETE_COMPLETE":                     {absent: true},
		"REVIEW_IN_PROGRESS":                  {absent: true},
		"CREATE_IN_PROGRESS":                  {inProgress: true},
		"CREATE_COMPLETE":                     {settled: true},
		"CREATE_FAILED":                       {mustRecreate: true},
		"ROLLBACK_IN_PROGRESS":                {inProgress: true},
		"ROLLBACK_COMPLETE":                   {mustRecreate: true},
		"ROLLBACK_FAILED":                     {mustRecreate: true},
		"UPDATE_IN_PROGRESS":                  {inProgress: true},
		"UPDATE_COMPLETE":                     {settled: true},
		"UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": {inProgress: true},
		"UPDATE_ROLLBACK_COMPLETE":            {},
		"UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": {inProgress: true},
		"UPDATE_ROLLBACK_FAILED":                       {},
		"UPDATE_ROLLBACK_IN_PROGRESS":                  {inProgress: true},
		"DELETE_IN_PROGRESS":                           {inProgress: true},
		"DELETE_FAILED":                                {mustRecreate: true},
		"UPDATE_FAILED":                                {},
		"IMPORT_IN_PROGRESS":                           {inProgress: true},
		"IMPORT_COMPLETE":                              {settled: true},
		"IMPORT_ROLLBACK_IN_PROGRESS":                  {inProgress: true},
		"IMPORT_ROLLBACK_COMPLETE":                     {},
		"IMPORT_ROLLBACK_FAILED":                       {},
	}
	require.Len(t, tests, 1+len(types.StackStatus("").Values()), "the statuses of CloudFormation, and none")
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got := struct{ absent, mustRecreate, settled, inProgress bool }{Absent(name), MustRecreate(name), Settled(name), InProgress(name)}
			require.Equal(t, want, got)
		})
	}
}

// A status that CloudFormation adds must be in one of the lists: EventBridge delivers no event of another one.
func TestEveryStatusIsKnown(t *testing.T) {
	var want []string
	for _, status := range types.StackStatus("").Values() {
		want = append(want, string(status))
	}
	require.ElementsMatch(t, want, slices.Concat(Terminal(), Progress(), []string{InReview}))
	for _, status := range Terminal() {
		require.False(t, InProgress(status), status)
	}
	for _, status := range Progress() {
		require.True(t, InProgress(status), status)
		require.False(t, Settled(status) || MustRecreate(status) || Absent(status), status)
	}
}
