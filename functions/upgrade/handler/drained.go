package handler

// A pool is replaced when its old nodes are gone: CloudFormation does not wait for the drains of the last ones.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// beyond its pool's own time a drain gets this much more before the upgrade stops.
const beyond = 15 * time.Minute

// drained waits for old nodes after a step that replaced them: for as long as their pool gives a drain. The outcome is empty when
// none is left.
func (h *Handler) drained(ctx context.Context, cluster string, r *record) (events.UpgradeResult, error) {
	s := &r.Steps[r.Step]
	if s.Kind != upgrade.StepNodes && s.Kind != upgrade.StepNodesBack {
		return events.UpgradeResult{}, nil
	}
	j, err := h.retrace(ctx, cluster, r.Record)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	var leaving []string
	var longest time.Duration
	for _, pool := range j.after.Spec.Pools {
		group, _, err := h.Groups.Describe(ctx, names.Group(cluster, pool.Name))
		if err != nil {
			return events.UpgradeResult{}, err
		}
		for _, instance := range group.Leaving() {
			leaving = append(leaving, fmt.Sprintf("%s of pool %s", instance, pool.Name))
			allowed, err := time.ParseDuration(pool.Drain.Timeout)
			if err != nil {
				return events.UpgradeResult{}, fmt.Errorf("reading drain.timeout of pool %s: %w", pool.Name, err)
			}
			longest = max(longest, allowed)
		}
	}
	if len(leaving) == 0 {
		return events.UpgradeResult{}, nil
	}
	message := "still being drained: " + strings.Join(leaving, ", ")
	if s.Made.IsZero() {
		s.Made = h.Now().UTC()
		if err := h.write(ctx, cluster, r); err != nil {
			return events.UpgradeResult{}, err
		}
	} else if h.Now().Sub(s.Made) > longest+beyond {
		return events.UpgradeResult{}, stopf("%s, for longer than drain.timeout (%s). The status says for which pods they wait", message, longest)
	}
	return busy(message, pause(h.Now().Sub(s.Made))), h.tell(ctx, cluster, r.Record, nil, message)
}
