package handler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestTheStatusKeepsTheLastTenUpgrades(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	h := &Handler{Now: func() time.Time { return now }}
	s := &status.Status{}
	for n := range 12 {
		r := &upgrade.Record{
			Number: int64(n), Execution: fmt.Sprint("x", n), Origin: upgrade.OriginHand, State: upgrade.Running, Target: upgrade.Target{Release: fmt.Sprint("r", n)},
			Steps: []upgrade.Step{{Kind: upgrade.StepNodes, Started: now.Add(time.Minute), Ended: now.Add(time.Hour)}}, Started: now,
		}
		h.say(s, r, []status.Check{{Name: "NodesReady"}}, "the nodes", end{})
		require.Len(t, s.Upgrades, min(n, 10), "only what is over")
		r.State, r.Ended = upgrade.Done, now.Add(2*time.Hour)
		for range 2 { // a call that died is made again
			h.say(s, r, nil, "it is over", end{})
		}
		require.Len(t, s.Upgrades, min(n+1, 10))
		require.Equal(t, *s.Upgrade, s.Upgrades[0], "the newest first")
		now = now.Add(24 * time.Hour)
	}
	last, first := s.Upgrades[0], s.Upgrades[9]
	require.Equal(t, []string{"r11", "r2"}, []string{last.To, first.To})
	require.Equal(t, 2*time.Hour, last.Ended.Sub(*last.Started))
	require.Equal(t, 59*time.Minute, last.Steps[0].Ended.Sub(*last.Steps[0].Started))
	require.Equal(t, []status.Check{{Name: "NodesReady"}}, last.Checks, "what was found stays")
}
