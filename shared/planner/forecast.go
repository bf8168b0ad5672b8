package planner

import (
	"context"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/upgrade"
)

// Forecast is what the upload of a spec leads to: the changes of stacks, and the upgrade that follows them.
type Forecast struct {
	plan.Preview
	// Spec is the cluster as resolved now, before an upgrade; nil with a Reason.
	Spec *api.Cluster
	// Creates reports whether the cluster has no control plane yet.
	Creates bool
	// Paused reports whether the spec is paused. The other fields describe the spec without its pause.
	Paused bool
	// Upgrade that the spec leads to; nil if there is none.
	Upgrade *UpgradeForecast
	// InFlight is the upgrade in flight; nil if there is none. Stops is why the spec stops it; empty if it continues.
	InFlight *upgrade.Record
	Stops    string
	// Override says which release applies instead of the one that the spec names, and why; empty if the spec's own applies.
	Override string
}

// UpgradeForecast is an upgrade that has not begun.
type UpgradeForecast struct {
	// From is the deployed target, or the target of the upgrade in flight. To may lack a Kubernetes version, if its release cannot be read.
	From, To upgrade.Target
	Origin   upgrade.Origin
	// Now reports whether it begins as soon as the stacks are as planned.
	Now bool
	// At is when it begins, if a time is known; Message is what it waits for, or why it does not begin.
	At      time.Time
	Message string
	// Queued reports whether it waits for the upgrade in flight. Never reports whether no event can start it at present.
	Queued, Never bool
	// Request is the input for a preview of its steps.
	Request events.Upgrade
}

// Forecast says what the newest spec leads to. Like Preview, it only reads.
func (p *Planner) Forecast(ctx context.Context, cluster string) (Forecast, error) {
	w, seen, err := p.preview(ctx, cluster)
	f := Forecast{Preview: seen}
	if err != nil || w.spec == nil {
		return f, err
	}
	f.Paused, f.Creates = w.spec.Spec.Paused, w.current.KubernetesVersion == ""
	if seen.Reason != "" || seen.Unused != nil {
		return f, nil
	}
	f.Spec, f.Override = w.resolved, w.decision.OverrideReason
	if r := w.record; r != nil && !r.State.Final() {
		f.InFlight, f.Stops = r, r.SupersededReason(w.spec)
	}
	f.Upgrade, err = p.forecastUpgrade(ctx, &w)
	return f, err
}

// forecastUpgrade returns the upgrade that a decision leads to; nil if there is none.
func (p *Planner) forecastUpgrade(ctx context.Context, w *work) (*UpgradeForecast, error) {
	d := w.decision
	u := &UpgradeForecast{From: w.current}
	if w.record != nil && !w.record.State.Final() {
		u.From = w.record.Target
	}
	switch {
	case d.Start != nil:
		u.Origin, u.Now, u.To = d.Start.Origin, true, upgrade.Target{Release: d.Start.Release, KubernetesVersion: d.Start.KubernetesVersion}
	case d.Pending != nil:
		u.Origin, u.To, u.At, u.Message = d.Pending.Origin, d.Pending.To, d.Pending.At, d.Pending.Message
		u.Queued, u.Never = d.Pending.Queued, d.Pending.Blocked
	default:
		return nil, nil
	}
	if u.To.KubernetesVersion == "" && (d.Pending == nil || d.Pending.Unreadable == "") {
		c, err := p.namedRelease(ctx, w, u.To.Release)
		if err != nil {
			return nil, err
		}
		u.To.KubernetesVersion = c.release.Spec.KubernetesVersion
	}
	u.Request = events.Upgrade{Cluster: w.cluster, Release: u.To.Release, Origin: string(u.Origin)}
	if u.Origin == upgrade.OriginSpec {
		u.Request.KubernetesVersion = w.spec.Spec.KubernetesVersion
	}
	return u, nil
}
