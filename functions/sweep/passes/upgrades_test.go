package passes

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestSweepEndsUpgrades(t *testing.T) {
	for name, test := range map[string]struct {
		record  *upgrade.Record
		running bool
		failing map[string]error
		ends    bool
		// reads of two sweeps.
		reads int
	}{
		"whose execution is over":               {record: &upgrade.Record{State: upgrade.Running, Execution: "x"}, ends: true, reads: 2},
		"not while it runs":                     {record: &upgrade.Record{State: upgrade.Running, Execution: "x"}, running: true, reads: 2},
		"not one that ended, and reads it once": {record: &upgrade.Record{State: upgrade.Done, Execution: "x"}, reads: 1},
		"not one that was blocked":              {record: &upgrade.Record{State: upgrade.Blocked, Execution: "x"}, reads: 1},
		"not without a record":                  {reads: 2},
		"not when it cannot be read": {
			record: &upgrade.Record{State: upgrade.Running}, failing: map[string]error{"record": errThrottled}, reads: 2,
		},
		"not when its execution is unknown": {
			record: &upgrade.Record{State: upgrade.Running}, failing: map[string]error{"running": errThrottled}, reads: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Runs: test.running, Failing: test.failing}
			h, reads := depsOf(s), 0
			entry := store.Entry{Key: names.Upgrade(demo), ETag: "1"}
			state := stateWithRecord{
				RecordingState: sweeptest.RecordingState{State: sweeptest.State{Account: s}, Listed: sweeptest.Listed{names.Upgrades: {entry}}},
				record:         test.record, reads: &reads,
			}
			upgrades := Upgrades{State: state, Ender: h.ender(), Cache: &UpgradeCache{}}
			for range 2 {
				s.Calls = nil
				require.Equal(t, test.failing != nil, errors.Is(upgrades.Run(t.Context()), errThrottled))
				require.Equal(t, test.ends, len(s.Calls) == 2, s.Calls)
			}
			require.Equal(t, test.reads, reads)
			entry.ETag = "2"
			state.Listed[names.Upgrades] = []store.Entry{entry}
			_ = upgrades.Run(t.Context()) // the same error as above
			require.Equal(t, test.reads+1, reads, "a record that was written is read again")
		})
	}
}

// stateWithRecord counts the reads of one record.
type stateWithRecord struct {
	sweeptest.RecordingState
	record *upgrade.Record
	reads  *int
}

func (r stateWithRecord) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	*r.reads++
	return r.record, "", r.Failing["record"]
}
