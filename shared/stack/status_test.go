package stack

import (
	"testing"

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
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got := struct{ absent, mustRecreate, settled, inProgress bool }{Absent(name), MustRecreate(name), Settled(name), InProgress(name)}
			require.Equal(t, want, got)
		})
	}
}
