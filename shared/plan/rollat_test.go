package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

func TestRollAt(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(hour int) time.Time { return time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		deployed, stated string
		requested        time.Time
		want             time.Time
		later            []time.Time
	}{
		"never":                   {},
		"as the spec says":        {stated: "2026-11-20T11:00:00Z", want: at(11)},
		"at its time":             {stated: "2026-11-20T12:00:00Z", want: at(12)},
		"shortly before its time": {stated: "2026-11-20T12:00:00.001Z", later: []time.Time{at(12).Add(time.Second)}},
		"shortly after its time":  {stated: "2026-11-20T11:59:59.001Z", want: at(12)},
		"in another zone":         {stated: "2026-11-20T12:00:00+01:00", want: at(11)},
		"not before its time":     {stated: "2026-11-20T13:00:00Z", later: []time.Time{at(13)}},
		"the deployed time until the next": {
			deployed: "2026-11-20T10:00:00Z", stated: "2026-11-20T13:00:00Z", want: at(10), later: []time.Time{at(13)},
		},
		"the deployed time when the spec has none":     {deployed: "2026-11-20T10:00:00Z", want: at(10)},
		"the deployed time when the spec's is earlier": {deployed: "2026-11-20T10:00:00Z", stated: "2026-11-20T09:00:00Z", want: at(10)},
		"a requested roll": {
			deployed: "2026-11-20T10:00:00Z", requested: at(11).Add(300 * time.Millisecond), want: at(11),
		},
		"a request before the last roll": {deployed: "2026-11-20T10:00:00Z", requested: at(9), want: at(10)},
		"a tag that is no time":          {deployed: "soon", want: time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &api.Cluster{Spec: api.ClusterSpec{Pools: []api.Pool{{Name: "a", RollAt: c.stated}, {Name: "b"}}}}
			deployed := map[string]stack.Deployed{"pool-a": {Tags: map[string]string{names.TagRollAt: c.deployed}}}
			got, later := RollAt(spec, deployed, map[string]time.Time{"a": c.requested}, now)
			require.Equal(t, c.want, got["a"])
			require.Zero(t, got["b"])
			require.Equal(t, c.later, later)
		})
	}
}

func TestComputeRoll(t *testing.T) {
	deployed := deploy(nil, Compute(input(spec(), nil, nil)))
	in := input(spec(), spec(), deployed)
	for i, stack := range in.Desired {
		if stack.Name == "pool-spot" {
			in.Desired[i].Tags[names.TagRollAt] = "2026-11-20T10:00:00Z"
		}
	}
	p := Compute(in)
	require.Equal(t, []string{"Update pool-spot"}, order(p))
	require.Equal(t, []status.Reason{{Field: "spec.pools[spot].rollAt", New: "2026-11-20T10:00:00Z"}}, p.Changes[0].Reasons)
}

func TestRollReasons(t *testing.T) {
	const field, at, before = "spec.pools[spot].rollAt", "2026-11-20T10:00:00Z", "2026-11-19T10:00:00Z"
	for name, test := range map[string]struct {
		checksum, deployed, stated string
		want                       []status.Reason
	}{
		"a later roll":                       {"x", before, "", []status.Reason{{Field: field, Old: before, New: at}}},
		"a roll by the spec is named once":   {"x", before, at, []status.Reason{{Field: field, Old: before, New: at}}},
		"no roll without a checksum's tag":   {"", "", "", []status.Reason{{Field: "checksum.pool-spot", New: "y"}}},
		"a roll when only its tag was kept":  {"", before, "", []status.Reason{{Field: field, Old: before, New: at}}},
		"no roll when the time is unchanged": {"x", at, "", []status.Reason{{Field: "checksum.pool-spot", Old: "x", New: "y"}}},
	} {
		t.Run(name, func(t *testing.T) {
			now := spec()
			now.Spec.Pools[1].RollAt = test.stated
			in := Input{New: now, Old: map[string]*api.Cluster{"pool-spot": spec()}}
			desired := render.Stack{Name: "pool-spot", Tags: map[string]string{names.TagRollAt: at}}
			deployed := stack.Deployed{
				Status: "CREATE_COMPLETE", Tags: map[string]string{names.TagChecksum: test.checksum, names.TagRollAt: test.deployed},
			}
			require.Equal(t, test.want, in.whyUpdate(desired, deployed, "y", nil))
		})
	}
}

func TestStagesOrderPools(t *testing.T) {
	c := spec()
	c.Spec.Pools = []api.Pool{
		{Name: "last", MaxSize: 1, Update: api.Update{Order: 7}}, {
			Name: "first", MaxSize: 1,
		}, {Name: "second", MaxSize: 1, Update: api.Update{Order: 1}},
		{Name: "also-first", MaxSize: 1},
	}
	p := Compute(input(c, spec(), deploy(nil, Compute(input(spec(), nil, nil)))))
	require.Equal(t, [][]string{{"pool-first", "pool-also-first"}, {"pool-second"}, {"pool-last", "pool-spot", "pool-workers"}},
		p.Stages().Pools,
		"removed pools are in the last group")
	for i := range c.Spec.Pools {
		c.Spec.Pools[i].Update.Order = 1
	}
	require.Equal(t, [][]string{{"pool-last", "pool-first", "pool-second", "pool-also-first"}}, Compute(input(c, nil, nil)).Stages().Pools)
}
