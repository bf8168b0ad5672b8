package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// leastDisks is how many disks the setup of EKS's images needs. Without any, it does nothing, and says so only in the log of the node. With
// fewer than four, RAID10 fails, and the node does not join.
// https://github.com/awslabs/amazon-eks-ami/blob/main/templates/al2023/runtime/bin/setup-local-disks
var leastDisks = map[api.LocalStorage]int{api.LocalRAID0: 1, api.LocalRAID10: 4, api.LocalMount: 1}

// checkLocalStorage stops a plan that uses the disks of instances that have none, or too few. It asks EC2 once, and only about the instance
// types of pools whose stacks do not have them with this setting yet.
func (p *Planner) checkLocalStorage(ctx context.Context, o *Outcome) error {
	if p.Capacity == nil {
		return nil
	}
	w := &o.work
	var pools []*api.Pool
	var types []string
	for _, pool := range changedPools(w, o.Plan) {
		if found := newLocalStorage(w, pool); len(found) > 0 {
			pools, types = append(pools, pool), append(types, found...)
		}
	}
	if len(pools) == 0 {
		return nil
	}
	slices.Sort(types)
	described, err := p.Capacity.InstanceTypes(ctx, slices.Compact(types))
	if err != nil {
		return err
	}
	var refused []string
	for _, pool := range pools {
		least := leastDisks[pool.LocalStorage]
		for _, name := range newLocalStorage(w, pool) {
			// A type that the region does not offer fails with its own error.
			if t, found := described[name]; found && t.Disks < least {
				refused = append(refused, fmt.Sprintf("pool %s: localStorage: %s needs %s of an instance, and %s has %d", pool.Name,
					pool.LocalStorage, disks(least), name, t.Disks))
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &Stop{status.ReasonChangeRefused, fmt.Sprintf("no stack was changed, because instances lack local disks (NVMe instance store):\n"+
		"%s\nName instance types with such disks, such as m6id.xlarge, or another localStorage", strings.Join(refused, "\n"))}
}

func disks(n int) string {
	if n == 1 {
		return "a disk"
	}
	return fmt.Sprintf("%d disks", n)
}

// newLocalStorage returns the instance types of a pool whose disks are used, and which its stack does not have with this setting yet.
func newLocalStorage(w *work, pool *api.Pool) []string {
	if pool.LocalStorage == "" {
		return nil
	}
	deployed := strings.Split(w.deployed[names.PoolStack(pool.Name)].Outputs["LocalStorage"], ",")
	if deployed[0] != string(pool.LocalStorage) {
		return slices.Clone(pool.InstanceTypes)
	}
	return slices.DeleteFunc(slices.Clone(pool.InstanceTypes), func(name string) bool { return slices.Contains(deployed[1:], name) })
}
