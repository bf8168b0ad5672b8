package upgrade

// The times that Decide returns.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// During an upgrade with another one queued, all decisions within half an hour return the same RecheckAt. So the sweep starts one converge,
// however often the cluster was planned.
func TestRecheckAtIsTheSameForHalfAnHour(t *testing.T) {
	in := Situation{Spec: spec("r36-1"), SpecVersion: "v5", Deployed: target("r36-1"), KubernetesVersion: kubernetes}
	names("r37-2")(&in)
	last(func(r *Record) {
		r.Origin, r.Key, r.State, r.Step, r.Overridden = OriginCommand, "hand", Running, 1, "r36-1"
	})(&in)
	for _, test := range []struct{ after, until, looks time.Duration }{
		{0, 30 * time.Minute, 30 * time.Minute},
		{30 * time.Minute, time.Hour, time.Hour},
		{time.Hour, 90 * time.Minute, 90 * time.Minute},
	} {
		for after := test.after; after < test.until; after += 37 * time.Second {
			in.Now = noon.Add(after)
			d, err := Decide(in)
			require.NoError(t, err)
			require.True(t, d.Pending != nil && d.Pending.Queued, "%+v", d.Pending)
			require.Equal(t, noon.Add(test.looks), d.RecheckAt)
		}
	}
	in.Now = noon.Add(time.Minute)
	atTime(noon.Add(7*time.Minute), "r38-1")(&in)
	names("r36-1")(&in)
	d, err := Decide(in)
	require.NoError(t, err)
	require.Equal(t, noon.Add(7*time.Minute), d.RecheckAt, "an upgrade with a time is checked at that time")
}

// When clocks change, the window opens at its local hour.
func TestWindowsWhenClocksChange(t *testing.T) {
	for day, want := range map[string]string{
		"2027-03-27": "2027-03-27T21:00:00Z", // winter
		"2027-03-28": "2027-03-28T20:00:00Z", // summer time began that morning
		"2026-10-24": "2026-10-24T20:00:00Z", // summer
		"2026-10-25": "2026-10-25T21:00:00Z", // summer time ended that morning
	} {
		now, err := time.Parse(time.DateOnly, day)
		require.NoError(t, err)
		in := Situation{Spec: spec("r36-1"), Deployed: target("r36-1"), Now: now.Add(12 * time.Hour), KubernetesVersion: kubernetes}
		opens(&in)
		stable("r37-1")(&in)
		d, err := Decide(in)
		require.NoError(t, err)
		require.Nil(t, d.Start)
		require.Equal(t, want, d.RecheckAt.Format(time.RFC3339))
		in.Now = d.RecheckAt.Add(-time.Second)
		d, _ = Decide(in)
		require.Nil(t, d.Start, "not a second earlier")
		for _, open := range []time.Duration{time.Second, 4*time.Hour - time.Second} {
			in.Now = in.Now.Add(open)
			d, _ = Decide(in)
			require.NotNil(t, d.Start, "open for four hours that pass")
		}
		in.Now = in.Now.Add(time.Second)
		d, _ = Decide(in)
		require.Nil(t, d.Start)
	}
}
