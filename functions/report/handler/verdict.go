package handler

// The verdict on a round.

import (
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// verdict is the verdict on a round.
type verdict struct {
	status.Verdict
	// retryable reports whether a retry may succeed although the user changes nothing. quick are the pauses of retries by this execution.
	retryable bool
	quick     []time.Duration
	// execution is the execution of the round, and try the number of the attempt.
	execution string
	try       int
}

// judge returns the verdict on a round: failures first, then a finished deletion, then the plan.
func judge(in events.ReportRequest) verdict {
	if failures := failures(in); len(failures) > 0 {
		message := strings.Join(failures, "\n")
		return verdict{Verdict: status.Verdict{Phase: status.Failed, Message: message, Condition: status.Condition{
			// Views print "reason: message", so the message does not begin with the reason.
			Type: status.Converged, Status: "False", Reason: reason(in), Message: strings.TrimPrefix(message, reason(in)+": "),
		}}, retryable: mayPass(in), quick: quickRetries(in)}
	}
	if in.Plan.Outcome == events.OutcomeDeletes || in.Plan.Outcome == events.OutcomeGone {
		return verdict{Verdict: status.Verdict{Phase: status.Deleted, Message: "the cluster is deleted", Condition: status.Condition{
			Type: status.Converged, Status: "False", Reason: status.ReasonDeleted,
		}}}
	}
	return verdict{Verdict: status.Judge(in.Plan)}
}
