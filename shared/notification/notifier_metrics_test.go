package notification_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/status"
)

// Each phase of an upgrade is counted once. Its duration is measured at its end.
func TestUpgradesAreMeasured(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	began, ended := now.Add(-time.Hour), now.Add(-time.Minute)
	at := func(phase string, steps ...status.UpgradeStep) *status.Upgrade {
		return &status.Upgrade{Phase: phase, To: "r2", Origin: "Spec", Execution: "x", Started: &began, Steps: steps}
	}
	done := at("Done")
	done.Ended = &ended
	toCome := &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "Spec", At: &now}
	last := &status.Upgrade{Phase: "Done", To: "r1", Origin: "Spec", Started: &began, Ended: &ended}
	tests := map[string]struct {
		before, after *status.Upgrade
		want          []string
	}{
		"a scheduled upgrade": {nil, toCome, []string{"UpgradePhase Scheduled 1"}},
		"an upgrade begins":   {toCome, at("Checking"), []string{"UpgradePhase Checking 1"}},
		"a step":              {at("Running"), at("Running", status.UpgradeStep{Name: "nodes", Started: &began}), nil},
		"the end":             {at("Running"), done, []string{"UpgradePhase Done 1", "UpgradeDuration Done 3540"}},
		"no change":           {done, done, nil},
		"a removed upgrade":   {toCome, nil, []string{"UpgradePhase Cancelled 1"}},
		"a removed upgrade, and the last one shows again": {toCome, last, []string{"UpgradePhase Cancelled 1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l := notification.New(&sender{}, &sender{}, &out, func() time.Time { return now })
			require.NoError(t, l.StatusChanging(t.Context(), "demo", &status.Status{
				Upgrade: test.before,
			}, &status.Status{Upgrade: test.after}, map[string]bool{}))
			var got []string
			for line := range strings.Lines(out.String()) {
				var m map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &m))
				for _, metric := range []string{"ClusterPhase", "UpgradePhase", "UpgradeDuration"} {
					if amount, ok := m[metric]; ok {
						got = append(got, fmt.Sprint(metric, " ", m["phase"], " ", amount))
					}
				}
			}
			require.Equal(t, test.want, got)
		})
	}
}
