package notification_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/rollout"
)

func TestRolloutNotices(t *testing.T) {
	sent := &sender{}
	var out bytes.Buffer
	n := notification.New(sent, sent, &out, time.Now)
	for _, test := range []struct {
		notify           rollout.Notify
		message, command string
		urgency          string
	}{
		{rollout.Notify{Event: rollout.EventPlanned, Plan: "0123456789abcdef"}, "the plan 0123456789ab waits for its start",
			"drover rollout start next", notification.Problem},
		{rollout.Notify{Event: rollout.EventStarted, Run: 2, Plan: "0123456789abcdef"}, "run 2 of the plan 0123456789ab has started", "",
			notification.Progress},
		{rollout.Notify{Event: rollout.EventNeedsApproval, Stage: "prod/1"}, "the stage prod/1 waits for an approval",
			"drover rollout approve next prod/1", notification.Problem},
		{rollout.Notify{Event: rollout.EventHalted, Stage: "prod/1", Reason: "Failures"}, "the run is halted in the stage prod/1: Failures",
			"drover rollout status next", notification.Problem},
		{rollout.Notify{Event: rollout.EventHalted, Reason: "Rejected"}, "the run is halted: Rejected", "drover rollout status next",
			notification.Problem},
		{rollout.Notify{Event: rollout.EventMemberBlocked, Stage: "prod/1", Cluster: "a", Reason: "Quota"},
			"the check Quota refused a in the stage prod/1, and nothing was changed", "drover rollout retry next a", notification.Problem},
		{rollout.Notify{Event: rollout.EventEnded, Run: 2, Reason: "Done"}, "run 2 has ended: Done", "", notification.Result},
		{rollout.Notify{Event: rollout.EventEnded, Run: 2, Reason: "Aborted"}, "run 2 has ended: Aborted", "", notification.Problem},
	} {
		t.Run(string(test.notify.Event)+test.notify.Reason, func(t *testing.T) {
			change := notification.DescribeRollout("next", test.notify)
			require.Equal(t, test.message, change.Message)
			require.Equal(t, test.command, change.Command)
			*sent = sender{}
			require.NoError(t, n.RolloutChanging(t.Context(), []events.RolloutEvent{change}))
			require.Len(t, sent.notices, 1)
			require.Equal(t, test.urgency, sent.notices[0].Attributes["urgency"])
			require.Equal(t, events.RolloutChange, sent.notices[0].DetailType)
			require.LessOrEqual(t, len(sent.notices[0].Subject), 100)
		})
	}
	require.Contains(t, out.String(), `"RolloutEvent":1`)
	require.NoError(t, n.RolloutState("Halted"))
	require.Contains(t, out.String(), `"state":"Halted"`)
}

// TestEveryRolloutEventHasAMessage fails for an event that users would receive without words.
func TestEveryRolloutEventHasAMessage(t *testing.T) {
	for _, event := range rollout.Events() {
		change := notification.DescribeRollout("next", rollout.Notify{Event: event, Stage: "s", Cluster: "c", Reason: "r", Run: 1, Plan: "p"})
		require.NotEmpty(t, change.Message, event)
	}
}
