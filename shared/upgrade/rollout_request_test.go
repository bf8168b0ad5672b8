package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// withAssignment is the first attempt of run 3 of the rollout next.
func withAssignment(release string) func(*Situation) {
	return func(in *Situation) {
		in.Rollout = &RolloutRequest{Key: "rollout next 3.1 0123456789abcdef", Release: release, SHA256: "sha-" + release}
		in.PinnedVersion = func(release, _ string) (string, error) { return kubernetes(release) }
	}
}

func back(in *Situation) { in.Rollout.Rollback = true }

// frozen is a freeze of one kind of work until a time after noon; 0 is never.
func frozen(what api.Stop, until time.Duration) func(*Situation) {
	return func(in *Situation) {
		in.Frozen = func(stop api.Stop) (*api.Freeze, time.Time) {
			if stop != what {
				return nil, time.Time{}
			}
			f := &api.Freeze{Metadata: api.Metadata{Name: "sale"}, Spec: api.FreezeSpec{Reason: "peak"}}
			if until == 0 {
				return f, time.Time{}
			}
			return f, noon.Add(until)
		}
	}
}

func withClaim(in *Situation) { in.Claimed = func() bool { return true } }

func TestDecideAssigned(t *testing.T) {
	const key = "rollout next 3.1 0123456789abcdef"
	const begins = "Rollout " + key + " r37-1 sha-r37-1"
	none := func(*Situation) {}
	for name, test := range map[string]struct {
		given   []func(*Situation)
		start   string
		pending string
		at      time.Time
	}{
		"begins an attempt":                          {given: []func(*Situation){withAssignment("r37-1")}, start: begins},
		"does nothing where the release is deployed": {given: []func(*Situation){withAssignment("r36-1")}},
		"does nothing in a cluster that opted out": {given: []func(*Situation){withAssignment("r37-1"), func(in *Situation) {
			in.Spec.Spec.Fleet.Release = api.FleetPinned
		}}},
		"comes after the spec": {given: []func(*Situation){withAssignment("r37-1"), names("r37-2")}, start: "Spec spec v5 r37-2 "},
		"comes after a time": {
			given: []func(*Situation){withAssignment("r37-1"), atTime(noon, "r37-2")},
			start: "At at 2026-11-22T12:00:00Z r37-2 r37-2 ",
		},
		"comes before the channel":        {given: []func(*Situation){withAssignment("r37-1"), stable("r37-2")}, start: begins},
		"keeps the channel from a member": {given: []func(*Situation){stable("r37-2"), withClaim}},
		"waits for the window": {
			given:   []func(*Situation){withAssignment("r37-1"), opens},
			pending: WaitsForWindow, at: time.Date(2026, 11, 22, 21, 0, 0, 0, time.UTC),
		},
		"begins an attempt once": {given: []func(*Situation){withAssignment("r37-1"), answeredBy(OriginRollout, key, Done)}},
		"does not retry a blocked attempt": {
			given: []func(*Situation){withAssignment("r37-1"), answeredBy(OriginRollout, key, Blocked), none},
		},
		"begins another attempt": {
			given: []func(*Situation){withAssignment("r37-1"), answeredBy(OriginRollout, "rollout next 2.1 0123456789abcdef", Blocked)},
			start: begins,
		},
		"waits for a freeze of rollouts": {
			given:   []func(*Situation){withAssignment("r37-1"), frozen(api.StopRollouts, time.Hour)},
			pending: "the freeze sale delays it: peak", at: noon.Add(time.Hour),
		},
		"ignores a freeze of other upgrades": {
			given: []func(*Situation){withAssignment("r37-1"), frozen(api.StopUpgrades, time.Hour)}, start: begins,
		},
		"holds a spec in a freeze of upgrades": {
			given:   []func(*Situation){names("r37-1"), frozen(api.StopUpgrades, time.Hour)},
			pending: "the freeze sale delays it: peak", at: noon.Add(time.Hour),
		},
		"holds a time in a freeze until it is missed": {
			given:   []func(*Situation){atTime(noon, "r37-1"), frozen(api.StopUpgrades, 9*time.Hour)},
			pending: "the freeze sale delays it: peak", at: noon.Add(MissedAfter),
		},
		"holds a channel in a freeze without an end": {
			given: []func(*Situation){stable("r37-1"), frozen(api.StopUpgrades, 0)}, pending: "the freeze sale delays it: peak",
		},
		"rolls back, whatever window and freeze say": {
			given: []func(*Situation){
				withDeployed("r37-1", "1.37"), answeredBy(OriginRollout, "rollout next 3.0 0123456789abcdef", Done), last(func(r *Record) {
					r.Overridden = "r36-1"
				}), withAssignment("r36-1"), back, opens, frozen(api.StopRollouts, time.Hour),
			},
			start: "Rollback " + key + " r36-1 sha-r36-1",
		},
		"rolls back an upgrade that stopped before the pin": {
			given: []func(*Situation){
				withDeployed("r36-1", "1.37"), last(func(r *Record) { r.State, r.Step, r.Overridden, r.Origin = Stopped, 1, "r36-1", OriginRollout }),
				withAssignment("r36-1"), back,
			},
			start: "Rollback " + key + " r36-1 sha-r36-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := Situation{Spec: spec("r36-1"), SpecVersion: "v5", Deployed: target("r36-1"), Now: noon, KubernetesVersion: kubernetes}
			for _, given := range test.given {
				given(&in)
			}
			d, err := Decide(in)
			require.NoError(t, err)
			start := ""
			if s := d.Start; s != nil {
				require.Equal(t, s.Origin == OriginRollback, s.Rollback)
				start = string(s.Origin) + " " + s.Key + " " + s.Release + " " + s.SHA256
			}
			require.Equal(t, test.start, start)
			if test.pending == "" {
				require.Nil(t, d.Pending)
				return
			}
			require.Equal(t, test.pending, d.Pending.Message)
			require.Equal(t, test.at, d.Pending.At)
			require.Equal(t, test.at, d.RecheckAt)
			require.Equal(t, test.at.IsZero(), d.Pending.Blocked)
		})
	}
}
