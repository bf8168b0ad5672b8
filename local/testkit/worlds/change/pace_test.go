package change_test

// Rolls of pools: their pace depends on the desired size at that moment, and afterwards the pool has the size of its spec again.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
)

// specWithPool returns a spec whose pool has these fields, in YAML's flow style.
func specWithPool(fields string) string {
	return strings.Replace(harness.Spec("demo", ""), "minSize: 1, maxSize: 3}", fields+"}", 1)
}

// putSpec uploads a spec and waits until the cluster is Ready.
func putSpec(t *testing.T, a *harness.Account, spec string) {
	t.Helper()
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", spec)
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// groupReasons returns the reasons in CloudFormation's events of a pool's group, oldest first.
func groupReasons(t *testing.T, a *harness.Account) (sentences []string) {
	t.Helper()
	events, err := a.CloudFormation.DescribeStackEvents(t.Context(), a.Admin(), &cloudformation.StackPageInput{
		StackName: "drover-demo-pool-a",
	})
	require.NoError(t, err)
	for _, event := range events.StackEvents {
		if event.LogicalResourceId == names.GroupResource && event.ResourceStatusReason != "" {
			sentences = append(sentences, event.ResourceStatusReason)
		}
	}
	slices.Reverse(sentences)
	return sentences
}

func updates(t *testing.T, a *harness.Account) (n int) {
	for _, state := range statuses(t, a, "drover-demo-pool-a") {
		if state == "UPDATE_IN_PROGRESS" {
			n++
		}
	}
	return n
}

func ids(group pool.Group) (list []string) {
	for _, i := range group.Instances {
		list = append(list, i.ID)
	}
	return list
}

// larger is a change that replaces nodes.
const larger = ", rootVolume: {sizeGiB: 60}"

func TestRollsGoByWhatThePoolHas(t *testing.T) {
	for name, c := range map[string]struct {
		pool string
		// desired is the size that an autoscaler set.
		desired int
		// updates of the stack, and CloudFormation's reasons for the one that replaces nodes.
		updates int
		says    []string
	}{
		"with its first size": {
			pool: "minSize: 2, maxSize: 5", desired: 2, updates: 1,
			says: []string{"in batches of 1, while keeping at least 2 instance(s)", "MinSize and DesiredCapacity to 3."},
		},
		"an autoscaler raised it": {
			pool: "minSize: 1, maxSize: 5", desired: 3, updates: 2,
			says: []string{"in batches of 1, while keeping at least 3 instance(s)", "MinSize and DesiredCapacity to 4."},
		},
		"at its maximum size": {
			pool: "minSize: 1, maxSize: 3", desired: 3, updates: 3,
			says: []string{"in batches of 1, while keeping at least 3 instance(s)", "MinSize and DesiredCapacity to 4."},
		},
		"two at once at its maximum size": {
			pool: "minSize: 3, maxSize: 3, update: {maxSurge: 50%}", desired: 3, updates: 3,
			says: []string{"in batches of 2, while keeping at least 3 instance(s)", "MinSize and DesiredCapacity to 5."},
		},
		"less instead of more": {
			pool: "minSize: 3, maxSize: 3, update: {maxUnavailable: 1, maxSurge: 0}", desired: 3, updates: 1,
			says: []string{"in batches of 1, while keeping at least 2 instance(s)"},
		},
		"a single node that may have no other": {
			pool: "minSize: 1, maxSize: 1", desired: 1, updates: 3,
			says: []string{"in batches of 1, while keeping at least 1 instance(s)", "MinSize and DesiredCapacity to 2."},
		},
		"no node at all": {pool: "minSize: 0, maxSize: 2", desired: 0, updates: 1},
		"none at first": {
			pool: "minSize: 0, maxSize: 2", desired: 2, updates: 3, says: []string{"while keeping at least 2 instance(s)", "DesiredCapacity to 3."},
		},
		"by a refresh": {
			pool: "minSize: 1, maxSize: 3, update: {strategy: InstanceRefresh}", desired: 3, updates: 2, says: []string{"Replacing 3 instance(s)."},
		},
		"a refresh of one": {
			pool: "minSize: 1, maxSize: 1, update: {strategy: InstanceRefresh, maxUnavailable: 1}", desired: 1, updates: 1,
			says: []string{"Replacing 1 instance(s)."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			putSpec(t, a, specWithPool(c.pool))
			a.Scale("demo", "a", c.desired)
			before, spec := a.Group("demo", "a"), specWithPool(c.pool+larger)
			putSpec(t, a, spec)
			after := a.Group("demo", "a")
			require.Equal(t, c.desired, after.Desired)
			require.Equal(t, []int{before.Min, before.Max}, []int{after.Min, after.Max}, "the spec's bounds, after the roll")
			require.Len(t, after.Instances, c.desired)
			for _, i := range after.Instances {
				require.Equal(t, "2", i.TemplateVersion)
				require.Equal(t, pool.InService, i.State)
				require.NotContains(t, ids(before), i.ID)
			}
			require.Empty(t, after.Suspended)
			require.Equal(t, c.updates, updates(t, a), statuses(t, a, "drover-demo-pool-a"))
			for _, sentence := range c.says {
				require.Contains(t, strings.Join(groupReasons(t, a), "\n"), sentence)
			}
			clean(t, a, "demo")
			// A change that replaces no node needs no pace.
			putSpec(t, a, strings.Replace(spec, larger, larger+", drain: {timeout: 3h}", 1))
			require.Equal(t, c.updates+1, updates(t, a))
			require.ElementsMatch(t, ids(after), ids(a.Group("demo", "a")))
			// Another converge changes nothing.
			mark := a.Calls.Mark()
			a.Converge("demo")
			a.Settle()
			for _, call := range a.Calls.Since(mark) {
				require.False(t, call.Mutating && harness.CalledBy(call) != "admin", "%s %s", call.Service, call.Action)
			}
		})
	}
}

// The size of a pool changes together with its launch template.
func TestRollWithAChangeOfSize(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		least, most   int
		nodes         int
	}{
		"a greater least size":  {before: "minSize: 1, maxSize: 5", after: "minSize: 3, maxSize: 5", least: 3, most: 5, nodes: 3},
		"a lesser greatest one": {before: "minSize: 1, maxSize: 5", after: "minSize: 1, maxSize: 2", least: 1, most: 2, nodes: 2},
		"another strategy": {
			before: "minSize: 1, maxSize: 3", after: "minSize: 1, maxSize: 3, update: {strategy: InstanceRefresh}", least: 1, most: 3, nodes: 2,
		},
		"back again": {
			before: "minSize: 1, maxSize: 3, update: {strategy: InstanceRefresh}", after: "minSize: 1, maxSize: 3", least: 1, most: 3, nodes: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			putSpec(t, a, specWithPool(c.before))
			a.Scale("demo", "a", 2)
			putSpec(t, a, specWithPool(c.after+larger))
			after := a.Group("demo", "a")
			require.Equal(t, []int{c.least, c.most, c.nodes}, []int{after.Min, after.Max, after.Desired})
			for _, i := range after.Instances {
				require.Equal(t, "2", i.TemplateVersion)
			}
			clean(t, a, "demo")
		})
	}
}

// Replacing nodes fails. CloudFormation rolls back at the pace that drover deployed first. A later success gives the pool the size of its
// spec.
func TestRollIsRolledBack(t *testing.T) {
	a := harness.Start(t)
	putSpec(t, a, specWithPool("minSize: 3, maxSize: 3"))
	before := a.Group("demo", "a")
	// The launch template changes, then the update of the group fails.
	groupUpdates := 0
	a.OnResource(func(step string, r resource.Request) error {
		if step == "update" && r.LogicalID == names.GroupResource {
			if groupUpdates++; groupUpdates == 2 { // the first sets the pace
				return errQuota
			}
		}
		return nil
	})
	a.Upload("clusters/demo.yaml", specWithPool("minSize: 3, maxSize: 3"+larger))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Contains(t, s.Message, "drover-demo-pool-a is UPDATE_ROLLBACK")
	require.Contains(t, s.Message, errQuota.Message)
	require.ElementsMatch(t, ids(before), ids(a.Group("demo", "a")), "the rollback replaces no node")
	deployed := a.Stack("demo", "pool-a").Parameters
	require.Equal(t, []string{"3", "1"}, []string{deployed[render.MinInstancesInService], deployed[render.MaxBatchSize]},
		"the pace of a rollback")
	clean(t, a, "demo")

	// A manual converge retries it.
	a.OnResource(nil)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	after := a.Group("demo", "a")
	require.Equal(t, []int{3, 3, 3}, []int{after.Min, after.Max, after.Desired})
	require.NotContains(t, strings.Join(groupReasons(t, a), "\n"), "keeping at least 2", "never less than desired")
}

// Replacing nodes with another strategy fails. CloudFormation rolls back with the deployed strategy, and with the room that drover made for
// the failed one. A rolling update has enlarged the group, and a refresh takes percentages of that size.
func TestRollbackOfARollByAnotherStrategy(t *testing.T) {
	const rolling, refreshing = "minSize: 3, maxSize: 3", "minSize: 3, maxSize: 3, update: {strategy: InstanceRefresh}"
	for name, c := range map[string]struct {
		before, after string
		deployed      map[string]string
	}{
		"a rolling update after a refresh": {
			refreshing, rolling, map[string]string{render.MinHealthyPercentage: "100", render.MaxHealthyPercentage: "125", render.MaxSize: "4"},
		},
		"a refresh after a rolling update": {
			rolling, refreshing, map[string]string{render.MinInstancesInService: "3", render.MaxBatchSize: "1", render.MaxSize: "4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			putSpec(t, a, specWithPool(c.before))
			before, groupUpdates := a.Group("demo", "a"), 0
			a.OnResource(func(step string, r resource.Request) error {
				if step == "update" && r.LogicalID == names.GroupResource {
					if groupUpdates++; groupUpdates == 2 { // the first makes room
						return errQuota
					}
				}
				return nil
			})
			a.Upload("clusters/demo.yaml", specWithPool(c.after+larger))
			a.Settle()
			require.Equal(t, status.Failed, a.Status("demo").Phase)
			require.Contains(t, a.Status("demo").Message, errQuota.Message)
			require.ElementsMatch(t, ids(before), ids(a.Group("demo", "a")))
			deployed := a.Stack("demo", "pool-a").Parameters
			for parameter, value := range c.deployed {
				require.Equal(t, value, deployed[parameter], parameter)
			}
			clean(t, a, "demo")

			a.OnResource(nil)
			a.Converge("demo")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			after := a.Group("demo", "a")
			require.Equal(t, []int{3, 3, 3}, []int{after.Min, after.Max, after.Desired})
			require.NotContains(t, ids(before), after.Instances[0].ID)
			clean(t, a, "demo")
		})
	}
}

// A newer spec reverts the failed roll. What the rollback left is replaced, with at least the desired number of nodes.
func TestRollIsReverted(t *testing.T) {
	// The number of the update that fails. The group's first update sets the pace.
	for kind, which := range map[string]int{"AWS::EC2::LaunchTemplate": 1, "AWS::AutoScaling::AutoScalingGroup": 2} {
		t.Run(kind, func(t *testing.T) {
			a := harness.Start(t)
			putSpec(t, a, specWithPool("minSize: 3, maxSize: 3"))
			seen := 0
			a.OnResource(func(step string, r resource.Request) error {
				if step == "update" && r.Type == kind {
					if seen++; seen == which {
						return errQuota
					}
				}
				return nil
			})
			a.Upload("clusters/demo.yaml", specWithPool("minSize: 3, maxSize: 3"+larger))
			a.Settle()
			require.Equal(t, status.Failed, a.Status("demo").Phase)
			require.Contains(t, a.Status("demo").Message, errQuota.Message)
			clean(t, a, "demo")
			putSpec(t, a, specWithPool("minSize: 3, maxSize: 3"))
			after := a.Group("demo", "a")
			require.Equal(t, []int{3, 3, 3}, []int{after.Min, after.Max, after.Desired})
			require.NotContains(t, strings.Join(groupReasons(t, a), "\n"), "keeping at least 2")
			clean(t, a, "demo")
		})
	}
}

func TestPoolsOfAHigherOrderStayWhenALowerOneFails(t *testing.T) {
	a := harness.Start(t)
	two := func(more string) string {
		return strings.Replace(specWithPool("minSize: 1, maxSize: 3"+more), "  pools:\n",
			"  pools:\n    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3, update: {order: 1}"+more+"}\n", 1)
	}
	putSpec(t, a, two(""))
	failing(a, "update", "AWS::EC2::LaunchTemplate", "pool-a", errQuota)
	a.Upload("clusters/demo.yaml", two(larger))
	a.Settle()
	require.Equal(t, status.Failed, a.Status("demo").Phase)
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-b"])
	// They follow once the cause is fixed.
	a.OnResource(nil)
	putSpec(t, a, two(larger))
	require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")["pool-b"])
}

// Only the bounds of a pool change. The size that an autoscaler chose within them stays, and so do the nodes.
func TestResizingAPoolKeepsWhatAnAutoscalerChose(t *testing.T) {
	a := harness.Start(t)
	putSpec(t, a, specWithPool("minSize: 1, maxSize: 5"))
	a.Scale("demo", "a", 3)
	before := a.Group("demo", "a")
	for _, bounds := range [][]int{{2, 6}, {1, 4}, {0, 3}, {3, 9}} {
		putSpec(t, a, specWithPool(fmt.Sprintf("minSize: %d, maxSize: %d", bounds[0], bounds[1])))
		after := a.Group("demo", "a")
		require.Equal(t, []int{bounds[0], bounds[1], 3}, []int{after.Min, after.Max, after.Desired})
		require.ElementsMatch(t, ids(before), ids(after))
		clean(t, a, "demo")
	}
	putSpec(t, a, specWithPool("minSize: 4, maxSize: 9"))
	require.Equal(t, 4, a.Group("demo", "a").Desired, "the minimum of the spec")
}
