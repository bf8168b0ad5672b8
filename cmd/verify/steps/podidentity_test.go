package steps

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
)

func TestRequireIdentity(t *testing.T) {
	const role, session = "arn:aws:iam::111122223333:role/path/verify-abcdef-Role-1", "arn:aws:sts::111122223333:assumed-role/"
	for name, c := range map[string]struct {
		simulated bool
		message   string
		outcome   runner.Outcome
	}{
		"a session of the role": {message: session + "verify-abcdef-Role-1/eks-x", outcome: runner.Passed},
		"the role of the node":  {message: session + "node/i-1", outcome: runner.Failed},
		"a longer role":         {message: session + "verify-abcdef-Role-12/s", outcome: runner.Failed},
		"no message on AWS":     {outcome: runner.Failed},
		"an error message":      {message: "Unable to locate credentials", outcome: runner.Failed},
		"a simulated pod":       {simulated: true, outcome: runner.Skipped},
		"a wrong simulated pod": {simulated: true, message: session + "node/i-1", outcome: runner.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			target := &Target{Simulated: c.simulated}
			result := step(t, func(_ context.Context, log *runner.Log) error { return target.requireIdentity(log, role, c.message) })
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
		})
	}
}
