package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

func TestStackNote(t *testing.T) {
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	waits := &status.Delay{Message: "nodes are replaced when i-1 has been drained", Until: noon.Add(90 * time.Second)}
	for want, stack := range map[string]status.Stack{
		"":                   {Status: "UPDATE_COMPLETE"},
		"Group: no capacity": {Resource: "Group", Reason: "no capacity"},
		"it was rolled back": {Reason: "it was rolled back"},
		"the wait is over":   {Delay: &status.Delay{Message: "the wait is over"}},
		"in vain; the limit of the wait has passed":                    {Delay: &status.Delay{Message: "in vain", Until: noon}},
		"nodes are replaced when i-1 has been drained, for 1m at most": {Delay: waits},
		"Group: no capacity; nodes are replaced when i-1 has been drained, for 1m at most": {
			Resource: "Group", Reason: "no capacity", Delay: waits,
		},
	} {
		require.Equal(t, want, stackNote(stack, noon))
	}
}
