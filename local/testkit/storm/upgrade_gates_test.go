package storm

// Specs have the meaning that their authors intend.

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/templates"
)

// read reads a wish as drover does, at a time.
func read(w *wish, began, now time.Time) (*api.Cluster, api.Errors) {
	return api.ReadCluster(w.name+".yaml", []byte(w.yaml(began)), api.Options{Name: w.name, TemplateVersions: templates.Versions(), Now: now})
}

// Of all specs of many lives, exactly those with a flaw are rejected at their upload.
func TestFlaws(t *testing.T) {
	counted := map[bool]int{}
	for seed := uint64(1); seed <= 500; seed++ {
		p := plotOf(seed)
		began := p.clocks.begin
		if began.IsZero() {
			began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		for _, a := range p.acts {
			if a.spec == nil {
				continue
			}
			flawed := a.spec.flaw.line != "" || a.spec.flaw.window != ""
			_, errs := read(a.spec, began, began.Add(a.at))
			require.Equal(t, flawed, len(errs) > 0, "seed %d: %s: %v\n%s", seed, a.what, errs, a.spec.yaml(began))
			counted[flawed]++
		}
	}
	for kind, all := range flaws {
		for _, f := range all {
			w := wish{name: "c0", minor: firstMinor, pools: []wishedPool{
				{name: "a", max: 1, timeout: time.Hour, onTimeout: "Wait", surge: 1},
			}, flaw: f}
			_, errs := read(&w, time.Now(), time.Now())
			require.NotEmpty(t, errs, "%s: %+v", kind, f)
		}
	}
	require.NotZero(t, counted[true])
}

// The windows of the storm and of drover are open at the same minutes, also on days on which clocks change.
func TestGates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		var c clocks
		if i > 10 {
			c = someClocks(r)
		}
		t.Run(fmt.Sprint(i, " ", c.zone, " ", c.change.UTC().Format(time.DateOnly)), func(t *testing.T) {
			began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
			if c.zone != "" {
				began = c.begin
			}
			w := wish{name: "c0", minor: firstMinor, pools: []wishedPool{
				{name: "a", max: 1, timeout: time.Hour, onTimeout: "Wait", surge: 1},
			}, gate: someGate(r, c)}
			spec, errs := read(&w, began, began)
			require.Empty(t, errs, w.yaml(began))
			for at := time.Duration(0); at < 3*day; at += 5 * time.Minute {
				open, _ := spec.Spec.Upgrade.Open(began.Add(at))
				require.Equal(t, w.gate.open(began, at), open, "%s, %s\n%s", at, began.Add(at).In(zoneOf(c.zone)), w.upgrade(began))
			}
		})
	}
}
