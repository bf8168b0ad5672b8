package storm

// The statuses of stacks. A status reports the last event of each stack within a minute. A name that only an execution used has no status.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// unknownCluster is a name that executions use, and that has neither a spec nor stacks.
const unknownCluster = "stranger"

// handledEvent is the last event of a stack that was handled.
type handledEvent struct {
	status string
	// at is the event's time. handled is when the function succeeded.
	at, handled time.Time
}

// lambdaFunc is a function as a handler.
type lambdaFunc func(ctx context.Context, payload []byte) ([]byte, error)

func (f lambdaFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

// followStackEvents records which stack events were handled.
func (w *world) followStackEvents() {
	w.Functions.Around("stackevent", func(_ aws.Config, next lambda.Handler) lambda.Handler {
		return lambdaFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			answer, err := next.Invoke(ctx, payload)
			var e harness.Event
			var detail events.StackStatus
			if err != nil || json.Unmarshal(payload, &e) != nil || json.Unmarshal(e.Detail, &detail) != nil {
				return answer, err
			}
			name := names.StackOfARN(detail.StackID)
			w.observed.Lock()
			defer w.observed.Unlock()
			if was := w.observed.handledEvents[name]; !e.Time.Before(was.at) {
				w.observed.handledEvents[name] = handledEvent{detail.StatusDetails.Status, e.Time, time.Now()}
			}
			return answer, err
		})
	})
}

// trueWithin is the time from the handling of an event until the status must report it.
const trueWithin = time.Minute

// checkStackStatuses checks that statuses report the last event of each stack, if nothing happened to the stack since.
func (w *world) checkStackStatuses() {
	w.observed.Lock()
	handled := map[string]handledEvent{}
	for name, e := range w.observed.handledEvents {
		if time.Since(e.handled) >= trueWithin {
			handled[name] = e
		}
	}
	w.observed.Unlock()
	is := map[string]string{}
	for _, s := range w.CloudFormation.Stacks() {
		is[s.StackName] = s.StackStatus
	}
	for name, e := range handled {
		now, ok := is[name]
		if ok && now != e.status || !ok && e.status != "DELETE_COMPLETE" {
			continue // something happened since, whose event is in flight or lost
		}
		cluster, stack := clusterOf(name)
		s := w.Status(cluster)
		i := slices.IndexFunc(s.Stacks, func(o status.Stack) bool { return o.Name == stack })
		if i < 0 {
			continue
		}
		row := s.Stacks[i]
		// Events have no fractions of a second. Within a second the end of an operation counts.
		if strings.HasSuffix(e.status, "_IN_PROGRESS") && row.ReportedAt.Sub(e.at) < time.Second && row.ReportedAt.Sub(e.at) > -time.Second {
			continue
		}
		absent := row.Status == "" && e.status == "DELETE_COMPLETE" // the next round plans it again
		w.check(9, absent || row.Status == e.status || w.hasLaterEvent(name, e),
			"the status of %s has %s since %s for stack %s, but an event reported %s at %s", cluster, row.Status, row.ReportedAt, stack,
			e.status, e.at)
	}
}

// hasLaterEvent reports whether the status of a stack of this name changed after an event. The stack may have the status of the event
// again, because two operations go through the same statuses. A later stack of the name may have been created and deleted since, and
// its events have another ID. The events of the second operation, or of the later stack, are in flight or lost.
func (w *world) hasLaterEvent(name string, e handledEvent) bool {
	w.observed.Lock()
	defer w.observed.Unlock()
	return w.observed.stackChanges[name].Sub(e.at) >= time.Second // the time of a handled event has no fractions
}

// checkUnknownCluster checks that the name that only executions used has no status.
func (w *world) checkUnknownCluster() {
	_, err := w.State().Status(context.Background(), unknownCluster)
	w.check(9, err != nil, "%s has neither a spec nor stacks, and a status", unknownCluster)
}
