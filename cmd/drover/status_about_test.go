package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

func TestWhatIsSaidOfAStack(t *testing.T) {
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	waits := &status.Waits{Message: "nodes are replaced when i-1 are drained", Until: noon}
	for want, stack := range map[string]status.Stack{
		"":                                {Status: "UPDATE_COMPLETE"},
		"Group: no capacity":              {Resource: "Group", Reason: "no capacity"},
		"it was rolled back":              {Reason: "it was rolled back"},
		"nodes are replaced all the same": {Waits: &status.Waits{Message: "nodes are replaced all the same"}},
		"nodes are replaced when i-1 are drained, until 2026-11-01T12:00:00Z at the latest":                     {Waits: waits},
		"Group: no capacity; nodes are replaced when i-1 are drained, until 2026-11-01T12:00:00Z at the latest": {Resource: "Group", Reason: "no capacity", Waits: waits},
	} {
		require.Equal(t, want, about(stack))
	}
}
