package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// checkDiskKeys stops a plan that encrypts the disks of a pool with a KMS key with which EC2 can create none: the key is of another region,
// does not exist, or is not enabled. It asks KMS once for each key, and only about keys that the pool does not have yet. No API shows
// whether Auto Scaling may use a key. If drover may not describe a key, the change of the pool's stack has one more reason.
func (p *Planner) checkDiskKeys(ctx context.Context, o *Outcome) error {
	if p.Keys == nil {
		return nil
	}
	w := &o.work
	problems := map[string]string{}
	unverified := map[string]bool{}
	var refused []string
	for _, pool := range changedPools(w, o.Plan) {
		for _, key := range newDiskKeys(w, pool) {
			problem, asked := problems[key]
			if !asked {
				var err error
				if problem, unverified[key], err = p.keyProblem(ctx, key); err != nil {
					return err
				}
				problems[key] = problem
			}
			switch {
			case problem != "":
				refused = append(refused, fmt.Sprintf("pool %s: kmsKeyARN: %s %s", pool.Name, key, problem))
			case unverified[key]:
				addReason(o, pool, status.Reason{Field: fmt.Sprintf("KMS key of disks of pool %s, not verified", pool.Name), New: key})
				logging.From(ctx).Info("KMS key not verified", "cluster", w.cluster, "pool", pool.Name, "key", key)
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &Stop{status.ReasonChangeRefused, fmt.Sprintf("no stack was changed, because EC2 could create no disks with these keys:\n%s\n"+
		"Enable the key, or name another", strings.Join(refused, "\n"))}
}

// keyProblem returns what is wrong with a key. unverified reports that drover may not describe it.
func (p *Planner) keyProblem(ctx context.Context, key string) (problem string, unverified bool, err error) {
	if parts := strings.Split(key, ":"); len(parts) > 3 && parts[3] != p.Cell.Region {
		return "is a key of " + parts[3] + ", and the cluster is in " + p.Cell.Region, false, nil
	}
	state, found, permitted, err := p.Keys.Describe(ctx, key)
	switch {
	case err != nil, !permitted:
		return "", true, err
	case !found:
		return "does not exist", false, nil
	case state != "Enabled":
		return "is not enabled: its state is " + state, false, nil
	}
	return "", false, nil
}

// newDiskKeys returns the KMS keys of a pool's disks that its stack does not have yet.
func newDiskKeys(w *work, pool *api.Pool) []string {
	deployed := strings.Split(w.deployed[names.PoolStack(pool.Name)].Outputs["DiskKeys"], ",")
	return slices.DeleteFunc(pool.DiskKeys(), func(key string) bool { return slices.Contains(deployed, key) })
}

// addReason adds a reason to the change of a pool's stack.
func addReason(o *Outcome, pool *api.Pool, reason status.Reason) {
	i := slices.IndexFunc(o.Plan.Changes, func(c plan.Change) bool { return c.Stack == names.PoolStack(pool.Name) })
	change := &o.Plan.Changes[i]
	change.Reasons = append(slices.Clone(change.Reasons), reason)
}
