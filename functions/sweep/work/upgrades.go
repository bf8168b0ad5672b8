package work

import (
	"context"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// UpgradeEnder ends upgrades that their own execution did not end.
type UpgradeEnder struct {
	Executions Executions
	Upgrade    Upgrader
	Now        func() time.Time
}

// End starts an execution of drover-upgrade that ends an upgrade, if the upgrade's own execution has ended. If a removal of drover ended
// it, the new execution continues the upgrade. Each sweep tries again until the upgrade is finished. A sweep and an audit of the same
// period start one execution.
func (e UpgradeEnder) End(ctx context.Context, cluster, execution string) error {
	running, removed, err := e.Executions.State(ctx, execution)
	if err != nil || running {
		return err
	}
	input := events.Upgrade{Cluster: cluster, Ended: execution}
	if removed {
		// An execution that Step Functions has forgotten has no input. Its upgrade ends.
		own := events.Upgrade{}
		if err := e.Upgrade.Input(ctx, execution, &own); err == nil {
			input = inputToContinue(own, execution)
		}
	}
	logging.From(ctx).Warn("upgrade ended without a report", "cluster", cluster, "execution", execution, "removed", removed)
	at := e.Now().UTC().Truncate(backoff.SweepPeriod)
	name := names.UpgradeExecution(cluster, names.EndedKey(execution, at), 0, at)
	return e.Upgrade.Start(ctx, name, input)
}

// inputToContinue returns the input that continues the upgrade of an execution: its own input. The upgrade keeps its origin, its key and
// its release. A removal of drover does not count as a delay, so it has no due time.
func inputToContinue(in events.Upgrade, execution string) events.Upgrade {
	in.Continues, in.Ended, in.CheckOnly, in.Due = execution, "", false, time.Time{}
	return in
}

// UpgradeInFlight reports whether an upgrade is in flight, according to the status.
func UpgradeInFlight(u *status.Upgrade) bool {
	return u != nil && (u.Phase == string(upgrade.Checking) || u.Phase == string(upgrade.Running)) && u.Execution != ""
}

// LateUpgrades records upgrades that did not start at their time.
type LateUpgrades struct {
	Specs SpecReader
	State StatusWriter
	Now   func() time.Time
}

// Record records that an upgrade did not start at its time: see status.LatePhase.
func (l LateUpgrades) Record(ctx context.Context, cluster string, at time.Time, why string) error {
	phase, spec := status.LatePhase(at, l.Now()), (*api.Cluster)(nil)
	switch phase {
	case "":
		return nil
	case status.UpgradeMissed:
		var err error
		if spec, err = l.validSpec(ctx, cluster); err != nil {
			return err
		}
	}
	return l.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.RecordLate(at, phase, why, spec, l.Now()) })
}

// validSpec reads the spec of a cluster; nil if there is none or it is invalid.
func (l LateUpgrades) validSpec(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, _, err := specs.Cluster(ctx, l.Specs, cluster)
	if specs.Missing(err) {
		return nil, nil
	}
	return spec, err
}
