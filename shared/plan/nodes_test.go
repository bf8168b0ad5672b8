package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

func TestNeedsNode(t *testing.T) {
	some, none := &api.Cluster{}, &api.Cluster{}
	some.Spec.Pools = []api.Pool{{Name: "a"}, {Name: "b", MinSize: 1}}
	none.Spec.Pools = []api.Pool{{Name: "a"}}
	changes := func(operation Operation) Plan {
		return Plan{Changes: []Change{{Stack: names.PoolStack("a"), Operation: Update}, {Stack: names.NodeAddons, Operation: operation}}}
	}
	for name, c := range map[string]struct {
		plan Plan
		spec *api.Cluster
		want bool
	}{
		"creates the add-ons":                     {changes(Create), none, true},
		"updates the add-ons":                     {changes(Update), none, true},
		"creates them in a cluster without pools": {changes(Create), &api.Cluster{}, true},
		"a pool is sure to have nodes":            {changes(Create), some, false},
		"only deletes them":                       {changes(Delete), none, false},
		"does not change them":                    {Plan{Changes: []Change{{Stack: names.Addons, Operation: Create}}}, none, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.plan.NeedsNode(c.spec)) })
	}
	before := changes(Update)
	after := before.WithoutNodes()
	require.Len(t, before.Changes, 2, "the original plan is unchanged")
	require.Len(t, after.Changes, 1)
	require.True(t, after.AddonsWait)
	_, found := after.Find(names.NodeAddons)
	require.False(t, found)
}
