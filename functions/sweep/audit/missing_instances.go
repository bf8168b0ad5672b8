package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/waiter"
)

// missingInstances finds idle pools that have fewer instances than desired, because they get none.
func (r *auditRun) missingInstances(ctx context.Context, cluster string) (findings []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(r.stacks[cluster])) {
		pool, ok := strings.CutPrefix(name, names.PoolPrefix)
		group := r.groups[names.Group(cluster, pool)]
		has := len(group.Instances) - len(group.Draining())
		if !ok || !stack.Settled(r.stacks[cluster][name].Status) || has >= group.Desired {
			continue
		}
		why, err := r.Groups.LaunchFailureReason(ctx, group.Name, time.Time{}, time.Time{})
		if err != nil {
			return nil, err
		}
		if why != "" {
			findings = append(findings, fmt.Sprintf("pool %s has %d of %d instances: %s", pool, has, group.Desired, waiter.NoInstances(why)))
		}
	}
	return findings, nil
}
