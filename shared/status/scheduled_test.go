package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPreviousUpgrade(t *testing.T) {
	next := &Upgrade{Phase: UpgradeScheduled, To: "r3", Origin: "Spec"}
	recorded := func(phase, to, origin, execution string) *Upgrade {
		return &Upgrade{Phase: phase, To: to, Origin: origin, Execution: execution}
	}
	for name, test := range map[string]struct {
		recorded *Upgrade
		found    bool
	}{
		"was scheduled":                       {recorded(UpgradeScheduled, "r3", "Spec", ""), true},
		"was delayed":                         {recorded(UpgradeDelayed, "r3", "Spec", "x"), true},
		"was missed":                          {recorded(UpgradeMissed, "r3", "Spec", ""), true},
		"was refused by planning":             {recorded("Blocked", "r3", "Spec", ""), true},
		"was blocked by an execution":         {recorded("Blocked", "r3", "Spec", "x"), false},
		"is in flight":                        {recorded("Running", "r3", "Spec", "x"), false},
		"has another release":                 {recorded(UpgradeScheduled, "r2", "Spec", ""), false},
		"was requested by a channel":          {recorded(UpgradeScheduled, "r3", "Channel", ""), false},
		"was not recorded as a first upgrade": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var want *Upgrade
			if test.found {
				want = test.recorded
			}
			require.Equal(t, want, (&Status{Upgrade: test.recorded}).RecordedBefore(next))
			require.Equal(t, want, (&Status{Upgrade: recorded("Running", "r2", "Command", "y"), NextUpgrade: test.recorded}).RecordedBefore(next))
			require.Nil(t, (&Status{Upgrade: test.recorded}).RecordedBefore(nil))
		})
	}
}

func TestInheritLateness(t *testing.T) {
	at, other := noon.Add(-time.Hour), noon.Add(-2*time.Hour)
	for name, test := range map[string]struct {
		now, before string // phases
		at, was     *time.Time
		inherits    bool
	}{
		"keeps a delay of the same time":                 {now: UpgradeScheduled, before: UpgradeDelayed, at: &at, was: &at, inherits: true},
		"keeps the cause of a delay":                     {now: UpgradeDelayed, before: UpgradeDelayed, at: &at, was: &at, inherits: true},
		"keeps a miss of the same time":                  {now: UpgradeDelayed, before: UpgradeMissed, at: &at, was: &at, inherits: true},
		"keeps a miss at its time":                       {now: UpgradeScheduled, before: UpgradeMissed, at: &noon, was: &noon, inherits: true},
		"is missed after a delay":                        {now: UpgradeMissed, before: UpgradeDelayed, at: &at, was: &at},
		"has a message of its own when it was scheduled": {now: UpgradeScheduled, before: UpgradeScheduled, at: &at, was: &at},
		"has another time":                               {now: UpgradeScheduled, before: UpgradeDelayed, at: &at, was: &other},
		"has a time in the future":                       {now: UpgradeScheduled, before: UpgradeDelayed, at: &evening, was: &evening},
		"has no time":                                    {now: UpgradeScheduled, before: UpgradeDelayed, was: &at},
		"had no time":                                    {now: UpgradeScheduled, before: UpgradeDelayed, at: &at},
	} {
		t.Run(name, func(t *testing.T) {
			u := &Upgrade{Phase: test.now, At: test.at, Message: "now"}
			u.InheritLateness(&Upgrade{Phase: test.before, At: test.was, Message: "before"}, noon)
			want := &Upgrade{Phase: test.now, At: test.at, Message: "now"}
			if test.inherits {
				want.Phase, want.Message = test.before, "before"
			}
			require.Equal(t, want, u)
		})
	}
}

func TestUpgradesAreEqual(t *testing.T) {
	u := &Upgrade{Phase: UpgradeMissed, To: "r3", Origin: "At", At: &noon}
	began := &Upgrade{Phase: "Done", Started: &noon}
	for name, test := range map[string]struct {
		a, b *Upgrade
		want bool
	}{
		"with the same record":   {u, &Upgrade{Phase: UpgradeMissed, To: "r3", Origin: "At", At: &noon, Message: "x"}, true},
		"without a time":         {&Upgrade{To: "r3"}, &Upgrade{To: "r3"}, true},
		"with the same start":    {began, &Upgrade{Phase: "Stopped", Started: &noon, To: "r9"}, true},
		"not with another start": {began, &Upgrade{Phase: "Done", Started: &evening}, false},
		"not when one began":     {began, &Upgrade{Phase: "Done"}, false},
		"not when one has none":  {u, nil, false},
		"not with another time":  {u, &Upgrade{Phase: UpgradeMissed, To: "r3", Origin: "At", At: &evening}, false},
		"not when one is at no time": {
			u, &Upgrade{Phase: UpgradeMissed, To: "r3", Origin: "At"}, false,
		},
		"not with another phase":   {u, &Upgrade{Phase: UpgradeDelayed, To: "r3", Origin: "At", At: &noon}, false},
		"not with another release": {u, &Upgrade{Phase: UpgradeMissed, To: "r2", Origin: "At", At: &noon}, false},
		"not with another origin":  {u, &Upgrade{Phase: UpgradeMissed, To: "r3", Origin: "Spec", At: &noon}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, test.a.IsSameEnded(test.b))
			require.Equal(t, test.want, test.b.IsSameEnded(test.a))
		})
	}
	require.False(t, (*Upgrade)(nil).IsSameEnded(nil))
}

func TestRefuseRequest(t *testing.T) {
	s := Status{}
	s.Refuse(ReasonRollRefused, "no pool x", noon)
	s.Refuse(ReasonUpgradeRefused, "no release y", evening)
	require.Equal(t, []Condition{{
		Type: RequestAccepted, Status: "False", Reason: ReasonUpgradeRefused, Message: "no release y", LastTransitionTime: evening,
	}}, s.Conditions, "the time is that of the last request")
}

func TestChangeMade(t *testing.T) {
	s := Status{KubernetesVersion: "1.36", Plan: []Change{{Stack: "control-plane", KubernetesVersion: "1.37"}, {Stack: "addons"}}}
	s.RecordChange("addons")
	require.Equal(t, "1.36", s.KubernetesVersion)
	s.RecordChange("pool-a")
	require.Equal(t, "1.36", s.KubernetesVersion)
	s.RecordChange("control-plane")
	require.Equal(t, "1.37", s.KubernetesVersion)
}
