package render

// The bounds hold for every size of a pool and every policy, despite rounding.

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

func TestReplacing(t *testing.T) {
	for name, c := range map[string]struct {
		pace    Pace
		desired int
		want    map[string]string
	}{
		"one more, none less": {
			Pace{MinSize: 1, MaxSize: 5, MaxUnavailable: "0", MaxSurge: "1"}, 3, map[string]string{
				MinInstancesInService: "3", MaxBatchSize: "1", MaxSize: "5",
			},
		},
		"at its maximum size the pool grows beyond it": {
			Pace{MinSize: 3, MaxSize: 3, MaxUnavailable: "0", MaxSurge: "2"}, 3, map[string]string{
				MinInstancesInService: "3", MaxBatchSize: "2", MaxSize: "5",
			},
		},
		"a single node": {
			Pace{MinSize: 1, MaxSize: 1, MaxUnavailable: "0", MaxSurge: "1"}, 1, map[string]string{
				MinInstancesInService: "1", MaxBatchSize: "1", MaxSize: "2",
			},
		},
		"more than there are to replace": {
			Pace{MinSize: 1, MaxSize: 3, MaxUnavailable: "0", MaxSurge: "2"}, 1, map[string]string{
				MinInstancesInService: "1", MaxBatchSize: "1", MaxSize: "3",
			},
		},
		"an empty pool": {
			Pace{MinSize: 0, MaxSize: 4, MaxUnavailable: "0", MaxSurge: "1"}, 0, map[string]string{
				MinInstancesInService: "0", MaxBatchSize: "1", MaxSize: "4",
			},
		},
		"more than an autoscaler may have now": {
			Pace{MinSize: 1, MaxSize: 5, MaxUnavailable: "0", MaxSurge: "1"}, 8, map[string]string{
				MinInstancesInService: "8", MaxBatchSize: "1", MaxSize: "9",
			},
		},
		"less than it must have": {
			Pace{MinSize: 4, MaxSize: 5, MaxUnavailable: "0", MaxSurge: "1"}, 1, map[string]string{
				MinInstancesInService: "4", MaxBatchSize: "1", MaxSize: "5",
			},
		},
		"some less, none more": {
			Pace{MinSize: 1, MaxSize: 5, MaxUnavailable: "2", MaxSurge: "0"}, 5, map[string]string{
				MinInstancesInService: "3", MaxBatchSize: "2", MaxSize: "5",
			},
		},
		"more less than there are": {
			Pace{MinSize: 1, MaxSize: 5, MaxUnavailable: "9", MaxSurge: "0"}, 2, map[string]string{
				MinInstancesInService: "0", MaxBatchSize: "2", MaxSize: "5",
			},
		},
		"all less, which makes no surge": {
			Pace{MinSize: 1, MaxSize: 5, MaxUnavailable: "100%", MaxSurge: "1"}, 2, map[string]string{
				MinInstancesInService: "0", MaxBatchSize: "2", MaxSize: "5",
			},
		},
		"percentages": {
			Pace{MinSize: 1, MaxSize: 20, MaxUnavailable: "25%", MaxSurge: "25%"}, 10, map[string]string{
				MinInstancesInService: "8", MaxBatchSize: "5", MaxSize: "20",
			},
		},
		"percentages that round to zero": {
			Pace{MinSize: 1, MaxSize: 3, MaxUnavailable: "10%", MaxSurge: "0"}, 3, map[string]string{
				MinInstancesInService: "3", MaxBatchSize: "1", MaxSize: "4",
			},
		},
		"a refresh": {
			Pace{Strategy: api.InstanceRefresh, MinSize: 1, MaxSize: 3, MaxUnavailable: "0", MaxSurge: "1"}, 3, map[string]string{
				MinHealthyPercentage: "100", MaxHealthyPercentage: "133", MaxSize: "3",
			},
		},
		"a refresh of a single node": {
			Pace{Strategy: api.InstanceRefresh, MinSize: 1, MaxSize: 1, MaxUnavailable: "1", MaxSurge: "1"}, 1, map[string]string{
				MinHealthyPercentage: "100", MaxHealthyPercentage: "200", MaxSize: "1",
			},
		},
		"a refresh of an empty pool": {
			Pace{Strategy: api.InstanceRefresh, MinSize: 0, MaxSize: 3, MaxUnavailable: "0", MaxSurge: "1"}, 0, map[string]string{
				MinHealthyPercentage: "100", MaxHealthyPercentage: "200", MaxSize: "3",
			},
		},
		"a refresh of many": {
			Pace{Strategy: api.InstanceRefresh, MinSize: 0, MaxSize: 300, MaxUnavailable: "1", MaxSurge: "0"}, 200, map[string]string{
				MinHealthyPercentage: "100", MaxHealthyPercentage: "100", MaxSize: "300",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.want[ReplaceNodes] = "true"
			require.Equal(t, c.want, c.pace.ForReplacement(c.desired))
		})
	}
}

func TestReplacingKeepsItsBounds(t *testing.T) {
	amounts := []api.Amount{"0", "1", "3", "50", "0%", "1%", "10%", "33%", "50%", "100%"}
	number := func(values map[string]string, name string) int {
		n, err := strconv.Atoi(values[name])
		require.NoError(t, err)
		return n
	}
	for _, unavailable := range amounts {
		for _, surge := range amounts {
			for _, desired := range []int{0, 1, 2, 3, 7, 10, 99, 100, 101, 250} {
				p := Pace{Strategy: api.RollingUpdate, MaxUnavailable: unavailable, MaxSurge: surge, MaxSize: max(1, desired)}
				name := fmt.Sprintf("%d nodes, %s less, %s more", desired, unavailable, surge)
				less, more := unavailable.Of(desired, false), surge.Of(desired, true)
				if less+more == 0 {
					more = 1
				}
				values := p.ForReplacement(desired)
				least, batch, most := number(values, MinInstancesInService), number(values, MaxBatchSize), number(values, MaxSize)
				require.GreaterOrEqual(t, least, desired-less, name)
				require.Less(t, least, most, "%s: CloudFormation wants it", name)
				require.GreaterOrEqual(t, batch, 1, name)
				require.LessOrEqual(t, least+batch, max(desired+more, batch), name)
				rest := p.WithoutReplacement(values)
				require.Less(t, number(rest, MinInstancesInService), number(rest, MaxSize), name)
				require.Equal(t, rest, p.WithoutReplacement(rest), "repeated calls change nothing")

				p.Strategy = api.InstanceRefresh
				grown := GrownSize(desired, values)
				require.LessOrEqual(t, grown, most, name)
				back := p.ForReplacementAtSize(desired, grown)
				values = p.ForReplacement(desired)
				low, high := number(values, MinHealthyPercentage), number(values, MaxHealthyPercentage)
				require.True(t, low >= 0 && low <= 100 && high >= 100 && high <= 200 && high-low <= 100, "%s: %d, %d", name, low, high)
				require.GreaterOrEqual(t, (desired*low+99)/100, desired-less, name)
				require.LessOrEqual(t, desired*high/100, desired+more, name)

				for _, has := range []int{desired, grown} { // a rollback may begin before the group grows, and after it
					low, high := number(back, MinHealthyPercentage), number(back, MaxHealthyPercentage)
					require.True(t, low >= 0 && low <= 100 && high >= 100 && high <= 200 && high-low <= 100, "%s: %d, %d", name, low, high)
					require.GreaterOrEqual(t, (has*low+99)/100, has-less, "%s, back from %d", name, has)
					require.LessOrEqual(t, has*high/100, has+more, "%s, back from %d", name, has)
				}
			}
		}
	}
}

func TestAgainDoesNotGrowTheGroup(t *testing.T) {
	rolling := Pace{Strategy: api.RollingUpdate, MaxUnavailable: "0", MaxSurge: "2", MinSize: 1, MaxSize: 4}
	for name, c := range map[string]struct {
		pace     Pace
		desired  int
		deployed string
		want     map[string]string
	}{
		"its surge counts for the next":    {rolling, 6, "6", map[string]string{MinInstancesInService: "4", MaxBatchSize: "2", MaxSize: "6"}},
		"what an autoscaler may have does": {rolling, 3, "5", map[string]string{MinInstancesInService: "3", MaxBatchSize: "2", MaxSize: "5"}},
		"room for what is there stays":     {rolling, 9, "9", map[string]string{MinInstancesInService: "7", MaxBatchSize: "2", MaxSize: "9"}},
		"is for as many as before":         {rolling, 7, "9", map[string]string{MinInstancesInService: "7", MaxBatchSize: "2", MaxSize: "9"}},
		"a template without the parameter": {rolling, 6, "", map[string]string{MinInstancesInService: "4", MaxBatchSize: "2", MaxSize: "6"}},
		"a refresh that followed upon a roll": {
			Pace{Strategy: api.InstanceRefresh, MaxUnavailable: "0", MaxSurge: "1", MaxSize: 2}, 3, "3", map[string]string{
				MinHealthyPercentage: "100", MaxHealthyPercentage: "133", MaxSize: "3",
			},
		},
		"a refresh of what a roll had doubled": {
			Pace{Strategy: api.InstanceRefresh, MaxUnavailable: "1", MaxSurge: "2", MaxSize: 2}, 4, "4", map[string]string{
				MinHealthyPercentage: "75", MaxHealthyPercentage: "150", MaxSize: "4",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.want[ReplaceNodes] = "true"
			require.Equal(t, c.want, c.pace.ForReplacementAfterRollback(c.desired, c.desired, map[string]string{MaxSize: c.deployed}))
			require.Equal(t, c.want, c.pace.ForReplacementAfterRollback(c.desired, c.desired, c.want), "a further attempt changes nothing")
		})
	}
}

func TestRestingKeepsDeployedValues(t *testing.T) {
	p := &Pace{Strategy: api.RollingUpdate, MaxUnavailable: "0", MaxSurge: "1", MinSize: 1, MaxSize: 5}
	deployed := map[string]string{MinInstancesInService: "4", MaxBatchSize: "2", MaxSize: "9", ReplaceNodes: "false", "SubnetIds": "subnet-1"}
	require.Equal(t, map[string]string{
		MinInstancesInService: "4", MaxBatchSize: "2", MaxSize: "5", ReplaceNodes: "false",
	}, p.WithoutReplacement(deployed))
	require.Equal(t, p, p.Deployed(deployed))
	deployed[MinInstancesInService] = "9"
	require.Equal(t, "4", p.WithoutReplacement(deployed)[MinInstancesInService], "less than the maximum size")
	refresh := &Pace{Strategy: api.InstanceRefresh, MaxUnavailable: "0", MaxSurge: "1", MinSize: 1, MaxSize: 5}
	require.Equal(t, p.Strategy, refresh.Deployed(deployed).Strategy, "the template has another strategy")
	require.Equal(t, refresh, p.Deployed(refresh.ForReplacement(3)))
	require.Nil(t, p.Deployed(map[string]string{MaxSize: "3"}), "the template has no strategy")
	require.Equal(t, map[string]string{MinHealthyPercentage: "100", MaxHealthyPercentage: "200", MaxSize: "5", ReplaceNodes: "false"},
		refresh.WithoutReplacement(deployed))
}

func TestUpdatePolicyRefersToParameters(t *testing.T) {
	c := smallCluster()
	group := at(t, resources(t, stackOf(t, render(t, resolve(t, c)), "pool-workers")), "Group")
	// Without a policy, an update replaces nothing.
	policy := func(name string) any {
		branches := at(t, group, "UpdatePolicy", name, "Fn::If").([]any)
		require.Equal(t, "ReplacesNodes", branches[0])
		require.Equal(t, map[string]any{"Ref": "AWS::NoValue"}, branches[2])
		return branches[1]
	}
	rolling := policy("AutoScalingRollingUpdate")
	for _, name := range []string{MinInstancesInService, MaxBatchSize} {
		require.Equal(t, map[string]any{"Ref": name}, at(t, rolling, name))
	}
	require.Equal(t, "PT1H", at(t, rolling, "PauseTime"))
	require.Equal(t, map[string]any{"Ref": MaxSize}, at(t, group, "Properties", "MaxSize"))
	require.NotContains(t, at(t, group, "Properties"), "DesiredCapacity")
	c.Spec.Pools[0].Update = api.Update{Strategy: api.InstanceRefresh, PauseTime: "90s"}
	group = at(t, resources(t, stackOf(t, render(t, resolve(t, c)), "pool-workers")), "Group")
	require.Equal(t, map[string]any{"Strategy": "Rolling", "Preferences": map[string]any{
		MinHealthyPercentage: map[string]any{"Ref": MinHealthyPercentage}, MaxHealthyPercentage: map[string]any{"Ref": MaxHealthyPercentage},
		"InstanceWarmup": 90, "SkipMatching": true,
	}}, policy("AutoScalingInstanceRefresh"))
}

// A pool that is rolled on demand gets a new launch template version. Other pools do not change.
func TestRollAtTagsInstancesAndStack(t *testing.T) {
	in := resolve(t, fullCluster())
	before := render(t, in)
	in.RollAt = map[string]time.Time{"workers": time.Date(2026, 11, 20, 23, 0, 0, 0, time.FixedZone("", 3600))}
	after := render(t, in)
	for i, stack := range after.Stacks {
		if stack.Name != "pool-workers" {
			require.Equal(t, before.Stacks[i], stack)
			continue
		}
		require.Equal(t, "2026-11-20T22:00:00Z", stack.Tags[names.TagRollAt])
		added := strings.Replace(string(stack.Template), `{Key: "drover:roll-at", Value: "2026-11-20T22:00:00Z"}, `, "", 1)
		require.Equal(t, string(before.Stacks[i].Template), added, "only the instances' tag differs")
	}
}

func TestLaunchHookHasTheUpdateStrategy(t *testing.T) {
	for name, c := range map[string]struct {
		pool api.Pool
		want events.HookMetadata
	}{
		"by default": {api.Pool{}, events.HookMetadata{Update: &events.PoolUpdate{Strategy: "RollingUpdate"}}},
		"pausing, with a readiness": {
			api.Pool{Update: api.Update{
				PauseTime: "1m30s",
			}, Readiness: api.Readiness{Labels: map[string]string{"a": "b"}, Conditions: []string{"C", "D"}}},
			events.HookMetadata{
				Update:    &events.PoolUpdate{Strategy: "RollingUpdate", PauseSeconds: 90},
				Readiness: &events.PoolReadiness{Labels: map[string]string{"a": "b"}, Conditions: []string{"C", "D"}},
			},
		},
		"Auto Scaling pauses itself": {
			api.Pool{Update: api.Update{Strategy: api.InstanceRefresh, PauseTime: "1m30s"}}, events.HookMetadata{
				Update: &events.PoolUpdate{Strategy: "InstanceRefresh"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := smallCluster()
			cluster.Spec.Pools[0].Update, cluster.Spec.Pools[0].Readiness = c.pool.Update, c.pool.Readiness
			group := at(t, resources(t, stackOf(t, render(t, resolve(t, cluster)), "pool-workers")), "Group")
			hooks := at(t, group, "Properties", "LifecycleHookSpecificationList").([]any)
			var got events.HookMetadata
			require.NoError(t, json.Unmarshal([]byte(hooks[0].(map[string]any)["NotificationMetadata"].(string)), &got))
			c.want.Cluster, c.want.Pool = "demo", "workers"
			require.Equal(t, c.want, got)
		})
	}
}

// The longest readiness that validation accepts fits, together with the longest names.
func TestLongestMetadataFits(t *testing.T) {
	cluster := smallCluster()
	cluster.Metadata.Name = strings.Repeat("c", api.MaxClusterName)
	pool := &cluster.Spec.Pools[0]
	pool.Name, pool.Update.PauseTime = strings.Repeat("p", api.MaxPoolName), "29m59s"
	for i := 0; ; i++ {
		pool.Readiness.Conditions = append(pool.Readiness.Conditions, fmt.Sprintf("c%03d", i))
		if errs := api.Validate(cluster, api.Options{}); errs != nil {
			require.ErrorContains(t, errs, "spec.pools[0].readiness: Too long: may not be more than 700 bytes")
			pool.Readiness.Conditions = pool.Readiness.Conditions[:i]
			break
		}
	}
	require.Greater(t, len(pool.Readiness.Conditions), 50)
	render(t, resolve(t, cluster))
	pool.Readiness.Conditions = append(pool.Readiness.Conditions, strings.Repeat("x", 200))
	_, err := Render(resolve(t, cluster))
	require.ErrorContains(t, err, "readiness: the launch hook's metadata has")
}
