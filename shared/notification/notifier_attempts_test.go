package notification_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

// sender records what is sent.
type sender struct {
	subjects []string
	notices  []notification.Notice
}

func (s *sender) Publish(_ context.Context, subject, _ string, _ map[string]string) error {
	s.subjects = append(s.subjects, subject)
	return nil
}

func (s *sender) Put(_ context.Context, notices []notification.Notice) error {
	s.notices = append(s.notices, notices...)
	return nil
}

// busy is a notifier during whose first three calls another writer changes the status.
type busy struct {
	*notification.Notifier
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
	return b.Notifier.StatusChanging(ctx, cluster, before, after, sent)
}

// Many drains write one status, so writes conflict and are retried. A retry does not send its notices again.
func TestRetriedWriteSendsNothingAgain(t *testing.T) {
	bucket, sender := storetest.NewBucket("state"), &sender{}
	others := store.NewState(bucket, store.Silent, time.Now)
	var out bytes.Buffer
	n := &busy{Notifier: notification.New(sender, sender, &out, time.Now), others: others}
	state := store.NewState(bucket, n, time.Now)
	require.NoError(t, others.UpdateStatus(t.Context(), "demo", func(s *status.Status) { s.ObservedVersion = "0" }))
	require.NoError(t, state.UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Phase, s.Message = status.Failed, "the quota is used up"
		s.SetNode(status.Node{Name: "n", Instance: "i-1", Pool: "a", State: status.NodeBlocked, Message: "two budgets"}, time.Unix(0, 0))
	}))
	require.Equal(t, 4, n.tries)
	require.Len(t, sender.subjects, 2, sender.subjects)
	require.Len(t, sender.notices, 2)
	require.Equal(t, 1, strings.Count(out.String(), `"ClusterPhase":1`), out.String())
}
