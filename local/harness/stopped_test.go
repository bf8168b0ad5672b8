package harness

// Executions that somebody stops before they have done anything: nothing in the account says then that they were there.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

const stoppedAtOnce = `kill machine=converge state="Plan" count=1`

// What was asked for once is made all the same, within a quarter of an hour: a deletion,
func TestADeletionWhoseExecutionIsStoppedAtOnce(t *testing.T) {
	upgradeLife(t, func(l *life, bad *faults.Engine) {
		l.create(unprotected)
		end := strike(t, bad, stoppedAtOnce)
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		end()
		l.phase(status.Ready)
		time.Sleep(15 * time.Minute)
		l.audited()
		l.phase(status.Deleted)
		require.Empty(t, l.Stacks("demo"))
	})
}

// and a roll at a time.
func TestARollWhoseExecutionIsStoppedAtOnce(t *testing.T) {
	upgradeLife(t, func(l *life, bad *faults.Engine) {
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.pool(fmt.Sprintf("minSize: 1, maxSize: 3, rollAt: %q", time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339)))
		l.settle()
		l.phase(status.Ready)
		before := l.Group("demo", "a").Instances[0].ID
		end := strike(t, bad, stoppedAtOnce)
		time.Sleep(2 * time.Hour)
		l.sweep()
		end()
		require.Equal(t, before, l.Group("demo", "a").Instances[0].ID)
		l.audited()
		require.NotEqual(t, before, l.Group("demo", "a").Instances[0].ID)
		l.phase(status.Ready)
	})
}
