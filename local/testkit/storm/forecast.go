package storm

// Previews: the preview before an upload must equal the plan after it.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// forecastLasts is how long a forecast is judged. Later the clock may have changed its inputs.
const forecastLasts = time.Minute

// expectation is the preview of an upload.
type expectation struct {
	planner.Forecast
	// version of the upload, and the time and turn of the forecast.
	version string
	at      time.Duration
	turn    int
}

// notUploaded is the specs bucket with one spec that is not uploaded yet.
type notUploaded struct {
	planner.Specs
	key, spec string
}

func (n notUploaded) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	if key == n.key {
		return store.Object{Body: []byte(n.spec), Version: "not-uploaded"}, nil
	}
	return n.Specs.Get(ctx, key, limit)
}

// forecast previews the upload of a spec, as drover diff does. It returns nil for an invalid spec, and for a cluster
// that is not idle, in which other operations may come first.
func (w *world) forecast(cluster string, spec *wish) *expectation {
	if s := w.Status(cluster); s.Phase != status.Ready || s.PlannedVersion != w.versions[cluster] || w.running() ||
		w.unsettledPart(cluster) != "" {
		return nil
	}
	h := *w.Functions.Planner
	h.Specs = notUploaded{h.Specs, names.ClusterSpec(cluster), spec.yaml(w.began)}
	f, err := h.Forecast(context.Background(), cluster)
	if err != nil || f.Reason != "" || f.Unused != nil || f.InFlight != nil {
		return nil
	}
	if w.plot.changeForecast != nil {
		w.plot.changeForecast(&f)
	}
	return &expectation{Forecast: f, at: time.Since(w.began), turn: w.turns.count}
}

// expect records the preview of an upload.
func (w *world) expect(cluster, version string, e *expectation) {
	w.observed.Lock()
	defer w.observed.Unlock()
	delete(w.observed.previews, cluster)
	if e != nil {
		e.version = version
		w.observed.previews[cluster] = e
	}
}

// asForetold judges the first status that planning writes after an upload. Nothing else may have happened to the
// cluster.
func (w *world) asForetold(cluster string, r *readiness) {
	w.observed.Lock()
	e, disturbed := w.observed.previews[cluster], r.disturbed
	w.observed.Unlock()
	s := w.Status(cluster)
	if e == nil || s.PlannedVersion != e.version {
		return
	}
	w.observed.Lock()
	delete(w.observed.previews, cluster)
	w.observed.Unlock()
	now, want := time.Since(w.began), w.desired[cluster]
	if disturbed > e.turn || now > e.at+forecastLasts || want.gate.open(w.began, e.at) != want.gate.open(w.began, now) {
		return
	}
	w.out.Acts["forecast"]++
	w.check(3, foretells(e.Upgrade, w.began.Add(now)) == reports(s, w.began.Add(now)), "%s: before the upload %s, and then %s", cluster,
		foretells(e.Upgrade, w.began.Add(now)), reports(s, w.began.Add(now)))
	rolls := slices.ContainsFunc(want.pools, func(p wishedPool) bool { return p.rollAt > 0 })
	if s.Phase == status.Converging && !rolls {
		w.check(3, slices.Equal(e.changes(), plannedStacks(s)), "%s: before the upload these stacks would change: %v, and then these: %v",
			cluster,
			e.changes(), plannedStacks(s))
	}
}

// foretells summarizes the forecast of an upgrade.
func foretells(u *planner.UpgradeForecast, now time.Time) string {
	switch {
	case u == nil:
		return "no upgrade begins"
	case u.Never:
		return "an upgrade to " + u.To.Release + " does not begin"
	case u.Now || !u.At.After(now):
		return "an upgrade to " + u.To.Release + " begins"
	}
	return fmt.Sprintf("an upgrade to %s begins at %s", u.To.Release, u.At.UTC().Format(time.RFC3339))
}

// reports summarizes, in the same words, the status of an upgrade that has not ended.
func reports(s *status.Status, now time.Time) string {
	switch u := s.Upgrade; {
	case u == nil:
	case u.Phase == status.UpgradeMissed, u.Phase == string(upgrade.Blocked) && u.Execution == "":
		return "an upgrade to " + u.To + " does not begin"
	case !status.IsPending(u.Phase) && u.Phase != string(upgrade.Checking) && u.Phase != string(upgrade.Running):
	case u.At == nil || !u.At.After(now):
		return "an upgrade to " + u.To + " begins"
	default:
		return fmt.Sprintf("an upgrade to %s begins at %s", u.To, u.At.UTC().Format(time.RFC3339))
	}
	return "no upgrade begins"
}

// changes returns the stacks that a forecast changes, by name.
func (e *expectation) changes() (stacks []string) {
	for _, change := range e.Plan.Changes {
		stacks = append(stacks, strings.ToLower(string(change.Operation))+" "+change.Stack)
	}
	slices.Sort(stacks)
	return stacks
}

// plannedStacks returns the stacks that a status lists as changed, by name.
func plannedStacks(s *status.Status) (stacks []string) {
	for _, change := range s.Plan {
		stacks = append(stacks, strings.ToLower(change.Operation)+" "+change.Stack)
	}
	slices.Sort(stacks)
	return stacks
}
