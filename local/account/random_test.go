package account

// Random rolls: pools of any size and policy with any workloads, while events are repeated, late or lost, nodes fail,
// spot instances are interrupted, and some new nodes never join. The invariants hold always: no budget is broken, no
// more nodes are out than the pool's update allows, every hook completes, no node remains cordoned, and everything is
// Ready at the end.
//
// A failure names its seed: go test ./local/account -run TestRandomRolls -rolls 17 repeats it; -rolls 100-200 tries
// more.

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// rollSeeds together cover both strategies, a failed image, a lost node, a spot instance and many lost events.
var rollSeeds = flag.String("rolls", "1,2,4,5,11", "seeds of random rolls: 3,8 or 1-50")

func seedsOf(t *testing.T, text string) (seeds []uint64) {
	for _, part := range strings.Split(text, ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 64)
		require.NoError(t, err)
		last, err := strconv.ParseUint(to, 10, 64)
		require.NoError(t, err)
		for seed := first; seed <= last; seed++ {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// accident of a node during a roll.
type accident string

const (
	noAccident accident = "none"
	nodeFails  accident = "a node fails"
	spotTaken  accident = "a spot instance is interrupted"
)

// randomRoll is the roll of a seed.
type randomRoll struct {
	Size               int
	Update             object
	Unavailable, Batch int
	Surge              int // the nodes that a failed rolling update adds
	Waits, Fails       bool
	Accident           accident
	After              time.Duration // until the accident, from the upload
	Workloads          []workload.Workload
	Late, Twice, Lost  float64
}

func newRandomRoll(r *rand.Rand) randomRoll {
	roll := randomRoll{
		Size: 2 + r.IntN(3), Waits: r.IntN(2) == 0, Fails: r.IntN(4) == 0, Late: r.Float64() / 2, Twice: r.Float64() / 2,
		Accident: []accident{noAccident, nodeFails, spotTaken}[r.IntN(3)], After: time.Duration(r.IntN(3000)) * time.Millisecond,
	}
	half := (roll.Size + 1) / 2
	paces := []struct {
		unavailable, surge string
		u, s               int
	}{{"0", "1", 0, 1}, {"0", "2", 0, 2}, {"1", "0", 1, 0}, {"1", "1", 1, 1}, {"50%", "0", roll.Size / 2, 0}, {"0", "50%", 0, half}}
	pace := paces[r.IntN(len(paces))]
	roll.Update = object{"maxUnavailable": amount(pace.unavailable), "maxSurge": amount(pace.surge)}
	if r.IntN(2) == 0 {
		roll.Update["strategy"] = "InstanceRefresh"
	}
	roll.Unavailable, roll.Batch, roll.Surge = pace.u, max(1, pace.u+pace.s), pace.s
	for i := range 1 + r.IntN(3) {
		w := workload.Workload{
			Namespace: "random", Name: fmt.Sprintf("w%d", i), Kind: []workload.Kind{workload.Deployment, workload.StatefulSet}[r.IntN(2)],
			Replicas:   2 + r.IntN(5),
			ReadyAfter: time.Duration(r.IntN(300)) * time.Millisecond, EndsAfter: time.Duration(400+r.IntN(400)) * time.Millisecond,
			Grace: time.Second, EmptyDir: r.IntN(3) == 0,
		}
		switch r.IntN(4) {
		case 0:
			w.MaxUnavailable = "1"
		case 1:
			w.MaxUnavailable = "34%"
		case 2:
			w.MinAvailable = strconv.Itoa(w.Replicas - 1)
		}
		roll.Workloads = append(roll.Workloads, w)
	}
	roll.Lost = r.Float64() / 4
	return roll
}

// amount returns a number or a percentage in YAML's form.
func amount(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return text
}

func TestRandomRolls(t *testing.T) {
	t.Parallel()
	const name = "random"
	cloud.retire(t, name)
	workers := object{"name": "workers", "instanceTypes": []string{"m7i.large"}, "minSize": 2, "maxSize": 2}
	spec := specOf(name, workers)
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
	cluster := connect(t, name)
	for _, seed := range seedsOf(t, *rollSeeds) {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			randomly(t, name, spec, workers, cluster, r, newRandomRoll(r))
		})
		if !ok {
			return // its leftovers would fail the next
		}
	}
}

func randomly(t *testing.T, name string, spec, workers object, cluster *workload.Cluster, r *rand.Rand, roll randomRoll) {
	t.Logf("%+v", roll)
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	workers["minSize"], workers["maxSize"], workers["update"] = roll.Size, roll.Size, roll.Update
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
	cloud.atRest(t, name, "workers", roll.Size)
	cloud.AutoScaling.WaitForTerminateHooks(roll.Waits, names.Group(name, "workers"))
	require.NoError(t, cluster.Deploy(ctx, roll.Workloads...))
	pods, err := cluster.Watch(ctx)
	require.NoError(t, err)
	defer pods.Close()
	require.NoError(t, pods.Wait(ctx, "the workloads", func() bool { return pods.Settled(roll.Workloads...) }))
	require.NoError(t, cluster.Budgeted(ctx, roll.Workloads...))
	pods.Forget()

	var deliveries sync.WaitGroup
	lost := astray(t, name, r.Uint64(), roll, &deliveries)
	stopSweeping := sweeping(t)
	defer stopSweeping()
	seen, started := observe(t, name, "workers"), time.Now()
	workers["labels"] = object{"example.com/roll": fmt.Sprint(started.UnixNano())}
	if roll.Fails {
		workers["imageID"] = ec2.TooNewImage
	}
	version := cloud.upload(t, name, text(t, spec))
	befall(t, ctx, name, roll, r, seen, pods)
	s := cloud.rest(t, name, version)
	deliveries.Wait()
	most := roll.Size
	if roll.Fails { // CloudFormation keeps the raised desired capacity
		most += roll.Surge
	}
	cloud.atRestWithin(t, name, "workers", roll.Size, most)
	cloud.quiet(t, name)
	stopSweeping()
	cloud.calmDeliveries()
	cloud.quiet(t, name) // the last sweep may have listed an instance before the end of its drain, and started another execution
	seen.stop()
	t.Logf("in %.1f s: %s; at most %d out, at least %d in service; %d events lost", time.Since(started).Seconds(), s.Phase, seen.out,
		seen.least, lost.Load())

	if roll.Fails {
		require.Equal(t, status.Failed, s.Phase, s.Message)
		require.NotEmpty(t, s.Nodes)
	} else {
		require.Equal(t, status.Ready, s.Phase, s.Message)
	}
	seen.requireKept(t, roll.Size, roll.Unavailable, roll.Batch)
	require.NoError(t, pods.Wait(ctx, "all pods to be back", func() bool { return pods.Settled(roll.Workloads...) }))
	keptBudgets(t, pods, roll.Workloads)
	for _, n := range nodesOf(t, name) {
		require.Equal(t, !roll.Fails, n.Labels["example.com/roll"] == fmt.Sprint(started.UnixNano()), n.Name)
	}
	for _, x := range cloud.endedExecutions(t, name, "drover-drain-node", started) {
		require.Equal(t, "SUCCEEDED", x.Status, x.Cause)
	}
	require.NoError(t, cluster.Remove(ctx, roll.Workloads...))
	if roll.Fails {
		delete(workers, "imageID")
		cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
		cloud.atRest(t, name, "workers", roll.Size)
	}
}

// sweeping runs the sweep every other second, instead of every two minutes, until stop is called.
func sweeping(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		for cloud.clock.Timer(ctx, 2*time.Second) == nil {
			if err := cloud.Scheduler.Fire(t.Context(), "drover", "drover-sweep"); err != nil {
				t.Error(err)
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// astray delays and repeats events about the groups of a cluster and its instances, and drops some of lifecycle hooks.
// lost counts the dropped ones.
func astray(t *testing.T, cluster string, seed uint64, roll randomRoll, deliveries *sync.WaitGroup) (lost *atomic.Int64) {
	var mu sync.Mutex
	lost = &atomic.Int64{}
	r := rand.New(rand.NewPCG(seed, 1))
	cloud.deliveries(t, func(_ string, e eventbridge.Event, deliver func()) {
		if !about(e, cluster) {
			deliver()
			return
		}
		mu.Lock()
		times, late := 1, time.Duration(0)
		if r.Float64() < roll.Twice {
			times++
		}
		if r.Float64() < roll.Late {
			late = time.Duration(r.IntN(1500)) * time.Millisecond
		}
		if r.Float64() < roll.Lost && strings.HasSuffix(e.DetailType, "Lifecycle Action") {
			times = 0
			lost.Add(1)
		}
		mu.Unlock()
		deliveries.Go(func() {
			for range times {
				_ = cloud.clock.Timer(t.Context(), late)
				deliver()
			}
		})
	})
	return lost
}

// about reports whether an event is about a group of a cluster or one of its instances.
func about(e eventbridge.Event, cluster string) bool {
	switch e.Source {
	case "aws.autoscaling":
		return strings.Contains(string(e.Detail), names.Group(cluster, ""))
	case "aws.ec2":
		var of struct {
			InstanceID string `json:"instance-id"`
		}
		if json.Unmarshal(e.Detail, &of) != nil {
			return false
		}
		instance, err := cloud.EC2.Instance(of.InstanceID)
		return err == nil && instance.Tags[names.TagCluster] == cluster
	}
	return false
}

// befall causes the seed's accident to one of the pool's nodes.
func befall(t *testing.T, ctx context.Context, name string, roll randomRoll, r *rand.Rand, seen *observer, pods *workload.Watcher) {
	require.NoError(t, cloud.clock.Timer(ctx, roll.After))
	// Choose one in service: an instance that ends before it joined is only noticed after the 14 minutes for joining.
	serving := instancesOf(t, name)
	nodes := slices.DeleteFunc(nodesOf(t, name), func(n corev1.Node) bool { return serving[instanceOf(n)] == "" })
	node := nodes[r.IntN(len(nodes))]
	id := instanceOf(node)
	switch roll.Accident {
	case noAccident:
		return
	case spotTaken:
		before := time.Now()
		cloud.Events.Emit(ctx, "aws.ec2", "EC2 Spot Instance Interruption Warning", []string{"arn:aws:ec2:us-east-1a:instance/" + id},
			map[string]any{"instance-id": id, "instance-action": "terminate"})
		// Two minutes on AWS. Here the time of the drain.
		cloud.until(t, func() bool {
			for _, x := range cloud.since("drover-drain-node", before) {
				if strings.Contains(x.Input, `"instance-id":"`+id+`"`) && x.Status != "RUNNING" {
					return true
				}
			}
			return false
		}, func() string { return cloud.executions(name) })
	}
	seen.lose(id)
	pods.Lose(node.Name)
	if err := cloud.EC2.Terminate(id, "Server.InternalError"); err != nil {
		require.ErrorContains(t, err, "does not exist")
	}
}
