package passes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Due starts work whose time has come: rolls and upgrades at a time, requests that came while a cluster was busy, and
// clusters whose channel moved. It also audits the clusters for which an inspection was requested.
type Due struct {
	State      DueState
	Executions DueExecutions
	Late       work.LateUpgrades
	Auditor    Auditor
	Now        func() time.Time
}

// DueState holds what is due: a subset of store.State.
type DueState interface {
	Dues(ctx context.Context, now time.Time) ([]store.Due, error)
	Done(ctx context.Context, due store.Due) error
	Holder(ctx context.Context, cluster string, running func(ctx context.Context, execution string) (bool, error)) (execution string,
		err error)
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
}

// DueExecutions are those of drover-converge: a subset of stepfunctions.Executions.
type DueExecutions interface {
	work.Executions
	Converge(ctx context.Context, cluster, specVersion, after string) error
	ConvergeDue(ctx context.Context, cluster string, at time.Time) error
}

// Auditor audits some clusters: audit.Audit.
type Auditor interface {
	Clusters(ctx context.Context, only map[string]bool) error
}

// maxStarts bounds the executions that one sweep starts. If a channel moves or a window opens, all its clusters are due at the same minute,
// and the quotas of AWS's APIs are per account.
const maxStarts = 10

// Run starts clusters in the order in which they became due, and by name if the times are equal. A busy cluster waits for the next sweep:
// its execution may have planned before the time came. Clusters over the bound wait too.
func (p Due) Run(ctx context.Context) error {
	dues, err := p.State.Dues(ctx, p.Now())
	if err != nil {
		return err
	}
	var clusters []string
	var inspections []store.Due
	byCluster := map[string][]store.Due{}
	for _, due := range dues {
		if due.Inspect {
			inspections = append(inspections, due)
			continue
		}
		if byCluster[due.Cluster] == nil {
			clusters = append(clusters, due.Cluster)
		}
		byCluster[due.Cluster] = append(byCluster[due.Cluster], due)
	}
	var failed []error
	started := 0
	for i, cluster := range clusters {
		if started == maxStarts {
			logging.From(ctx).Info("due clusters left for the next sweep", "clusters", len(clusters)-i)
			break
		}
		holder, err := p.State.Holder(ctx, cluster, p.Executions.Running)
		switch {
		case err != nil:
		case holder != "":
			for _, due := range byCluster[cluster] {
				err = errors.Join(err, p.recordBusy(ctx, due, holder))
			}
		default:
			started++ // also if it fails: AWS may be throttling
			err = p.start(ctx, byCluster[cluster])
		}
		failed = append(failed, err)
	}
	return errors.Join(append(failed, p.inspect(ctx, inspections))...)
}

// inspect audits the clusters for which an inspection was requested. If that fails, or has to wait, the next audit does it.
func (p Due) inspect(ctx context.Context, requests []store.Due) error {
	if len(requests) == 0 {
		return nil
	}
	clusters := map[string]bool{}
	for _, request := range requests {
		clusters[request.Cluster] = true
	}
	logging.From(ctx).Info("auditing changed clusters", "clusters", slices.Sorted(maps.Keys(clusters)))
	failed := []error{p.Auditor.Clusters(ctx, clusters)}
	for _, request := range requests {
		failed = append(failed, p.State.Done(ctx, request))
	}
	return errors.Join(failed...)
}

// start starts one execution for everything that is due of a cluster. The newest time names the execution. It is removed last. If the
// function dies in between, the next sweep finds that time again and starts the same execution.
func (p Due) start(ctx context.Context, dues []store.Due) error {
	newest := dues[len(dues)-1]
	logging.From(ctx).Info("cluster due", "cluster", newest.Cluster, "at", newest.At)
	if err := p.Executions.ConvergeDue(ctx, newest.Cluster, newest.At); err != nil {
		return err
	}
	for _, due := range dues {
		if err := p.State.Done(ctx, due); err != nil {
			return err
		}
	}
	return nil
}

// recordBusy records that an upgrade is late if its cluster is busy when its time comes. If another upgrade is in
// flight and the status shows no queued upgrade, planning has not seen the request yet. Then it starts an execution,
// which plans, records the upgrade, and ends because the cluster is busy.
func (p Due) recordBusy(ctx context.Context, due store.Due, holder string) error {
	if err := p.Late.Record(ctx, due.Cluster, due.At, "it waits for "+holder); err != nil {
		return err
	}
	document, err := p.State.Status(ctx, due.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if s := document.Status; work.UpgradeInFlight(s.Upgrade) && s.NextUpgrade == nil {
		after := "behind " + due.At.UTC().Format(time.RFC3339) // one execution for each time
		return p.Executions.Converge(ctx, due.Cluster, s.PlannedVersion, after)
	}
	return nil
}
