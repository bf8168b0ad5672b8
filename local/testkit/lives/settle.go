package lives

import (
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/stepfunctions"
)

var errStillRunning = errors.New("work is still in flight")

// SettleAll waits until no work is in flight, at most three days of virtual time: a hook stays open for two.
func (l *Life) SettleAll() {
	for range 3 * 24 * 60 {
		time.Sleep(time.Minute)
		if l.Idle() && !slices.ContainsFunc(l.StepFunctions.Executions(), func(x stepfunctions.Execution) bool { return x.Status == "RUNNING" }) {
			return
		}
	}
	require.NoError(l.T, errStillRunning)
}
