package storm

// Faults of resources, instances and API servers.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/shared/names"
)

// failure of a resource: the n-th time that CloudFormation processes one of a type, while faults occur.
type failure struct {
	step, kind string
	nth        int
}

func (f failure) String() string {
	return fmt.Sprintf("%s of %s fails the %d. time", f.step, f.kind, f.nth)
}

func failures(r *rand.Rand) (all []failure) {
	if r.IntN(4) > 0 {
		return nil
	}
	for range 1 + r.IntN(2) {
		all = append(all, failure{pick(r, "create", "create", "update", "delete"), pick(r, failing...), 1 + r.IntN(3)})
	}
	return all
}

// failing are types in the clusters' templates.
var failing = []string{
	"AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::NatGateway", "AWS::IAM::Role", "AWS::EKS::Cluster", "AWS::EKS::Addon",
	"AWS::EKS::AccessEntry", "AWS::EC2::LaunchTemplate", "AWS::AutoScaling::AutoScalingGroup",
}

// failResource fails the resources that the plot selects.
func (w *world) failResource(step string, r resource.Request) error {
	if w.faultsEnded || w.over() {
		return nil
	}
	w.resources[step+r.Type]++
	for _, f := range w.plot.failures {
		if f.step == step && f.kind == r.Type && f.nth == w.resources[step+r.Type] {
			w.record("%s in %s: %v", r.LogicalID, r.StackName, f)
			w.out.Failures++
			return &wire.Error{Code: "ServiceInternalError", Message: "struck by the storm", Status: 500}
		}
	}
	return nil
}

// faultInterval is the time between two decisions about faults of instances and API servers.
const faultInterval = time.Minute

// injectFaults injects faults of instances and API servers until stop is closed. At each interval it also checks the statuses of stacks.
func (w *world) injectFaults(stop, done chan struct{}) {
	defer close(done)
	for {
		select {
		case <-time.After(faultInterval):
		case <-stop:
			return
		}
		w.turns.take("beat")
		if !w.over() {
			w.checkStackStatuses()
		}
		if w.faultsEnded || w.over() {
			continue
		}
		now := w.now()
		for _, i := range w.EC2.Living() {
			cluster, stack := clusterOf(i.Tags["aws:autoscaling:groupName"])
			m := faults.Moment{Kind: faults.Instances, Cluster: cluster, Pool: strings.TrimPrefix(stack, names.PoolPrefix)}
			if cluster != "" && w.engine.Decide(now, m).Kind == faults.InstanceLost {
				w.record("instance %s of %s is lost", i.ID, i.Tags["aws:autoscaling:groupName"])
				w.observed.Lock()
				w.observed.lostInstances[i.ID], w.observed.lastInstanceLost = true, now
				w.observed.Unlock()
				_ = w.EC2.Terminate(i.ID, "Server.InternalError") // it is running
			}
		}
		for _, cluster := range w.clusters() {
			api := w.API(names.EKSCluster(cluster))
			if api == nil {
				continue
			}
			if strike := w.engine.Decide(now, faults.Moment{Kind: faults.Cluster, Cluster: cluster}); strike.Kind == faults.APIServerDown {
				w.record("the API server of %s is down for %s", cluster, strike.Delay)
				api.Down(strike.Delay)
			}
		}
	}
}
