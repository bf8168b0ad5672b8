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
		message string
		outcome runner.Outcome
	}{
		"a session of the role": {message: session + "verify-abcdef-Role-1/eks-x", outcome: runner.Passed},
		"the role of the node":  {message: session + "node/i-1", outcome: runner.Failed},
		"a longer role":         {message: session + "verify-abcdef-Role-12/s", outcome: runner.Failed},
		"no message":            {outcome: runner.Failed},
		"an error message":      {message: "Unable to locate credentials", outcome: runner.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			result := step(t, func(_ context.Context, log *runner.Log) error { return requireIdentity(log, role, c.message) })
			require.Equal(t, c.outcome, result.Outcome, result.Reason)
		})
	}
}
