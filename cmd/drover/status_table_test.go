package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

func TestTheTableSaysThatTheNewestSpecIsRefused(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for want, c := range map[string]struct{ phase, message, reason, rejected string }{
		"  the cluster is what its spec says; SpecInvalid: demo.yaml:3: spec.bogus … (1 more)\n": {
			"Ready", "the cluster is what its spec says", "SpecInvalid", "demo.yaml:3: spec.bogus\ndemo.yaml:4: spec.other",
		},
		"  demo.yaml was deleted, but deletion protection is on\n": {
			"Stopped", "demo.yaml was deleted, but deletion protection is on", "SpecAbsent", "demo.yaml was deleted",
		},
		"  the cluster is gone\n":               {"Deleted", "the cluster is gone", "SpecAbsent", "demo.yaml was deleted"},
		"  the cluster is what its spec says\n": {"Ready", "the cluster is what its spec says", "", ""},
	} {
		cluster := &status.Cluster{}
		cluster.Status.Phase, cluster.Status.Message = status.Phase(c.phase), c.message
		condition := status.Condition{Type: status.SpecAccepted, Status: "True", Reason: "Valid"}
		if c.reason != "" {
			condition = status.Condition{Type: status.SpecAccepted, Status: "False", Reason: c.reason, Message: c.rejected}
		}
		cluster.Status.Set(condition, now)
		var out strings.Builder
		printTable(&out, []*status.Cluster{cluster})
		require.True(t, strings.HasSuffix(out.String(), want), out.String())
	}
}
