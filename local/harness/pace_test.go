package harness

// The pace of a roll, where what was before it left the pool in another state than its spec has it.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// A roll that gets no instances is rolled back, and leaves the group as large as it had made it: larger than the spec lets it be. The next try
// changes the pace by itself twice, for a group of the same size: after the rollback, and when the stack is at rest again.
func TestATryAfterARollThatLeftItsPoolLarger(t *testing.T) {
	upgradeLife(t, func(l *life, bad *faults.Engine) {
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "minSize: 1, maxSize: 3", "minSize: 2, maxSize: 3, update: {maxSurge: 2}", 1))
		l.settle()
		l.phase(status.Ready)
		end := strike(t, bad, "launch-fails")
		l.Converge("demo", "a")
		l.Until("it is rolled back", func() bool { return l.Stacks("demo")["pool-a"] == "UPDATE_ROLLBACK_IN_PROGRESS" })
		end()
		l.settle()
		l.phase(status.Failed)
		require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")["pool-a"])
		time.Sleep(30 * time.Minute) // Auto Scaling launches what the group lacks
		require.Equal(t, 4, l.Group("demo", "a").Desired)
		began := time.Now()
		l.again()
		l.phase(status.Ready)
		require.Less(t, time.Since(began), time.Hour, "it waited for the event of an operation that was not begun")
		require.LessOrEqual(t, l.Group("demo", "a").Desired, 3)
	})
}
