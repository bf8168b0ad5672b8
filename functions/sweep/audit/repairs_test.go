package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

func TestAuditRetriesAFailedCluster(t *testing.T) {
	again := []string{"start: due 2026-11-26T12:00:00Z"}
	for name, test := range map[string]struct {
		execution string
		running   bool
		failing   map[string]error
		want      []string
	}{
		"whose execution is over":           {"x", false, nil, again},
		"without an execution":              {"", true, map[string]error{"running": errThrottled}, again},
		"not while its execution runs":      {"x", true, nil, nil},
		"not when its execution is unknown": {"x", false, map[string]error{"running": errThrottled}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{running: test.running, failing: test.failing}
			err := a.run().retryConverge(t.Context(), demo, &status.Status{Execution: test.execution})
			require.Equal(t, test.failing != nil && test.want == nil, err != nil)
			require.Equal(t, test.want, a.calls)
		})
	}
}
