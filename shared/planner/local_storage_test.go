package planner

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// offered are the instance types of a region. It records the requests.
type offered struct {
	networks
	err      error
	requests [][]string
}

func (o *offered) InstanceTypes(_ context.Context, names []string) (map[string]preflight.InstanceType, error) {
	o.requests = append(o.requests, names)
	return map[string]preflight.InstanceType{"m7i.large": {}, "m6id.large": {Disks: 1}, "m6id.24xlarge": {Disks: 4}}, o.err
}

func TestLocalStorageOfPools(t *testing.T) {
	given := func(storage api.LocalStorage, types ...string) (*offered, *Outcome) {
		o := &Outcome{work: work{cluster: "demo", resolved: &api.Cluster{Spec: api.ClusterSpec{Pools: []api.Pool{
			{Name: "a", LocalStorage: storage, InstanceTypes: types}, {Name: "without", InstanceTypes: []string{"m7i.large"}},
		}}}}}
		o.work.deployed = map[string]stack.Deployed{"pool-a": {Outputs: map[string]string{"LocalStorage": "RAID0,m6id.large"}}}
		for _, name := range []string{"pool-a", "pool-without"} {
			o.Plan.Changes = append(o.Plan.Changes, plan.Change{Stack: name, Operation: plan.Update})
		}
		return &offered{}, o
	}
	check := func(c *offered, o *Outcome) error { return (&Planner{Capacity: c}).checkLocalStorage(t.Context(), o) }

	t.Run("asks once, about types that are new, or used in a new way", func(t *testing.T) {
		for _, test := range []struct {
			storage api.LocalStorage
			types   []string
			asked   [][]string
		}{
			{"", []string{"m7i.large"}, nil},
			{api.LocalRAID0, []string{"m6id.large"}, nil},
			{api.LocalRAID0, []string{"m6id.large", "m6id.24xlarge"}, [][]string{{"m6id.24xlarge"}}},
			{api.LocalMount, []string{"m6id.large", "m6id.24xlarge"}, [][]string{{"m6id.24xlarge", "m6id.large"}}},
			{api.LocalRAID0, []string{"unknown.large"}, [][]string{{"unknown.large"}}},
		} {
			c, o := given(test.storage, test.types...)
			require.NoError(t, check(c, o))
			require.Equal(t, test.asked, c.requests)
			require.NoError(t, (&Planner{}).checkLocalStorage(t.Context(), o), "in previews")
		}
	})
	t.Run("refuses types without disks, or with too few", func(t *testing.T) {
		c, o := given(api.LocalMount, "m7i.large", "m6id.large")
		err := check(c, o)
		var stopped *Stop
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, status.ReasonChangeRefused, stopped.Reason)
		require.Equal(t, "no stack was changed, because instances lack local disks (NVMe instance store):\n"+
			"pool a: localStorage: Mount needs a disk of an instance, and m7i.large has 0\n"+
			"Name instance types with such disks, such as m6id.xlarge, or another localStorage", err.Error())
		c, o = given(api.LocalRAID10, "m6id.24xlarge", "m6id.large")
		require.ErrorContains(t, check(c, o), "pool a: localStorage: RAID10 needs 4 disks of an instance, and m6id.large has 1\n")
	})
	t.Run("fails if EC2 does", func(t *testing.T) {
		c, o := given(api.LocalRAID0, "m6id.24xlarge")
		c.err = errors.New("throttled")
		require.ErrorIs(t, check(c, o), c.err)
	})
}
