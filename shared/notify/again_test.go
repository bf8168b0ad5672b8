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
	"github.com/drover-run/drover/shared/store"
)

// busy is a notifier during whose first three calls another writer changes the status.
type busy struct {
	*notify.Listeners
	others *store.State
	tries  int
}

func (b *busy) StatusChanging(ctx context.Context, cluster string, before, after *status.Status, sent map[string]bool) error {
	if b.tries++; b.tries < 4 {
		err := b.others.UpdateStatus(ctx, cluster, func(s *status.Status) { s.ObservedVersion = fmt.Sprint(b.tries) })
		if err != nil {
			return err
		}
	}
	return b.Listeners.StatusChanging(ctx, cluster, before, after, sent)
}

// Drains of a whole pool write one status: who has to write once more has told already.
func TestTheNextTryOfAWriteTellsNothingAgain(t *testing.T) {
	a := harness.Start(t)
	var out bytes.Buffer
	n := &busy{Listeners: notify.New(a.Config(), a.Topic(), &out, time.Now), others: a.State()}
	state := store.NewState(a.State().Objects, n, time.Now)
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) { s.ObservedVersion = "0" }))
	require.NoError(t, state.UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Phase, s.Message = status.Failed, "the quota is used up"
		s.SetNode(status.Node{Name: "n", Instance: "i-1", Pool: "a", State: status.NodeBlocked, Message: "two budgets"}, time.Unix(0, 0))
	}))
	a.Settle()
	require.Equal(t, 4, n.tries)
	require.Len(t, a.Notices(), 2, a.Notices())
	require.Equal(t, 1, strings.Count(out.String(), `"ClusterPhase":1`), out.String())
}
