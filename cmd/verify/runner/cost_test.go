package runner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
)

func TestMeter(t *testing.T) {
	begin := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	exact, whole := runner.Rate{Name: "nodes", PerHour: 1}, runner.Rate{Name: "gateways", PerHour: 10, WholeHours: true}
	m := &runner.Meter{}
	require.Zero(t, m.Total(begin))
	m.Start("a", begin, exact, whole)
	require.InDelta(t, 0.5+10, m.Total(at(30*time.Minute)), 1e-9, "AWS bills each hour that began")
	require.InDelta(t, 1+10, m.Total(at(time.Hour)), 1e-9)
	require.InDelta(t, 1.5+20, m.Total(at(90*time.Minute)), 1e-9)
	m.Start("b", at(time.Hour), exact)
	m.Stop("a", at(90*time.Minute))
	require.InDelta(t, 1.5+20+1, m.Total(at(2*time.Hour)), 1e-9, "what ended costs nothing more")
	require.Equal(t, []string{"gateways $20.00", "nodes $2.50"}, m.Parts(at(2*time.Hour)))
}
