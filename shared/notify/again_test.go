package notify_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/notify"
	"github.com/drover-run/drover/shared/status"
)

// Drains of a whole pool write one status: who has to write once more has told already.
func TestTheNextTryOfAWriteTellsNothingAgain(t *testing.T) {
	a := harness.Start(t)
	var out bytes.Buffer
	listeners, state, tries := notify.New(a.Config(), a.Topic(), &out, time.Now), a.State(), 0
	state.Tell = func(ctx context.Context, cluster string, before, after *status.Status, told map[string]bool) error {
		if tries++; tries < 4 {
			require.NoError(t, a.State().UpdateStatus(ctx, cluster, func(s *status.Status) { s.ObservedVersion = fmt.Sprint(tries) }))
		}
		return listeners.Tell(ctx, cluster, before, after, told)
	}
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) { s.ObservedVersion = "0" }))
	require.NoError(t, state.UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Phase, s.Message = status.Failed, "the quota is used up"
		s.SetNode(status.Node{Name: "n", Instance: "i-1", Pool: "a", State: status.NodeBlocked, Message: "two budgets"}, time.Unix(0, 0))
	}))
	a.Settle()
	require.Equal(t, 4, tries)
	require.Len(t, a.Notices(), 2, a.Notices())
	require.Equal(t, 1, strings.Count(out.String(), `"ClusterPhase":1`), out.String())
}
