package notification

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

// A failure is told once, however often drover itself tries, and again when anything about it is new.
func TestWhatIsTriedAgainIsToldOnce(t *testing.T) {
	const byPerson, byDrover, another = "arn:x:by-hand", "arn:x:demo-0123456789abcdef-again", "arn:x:demo-fedcba9876543210-again"
	failed := func(execution, message string) status.Status {
		s := status.Status{Phase: status.Failed, Message: message, SpecVersion: "v1", Execution: execution}
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: "StackFailed", Message: message}, now)
		return s
	}
	phase := func(phase status.Phase, execution string) status.Status {
		return status.Status{Phase: phase, SpecVersion: "v1", Execution: execution}
	}
	of := func(version, reason string, s status.Status) status.Status {
		s.SpecVersion = version
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
		// The first is told; then what follows it, and which of these are told.
		first status.Status
		then  []status.Status
		told  []bool
	}{
		"a try that ends the same": {
			failed(byPerson, aws), []status.Status{phase(status.Converging, byDrover), failed(byDrover, again)}, []bool{false, false},
		},
		"and the next": {
			failed(byPerson, aws), []status.Status{
				phase(status.Converging, byDrover), failed(byDrover, again), phase(status.Converging, another), failed(another, aws),
			}, []bool{false, false, false, false},
		},
		"one that cannot even plan": {failed(byPerson, s3), []status.Status{failed(byDrover, s3Too)}, []bool{false}},
		"a deletion that fails again": {
			failed(byPerson, aws), []status.Status{phase(status.Deleting, byDrover), failed(byDrover, again)}, []bool{false, false},
		},
		"one of other instances": {
			failed(byPerson, "instance i-0123456789abcdef0 did not join"), []status.Status{
				failed(byDrover, "instance i-fedcba98765432100 did not join"),
			}, []bool{false},
		},
		"another try of one execution": {
			failed(byPerson, aws), []status.Status{phase(status.Converging, byPerson), failed(byPerson, again)}, []bool{false, false},
		},
		"another try that ends in other words": {
			failed(byPerson, aws), []status.Status{phase(status.Converging, byPerson), failed(byPerson, "quota")}, []bool{false, true},
		},
		"a try that ends in other words": {
			failed(byPerson, aws), []status.Status{phase(status.Converging, byDrover), failed(byDrover, "quota")}, []bool{false, true},
		},
		"which are told once, too": {
			failed(byPerson, aws), []status.Status{failed(byDrover, "quota"), phase(status.Converging, another), failed(another, "quota")},
			[]bool{true, false, false},
		},
		"a try that ends for another reason": {
			failed(byPerson, aws), []status.Status{phase(status.Converging, byDrover), of("v1", "Throttled", failed(byDrover, aws))},
			[]bool{false, true},
		},
		"a try that succeeds": {
			failed(byPerson, aws), []status.Status{phase(status.Converging, byDrover), phase(status.Ready, byDrover)}, []bool{false, true},
		},
		"after which the same failure is new": {
			failed(byPerson, aws), []status.Status{phase(status.Ready, byDrover), phase(status.Converging, another), failed(another, aws)},
			[]bool{true, true, true},
		},
		"a try of a person that ends the same": {
			failed(byPerson, aws), []status.Status{phase(status.Converging, "arn:x:2"), failed("arn:x:2", again)}, []bool{true, true},
		},
		"one of a person that cannot even plan": {failed(byPerson, s3), []status.Status{failed("arn:x:2", s3)}, []bool{true}},
		"the same report twice":                 {failed(byPerson, s3), []status.Status{failed(byPerson, s3Too)}, []bool{false}},
		"a new spec that waits":                 {failed(byDrover, aws), []status.Status{phase(status.Pending, byDrover)}, []bool{true}},
		"a new spec that fails the same": {
			failed(byPerson, aws), []status.Status{phase(status.Converging, byDrover), of("v2", "StackFailed", failed(byDrover, aws))},
			[]bool{false, true},
		},
		"an upgrade that begins after a try that failed": {
			failed(byDrover, aws), []status.Status{phase(status.Upgrading, byDrover)}, []bool{true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// As notify does with what is written: what is noted stays until the next.
			before := status.Status{Phase: status.Converging, SpecVersion: "v1"}
			tell := func(after status.Status) bool {
				after.ToldFailure = before.ToldFailure
				told := len(Diff("demo", &before, &after)) > 0
				RecordSent(&before, &after)
				before = after
				return told
			}
			require.True(t, tell(test.first))
			var told []bool
			for _, s := range test.then {
				told = append(told, tell(s))
			}
			require.Equal(t, test.told, told)
		})
	}
}
