package roll_test

// Changes that leave the nodes of pools as they are: tags, zones and subnets. In virtual time.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
)

// manyPools is how many pools a cluster of this file has.
const manyPools = 20

// poolNames returns the names of the pools.
func poolNames() (list []string) {
	for i := range manyPools {
		list = append(list, fmt.Sprintf("p%02d", i))
	}
	return list
}

// poolsSpec is the spec of a cluster with many pools of one or two nodes. Each third one is rolled by instance refreshes.
func poolsSpec(network, more string) string {
	spec := fmt.Sprintf("apiVersion: drover.run/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n  release: {name: r1}\n"+
		"  network: {%s}\n%s  poolDefaults: {instanceTypes: [m7i.large], maxSize: 4}\n  pools:\n", network, more)
	for i, name := range poolNames() {
		spec += fmt.Sprintf("    - {name: %s, minSize: %d", name, 1+i%2)
		if i%3 == 2 {
			spec += ", update: {strategy: InstanceRefresh}"
		}
		spec += "}\n"
	}
	return spec
}

const (
	twoZones   = "cidr: 10.0.0.0/16, natGateways: Single, zones: [" + harness.Region + "a, " + harness.Region + "b]"
	threeZones = "cidr: 10.0.0.0/16, natGateways: Single, zones: [" + harness.Region + "a, " + harness.Region + "b, " + harness.Region + "c]"
)

// office creates a network outside drover, with three subnets.
func (l *life) office() (vpc string, subnets []string) {
	body := "Resources:\n  Vpc: {Type: \"AWS::EC2::VPC\", " +
		"Properties: {CidrBlock: 10.9.0.0/16, EnableDnsSupport: true, EnableDnsHostnames: true}}\n"
	outputs := "Outputs: {Vpc: {Value: !Ref Vpc}"
	for i, zone := range []string{"a", "b", "c"} {
		body += fmt.Sprintf("  S%s: {Type: \"AWS::EC2::Subnet\", "+
			"Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.%d.0/20, AvailabilityZone: %s%s}}\n", zone, 16*i, harness.Region, zone)
		outputs += fmt.Sprintf(", %s: {Value: !Ref S%s}", zone, zone)
	}
	_, err := l.CloudFormation.CreateStack(l.T.Context(), l.Admin(), &cloudformation.CreateStackInput{
		StackName: "office", TemplateBody: body + outputs + "}\n",
	})
	require.NoError(l.T, err)
	stack, err := l.CloudFormation.Wait(l.T.Context(), "office")
	require.NoError(l.T, err)
	for _, output := range stack.Outputs {
		if output.OutputKey == "Vpc" {
			vpc = output.OutputValue
			continue
		}
		subnets = append(subnets, output.OutputValue)
	}
	require.Len(l.T, subnets, 3)
	return vpc, subnets
}

// departures records the instances of all pools that leave.
type departures struct {
	mu    sync.Mutex
	left  []string
	stops []func()
}

func (l *life) departures() *departures {
	d := &departures{}
	for _, name := range poolNames() {
		d.stops = append(d.stops, l.AutoScaling.Watch(names.Group("demo", name), func(v localautoscaling.View) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, i := range v.Instances {
				if strings.HasPrefix(i.State, pool.Terminating) && !slices.Contains(d.left, i.ID) {
					d.left = append(d.left, i.ID)
				}
			}
		}))
	}
	return d
}

// stop returns the instances that left.
func (d *departures) stop() []string {
	for _, stop := range d.stops {
		stop()
	}
	return d.left
}

// interruptions fails steps of the updates of the pools: each call of the change function to CloudFormation with the same name for some
// pools, change sets, and resources, also in the rollback.
type interruptions struct {
	mu sync.Mutex
	// calls and resources count what was seen, failed what failed.
	calls     map[string]int
	resources map[string]int
	failed    map[string]int
}

var errStep = errors.New("a step of the test failed")

// call fails each sixth call of a kind.
func (f *interruptions) call(c endpoint.Call) error {
	if c.Service != "cloudformation" || harness.CalledBy(c) != "change" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[c.Action]++; f.calls[c.Action]%6 == 3 {
		f.failed[c.Action]++
		return &wire.Error{Code: "InternalFailure", Message: "An internal error occurred.", Status: 500}
	}
	return nil
}

// resource fails, for each pool, another of the first updates of its resources: of the update that switches the policy off, of the change,
// and of the rollback of either.
func (f *interruptions) resource(step string, r resource.Request) error {
	at := slices.IndexFunc(poolNames(), func(name string) bool { return r.StackName == names.Stack("demo", names.PoolStack(name)) })
	if step != "update" || at < 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resources[r.StackName]++
	if n := f.resources[r.StackName]; n == at%5 || at >= manyPools/2 && n == at%5+1 {
		what := r.LogicalID
		if r.Rollback {
			what += " in a rollback"
		}
		f.failed[what]++
		return errStep
	}
	return nil
}

// nodesOf returns the instances of all pools, and their fingerprints.
func (l *life) nodesOf() (instances []string, fingerprints map[string]string) {
	fingerprints = map[string]string{}
	for _, name := range poolNames() {
		for _, i := range l.Group("demo", name).Instances {
			instances = append(instances, i.ID)
		}
		outputs := l.Stack("demo", names.PoolStack(name)).Outputs
		require.NotEmpty(l.T, outputs[render.Nodes])
		fingerprints[name] = outputs[render.Nodes] + " since " + outputs[render.NodesSince]
	}
	slices.Sort(instances)
	return instances, fingerprints
}

// An edit of tags, and an added zone or subnet, replaces no node of 20 pools, whichever step of their updates fails. A roll afterwards
// replaces all of them.
func TestChangesInPlaceReplaceNoNode(t *testing.T) {
	const tagged, monitored = "  tags: {team: shop}\n", "detailedMonitoring: true, "
	for name, edit := range map[string]struct {
		before, after func(vpc string, subnets []string) string
		readings      questions.Readings
	}{
		"tags": {
			func(string, []string) string { return poolsSpec(twoZones, "") },
			func(string, []string) string { return poolsSpec(twoZones, tagged) }, nil,
		},
		"tags, where any update replaces instances of other templates": {
			func(string, []string) string { return poolsSpec(twoZones, "") },
			func(string, []string) string { return poolsSpec(twoZones, tagged) }, questions.Readings{questions.OtherInstances: true},
		},
		"tags of pools": {
			func(string, []string) string { return poolsSpec(twoZones, "") },
			func(string, []string) string {
				return strings.Replace(poolsSpec(twoZones, ""), "poolDefaults: {", "poolDefaults: {tags: {team: shop}, ", 1)
			}, nil,
		},
		"monitoring": {
			func(string, []string) string { return poolsSpec(twoZones, "") },
			func(string, []string) string {
				return strings.Replace(poolsSpec(twoZones, ""), "poolDefaults: {", "poolDefaults: {"+monitored, 1)
			}, nil,
		},
		"a zone": {
			func(string, []string) string { return poolsSpec(twoZones, "") },
			func(string, []string) string { return poolsSpec(threeZones, "") }, nil,
		},
		"a zone of pools": {
			func(string, []string) string { return inZones("a", "b") },
			func(string, []string) string { return inZones("a", "b", "c") }, nil,
		},
		"a subnet": {
			func(vpc string, s []string) string { return poolsSpec(existing(vpc, s[:2]), "") },
			func(vpc string, s []string) string { return poolsSpec(existing(vpc, s), "") }, nil,
		},
		"a subnet of pools": {
			func(vpc string, s []string) string { return inSubnets(vpc, s, s[:2]) },
			func(vpc string, s []string) string { return inSubnets(vpc, s, []string{s[1], s[2], s[0]}) }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := startWith(t, harness.Options{Bubble: true, Readings: edit.readings})
				defer l.Close()
				vpc, subnets := l.office()
				l.Upload(names.ReleaseSpec("r1"), harness.Release())
				l.Upload(names.ClusterSpec("demo"), edit.before(vpc, subnets))
				l.SettleAll()
				l.RequirePhase(status.Ready)
				before, fingerprints := l.nodesOf()
				require.Len(t, before, manyPools*3/2)

				departed, fail := l.departures(), &interruptions{calls: map[string]int{}, resources: map[string]int{}, failed: map[string]int{}}
				l.OnCall(fail.call)
				l.OnResource(fail.resource)
				l.Upload(names.ClusterSpec("demo"), edit.after(vpc, subnets))
				l.SettleAll()
				l.RunSchedules(12)
				l.RequirePhase(status.Ready)
				require.Empty(t, departed.stop())
				now, same := l.nodesOf()
				require.Equal(t, before, now)
				require.Equal(t, fingerprints, same)
				l.requireInPlace(edit.after(vpc, subnets))
				t.Logf("failed: %v of %v", fail.failed, fail.calls)
				for _, what := range []string{
					"CreateChangeSet", "DescribeChangeSet", "ExecuteChangeSet", "DescribeStacks", "ContinueUpdateRollback",
					names.GroupResource, names.GroupResource + " in a rollback",
				} {
					require.Positive(t, fail.failed[what], what)
				}
				newVersion := strings.Contains(edit.after(vpc, subnets), "team: shop") || strings.Contains(edit.after(vpc, subnets), monitored)
				require.Equal(t, newVersion, fail.failed["LaunchTemplate"] > 0)

				l.OnCall(nil)
				l.OnResource(nil)
				l.Upload(names.ClusterSpec("demo"), strings.Replace(edit.after(vpc, subnets), "poolDefaults: {", "poolDefaults: {labels: {a: b}, ", 1))
				l.SettleAll()
				l.RunSchedules(2)
				l.RequirePhase(status.Ready)
				after, other := l.nodesOf()
				require.Len(t, after, len(before))
				for _, id := range after {
					require.NotContains(t, before, id)
				}
				for pool, sum := range maps.All(other) {
					require.NotEqual(t, fingerprints[pool], sum)
				}
			})
		})
	}
}

// inZones returns a spec with three zones and pools in some of them.
func inZones(letters ...string) string {
	var zones []string
	for _, letter := range letters {
		zones = append(zones, harness.Region+letter)
	}
	return strings.Replace(poolsSpec(threeZones, ""), "poolDefaults: {", "poolDefaults: {zones: ["+strings.Join(zones, ", ")+"], ", 1)
}

// inSubnets returns a spec with pools in some subnets of a VPC. The cluster has the first two, so a third one is new.
func inSubnets(vpc string, subnets, own []string) string {
	return strings.Replace(poolsSpec(existing(vpc, subnets[:2]), ""), "poolDefaults: {",
		"poolDefaults: {subnets: ["+strings.Join(own, ", ")+"], ", 1)
}

// existing returns the fields of an existing network.
func existing(vpc string, subnets []string) string {
	return fmt.Sprintf("existing: {vpcID: %s, subnets: [%s]}", vpc, strings.Join(subnets, ", "))
}

// requireInPlace requires that the audit finds nothing, and that the groups have what the spec states.
func (l *life) requireInPlace(spec string) {
	l.T.Helper()
	require.NoError(l.T, l.AuditNow())
	condition := l.Status("demo").Condition(status.InSync)
	if condition != nil { // it is absent until the audit finds something
		require.EqualValues(l.T, "True", condition.Status, condition.Message)
	}
	for _, name := range poolNames() {
		if strings.Contains(spec, "team: shop") {
			require.Equal(l.T, "shop", l.Stack("demo", names.PoolStack(name)).Tags["team"])
		}
		if !strings.Contains(spec, twoZones+"}") {
			require.Len(l.T, l.Group("demo", name).Subnets, 3, name)
		}
	}
}

// A pool has nodes in its zones only. A removed zone replaces the nodes.
func TestPoolMovesToAnotherZone(t *testing.T) {
	lives.Run(t, func(l *lives.Life) {
		zonesOf := func() (zones, ids []string) {
			for _, i := range l.Group("demo", "a").Instances {
				zones, ids = append(zones, i.Zone), append(ids, i.ID)
			}
			return zones, ids
		}
		in := func(letter string) string { return "minSize: 3, maxSize: 4, zones: [" + harness.Region + letter + "]" }
		l.CreatePool(in("a"))
		zones, before := zonesOf()
		require.Equal(t, slices.Repeat([]string{harness.Region + "a"}, 3), zones)
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ""), "minSize: 1, maxSize: 3", in("b"), 1))
		l.SettleAll()
		l.RunSchedules(3)
		l.RequirePhase(status.Ready)
		zones, after := zonesOf()
		require.Equal(t, slices.Repeat([]string{harness.Region + "b"}, 3), zones)
		for _, id := range after {
			require.NotContains(t, before, id)
		}
	})
}

// Another security group replaces the nodes, and so does the removal of a subnet.
func TestPoolMovesToAnotherNetwork(t *testing.T) {
	lives.Run(t, func(started *lives.Life) {
		l := &life{started}
		vpc, subnets := l.office()
		group := l.CreateSecurityGroup("group", vpc)
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		nodesWith := func(fields string) (ids []string) {
			network := existing(vpc, subnets[:2])
			l.Upload(names.ClusterSpec("demo"), fmt.Sprintf("apiVersion: drover.run/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n"+
				"  release: {name: r1}\n  network: {%s}\n  pools: [{name: a, instanceTypes: [m7i.large], minSize: 2, maxSize: 3%s}]\n",
				network, fields))
			l.SettleAll()
			l.RunSchedules(3)
			l.RequirePhase(status.Ready)
			for _, i := range l.Group("demo", "a").Instances {
				ids = append(ids, i.ID)
			}
			require.Len(t, ids, 2)
			return ids
		}
		requireOthers := func(before, after []string) {
			for _, id := range after {
				require.NotContains(t, before, id)
			}
		}
		first := nodesWith("")
		grouped := nodesWith(", securityGroups: [" + group + "]")
		requireOthers(first, grouped)
		moved := nodesWith(", securityGroups: [" + group + "], subnets: [" + subnets[2] + "]")
		requireOthers(grouped, moved)
		for _, id := range moved {
			i, err := l.EC2.Instance(id)
			require.NoError(t, err)
			require.Equal(t, subnets[2], i.SubnetID)
		}
	})
}

// A pool with nodes in two zones gets a third one. Auto Scaling moves a node there: it launches the new one first, and drover drains the
// old one.
func TestAddedZoneIsFilled(t *testing.T) {
	lives.Run(t, func(l *lives.Life) {
		l.CreatePool("minSize: 4, maxSize: 5")
		before := l.Group("demo", "a")
		least := len(before.Instances)
		defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) { least = min(least, count(v, pool.InService)) })()
		l.Upload(names.ClusterSpec("demo"), strings.Replace(strings.Replace(harness.Spec("demo", ""), "minSize: 1, maxSize: 3",
			"minSize: 4, maxSize: 5", 1), harness.Region+"b]", harness.Region+"b, "+harness.Region+"c]", 1))
		l.SettleAll()
		time.Sleep(time.Hour)
		l.RequirePhase(status.Ready)
		zones := map[string]int{}
		stayed := 0
		for _, i := range l.Group("demo", "a").Instances {
			zones[i.Zone]++
			if slices.ContainsFunc(before.Instances, func(old pool.Instance) bool { return old.ID == i.ID }) {
				stayed++
			}
		}
		require.Equal(t, 3, len(zones), zones)
		require.Equal(t, 3, stayed)
		require.Equal(t, 4, least)
		require.NoError(t, l.AuditNow())
	})
}
