package notification

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

// A failure is sent once while retries by drover fail in the same way. A different failure is sent again.
func TestRepeatedFailureIsSentOnce(t *testing.T) {
	const byOperator, byDrover, another = "arn:x:by-hand", "arn:x:demo-0123456789abcdef-again", "arn:x:demo-fedcba9876543210-again"
	failed := func(execution, message string) status.Status {
		s := status.Status{Phase: status.Failed, Message: message, PlannedVersion: "v1", Execution: execution}
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: "StackFailed", Message: message}, now)
		return s
	}
	phase := func(phase status.Phase, execution string) status.Status {
		return status.Status{Phase: phase, PlannedVersion: "v1", Execution: execution}
	}
	of := func(version, reason string, s status.Status) status.Status {
		s.PlannedVersion = version
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: reason}, now)
		return s
	}
	const (
		aws   = "api error TooMany: no (RequestToken: 8a5b1d4e-0000-4000-8000-0123456789ab, HandlerErrorCode: Limit)"
		again = "api error TooMany: no (RequestToken: 8a5b1d4e-ffff-4fff-8fff-ffffffffffff, HandlerErrorCode: Limit)"
		s3    = "https response error StatusCode: 503, RequestID: 4442587FB7D0A2F9, HostID: vlR7PnpV2Ce81l0P/RW6+==, SlowDown"
		s3Too = "https response error StatusCode: 503, RequestID: 5552587FB7D0A2F9, HostID: abR7PnpV2Ce81l0P/RW6+==, SlowDown"
	)
	tests := map[string]struct {
		// first is always sent. sent says which of the later statuses are sent.
		first status.Status
		then  []status.Status
		sent  []bool
	}{
		"a retry with the same failure": {
			failed(byOperator, aws), []status.Status{phase(status.Converging, byDrover), failed(byDrover, again)}, []bool{false, false},
		},
		"two retries with the same failure": {
			failed(byOperator, aws), []status.Status{
				phase(status.Converging, byDrover), failed(byDrover, again), phase(status.Converging, another), failed(another, aws),
			}, []bool{false, false, false, false},
		},
		"a retry that cannot plan": {failed(byOperator, s3), []status.Status{failed(byDrover, s3Too)}, []bool{false}},
		"a deletion with the same failure": {
			failed(byOperator, aws), []status.Status{phase(status.Deleting, byDrover), failed(byDrover, again)}, []bool{false, false},
		},
		"the same failure of other instances": {
			failed(byOperator, "instance i-0123456789abcdef0 did not join"), []status.Status{
				failed(byDrover, "instance i-fedcba98765432100 did not join"),
			}, []bool{false},
		},
		"a retry within one execution": {
			failed(byOperator, aws), []status.Status{phase(status.Converging, byOperator), failed(byOperator, again)}, []bool{false, false},
		},
		"a retry within one execution, with another message": {
			failed(byOperator, aws), []status.Status{phase(status.Converging, byOperator), failed(byOperator, "quota")}, []bool{false, true},
		},
		"a retry with another message": {
			failed(byOperator, aws), []status.Status{phase(status.Converging, byDrover), failed(byDrover, "quota")}, []bool{false, true},
		},
		"a third try with that message": {
			failed(byOperator, aws), []status.Status{failed(byDrover, "quota"), phase(status.Converging, another), failed(another, "quota")},
			[]bool{true, false, false},
		},
		"a retry with another reason": {
			failed(byOperator, aws), []status.Status{phase(status.Converging, byDrover), of("v1", "Throttled", failed(byDrover, aws))},
			[]bool{false, true},
		},
		"a retry that succeeds": {
			failed(byOperator, aws), []status.Status{phase(status.Converging, byDrover), phase(status.Ready, byDrover)}, []bool{false, true},
		},
		"the same failure after a success": {
			failed(byOperator, aws), []status.Status{phase(status.Ready, byDrover), phase(status.Converging, another), failed(another, aws)},
			[]bool{true, true, true},
		},
		"an operator's try with the same failure": {
			failed(byOperator, aws), []status.Status{phase(status.Converging, "arn:x:2"), failed("arn:x:2", again)}, []bool{true, true},
		},
		"an operator's try that cannot plan": {failed(byOperator, s3), []status.Status{failed("arn:x:2", s3)}, []bool{true}},
		"a repeated report":                  {failed(byOperator, s3), []status.Status{failed(byOperator, s3Too)}, []bool{false}},
		"a new spec":                         {failed(byDrover, aws), []status.Status{phase(status.Pending, byDrover)}, []bool{true}},
		"a new spec with the same failure": {
			failed(byOperator, aws), []status.Status{phase(status.Converging, byDrover), of("v2", "StackFailed", failed(byDrover, aws))},
			[]bool{false, true},
		},
		"an upgrade after a failed retry": {
			failed(byDrover, aws), []status.Status{phase(status.Upgrading, byDrover)}, []bool{true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// The status keeps the recorded failure until the next one.
			before := status.Status{Phase: status.Converging, PlannedVersion: "v1"}
			isSent := func(after status.Status) bool {
				after.NotifiedFailure = before.NotifiedFailure
				sent := len(Diff("demo", &before, &after)) > 0
				RecordSent(&before, &after)
				before = after
				return sent
			}
			require.True(t, isSent(test.first))
			var sent []bool
			for _, s := range test.then {
				sent = append(sent, isSent(s))
			}
			require.Equal(t, test.sent, sent)
		})
	}
}
