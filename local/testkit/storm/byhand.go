package storm

// What people, and Kubernetes, do in the account beside drover.

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	scaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// unstack deletes a stack as somebody at the console does. CloudFormation may refuse.
func (w *world) unstack(name string) {
	cluster, stack := clusterOf(name)
	if _, there := w.Stacks(cluster)[stack]; !there {
		return
	}
	_, err := w.CloudFormation.DeleteStack(context.Background(), w.Admin(), &cloudformation.DeleteStackInput{StackName: name})
	if err != nil {
		w.tell("%s is not deleted: %v", name, err)
		return
	}
	w.known.Lock()
	defer w.known.Unlock()
	w.known.unstacked[name] = time.Time{}
}

// unnode deletes the Node of one of a pool's instances, if it has that many that serve and none of the cluster ails
// already: the instance serves on, and nothing runs there any more.
func (w *world) unnode(cluster, pool string, which int) {
	api := w.API(names.EKSCluster(cluster))
	if api == nil || w.silent[cluster] != "" || w.nodeless(cluster) != "" {
		return
	}
	w.known.Lock()
	serves := map[string]bool{}
	for _, i := range w.known.views[names.Group(cluster, pool)].Instances {
		serves[i.ID] = i.State == "InService"
	}
	w.known.Unlock()
	for _, n := range api.Nodes() {
		if !serves[instanceOf(n)] {
			continue
		}
		if which--; which < 0 {
			// Known before it is done: who watches sees it at once.
			w.known.Lock()
			w.known.lost[instanceOf(n)], w.known.nodeless[cluster] = true, instanceOf(n)
			w.known.Unlock()
			answer := w.DeleteNode(cluster, n.Name)
			if w.tell("node %s is deleted: %d", n.Name, answer); answer != http.StatusOK {
				w.known.Lock()
				delete(w.known.lost, instanceOf(n))
				delete(w.known.nodeless, cluster)
				w.known.Unlock()
			}
			return
		}
	}
}

// nodeless says which instance of a cluster serves on without the node that somebody deleted. The audit replaces it.
func (w *world) nodeless(cluster string) string {
	w.known.Lock()
	defer w.known.Unlock()
	for group, v := range w.known.views {
		if of, _ := clusterOf(group); of == cluster && slices.ContainsFunc(v.Instances, func(i scaling.InstanceView) bool {
			return i.ID == w.known.nodeless[cluster] && i.State == "InService"
		}) {
			return w.known.nodeless[cluster]
		}
	}
	return ""
}

// untag takes a stack's tags away, as somebody does who updates it without them. Network and control plane keep the
// one by which drover's role may touch them: without it only people can mend them.
func (w *world) untag(cluster, stack string) {
	name := names.Stack(cluster, stack)
	if _, there := w.Stacks(cluster)[stack]; !there {
		return
	}
	err := w.Retag(name, func(tags map[string]string) {
		keep := stack == names.Network || stack == names.ControlPlane
		maps.DeleteFunc(tags, func(key, _ string) bool { return !keep || key != names.TagCluster })
		tags["owner"] = "nobody"
	})
	if err != nil {
		w.tell("%s is not updated: %v", name, err)
		return
	}
	w.touched(cluster)[stack] = true
	w.known.Lock()
	defer w.known.Unlock()
	w.known.unstacked[name] = time.Time{}
	w.known.byHand[name] = true
}

// autoscale a pool to a share of what it may grow by, as an autoscaler does, which knows no plans of drover's.
func (w *world) autoscale(cluster, pool string, share float64) {
	group := names.Group(cluster, pool)
	v, there := w.AutoScaling.View(group)
	if !there {
		return
	}
	desired := v.Min + int(share*float64(v.Max-v.Min)+0.5)
	rests := stack.Settled(w.Stacks(cluster)[names.PoolStack(pool)])
	// Who rolls it meanwhile has it be what it was before, as CloudFormation does, and ends instances for that,
	// whichever Auto Scaling chooses. That is known before it is done: Auto Scaling begins at once.
	w.known.Lock()
	least, rolling := w.known.rolls[group]
	if rolling = rolling && !rests; rolling {
		delete(w.known.rolls, group)
		w.known.scaled[group] = least
	}
	w.known.Unlock()
	_, err := autoscaling.NewFromConfig(w.Config()).SetDesiredCapacity(context.Background(), &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: &group, DesiredCapacity: aws.Int32(int32(desired)), // #nosec G115 -- a few
	})
	w.known.Lock()
	defer w.known.Unlock()
	if err != nil {
		w.tell("%s is not scaled to %d: %v", group, desired, err)
		if rolling {
			delete(w.known.scaled, group)
			w.known.rolls[group] = least
		}
		return
	}
	w.tell("%s is scaled from %d to %d", group, v.Desired, desired)
	w.known.grown[group] = growth{time.Now(), max(0, desired-v.Desired)}
	if delete(w.known.chosen, group); rests { // between two changes of a roll there may be more room than the spec has
		w.known.chosen[group] = min(desired, w.mostOf(cluster, pool))
	}
}

// bound what autoscalers chose by a new spec.
func (k *known) bound(spec *wish) {
	k.Lock()
	defer k.Unlock()
	for _, p := range spec.pools {
		if n, is := k.chosen[names.Group(spec.name, p.name)]; is {
			k.chosen[names.Group(spec.name, p.name)] = min(n, p.max)
		}
	}
}

// turnsProtection reports whether a cluster whose spec is deleted now may be kept or not: what the newest spec says of protection is not
// deployed. A protected spec that was accepted keeps the cluster in any case.
func (w *world) turnsProtection(cluster string) bool {
	if w.protected[cluster] && w.Status(cluster).GoodVersion == w.versions[cluster] {
		return false
	}
	for _, s := range w.CloudFormation.Stacks() {
		if of, stack := clusterOf(s.StackName); of == cluster && (stack == names.Network || stack == names.ControlPlane) &&
			s.EnableTerminationProtection != w.protected[cluster] && !w.unguarded[cluster] {
			return true
		}
	}
	return w.known.standing[cluster] && w.Protected(names.EKSCluster(cluster)) != w.protected[cluster]
}

// found is how long after a stack was deleted by hand that is found, at the latest, when nothing goes wrong: an audit is due every
// quarter of an hour.
const found = 21 * time.Minute

// unfound says that a stack was deleted by hand, and that nobody may have seen it yet: in bad weather, for as long as it is gone.
func (w *world) unfound(of string) bool {
	there := w.Stacks(of)
	w.known.Lock()
	defer w.known.Unlock()
	for name, gone := range w.known.unstacked {
		c, stack := clusterOf(name)
		if c != of {
			continue
		}
		if gone.IsZero() || time.Since(gone) < found || time.Since(w.calmed) < found || !w.fine && there[stack] == "" {
			return true
		}
	}
	return false
}

// kubernetesMakes load balancers, volumes and network interfaces, where there is a network to make them in and it has none yet.
func (w *world) kubernetesMakes(cluster string) {
	if !strings.HasSuffix(w.Stacks(cluster)[names.Network], "_COMPLETE") || !w.known.standing[cluster] {
		return
	}
	for _, tagged := range w.AllResources() {
		if tagged.Tags["elbv2.k8s.aws/cluster"] == names.EKSCluster(cluster) {
			return
		}
	}
	w.KubernetesMakes(cluster)
}

// left says that nothing is left of clusters and stacks that are gone.
func (w *world) left() {
	there := map[string]bool{}
	for _, stack := range w.CloudFormation.Stacks() {
		there[stack.StackId] = true
	}
	for arn, tagged := range w.AllResources() {
		if of := tagged.Tags["aws:cloudformation:stack-id"]; of != "" {
			if !there[of] && w.halfMade(of) {
				continue
			}
			w.check(11, there[of], "%s is left of %s, which is gone", arn, of)
		}
		for _, cluster := range w.clusters() {
			if w.wishes[cluster] == nil && len(w.Stacks(cluster)) == 0 {
				mine := tagged.Tags[names.TagCluster] == cluster || tagged.Tags[names.OwnershipTag(cluster)] != "" ||
					tagged.Tags["elbv2.k8s.aws/cluster"] == names.EKSCluster(cluster) || tagged.Tags["cluster.k8s.amazonaws.com/name"] ==
					names.EKSCluster(cluster)
				w.check(11, !mine || w.kept(cluster, arn), "%s is left of %s, which is deleted", arn, cluster)
			}
		}
	}
}

// kept says whether a status names a volume as kept, because the cluster's API did not answer when it was deleted:
// nobody could tell whether it is needed.
func (w *world) kept(cluster, arn string) bool {
	d := w.Status(cluster).Deletion
	_, volume, is := strings.Cut(arn, ":volume/")
	return is && d != nil && !d.Surveyed && slices.Contains(d.Kept, "volume "+volume)
}

// halfMade says whether a stack was a network whose creation failed, and taking it back as well: deleting that retains. See "What is not
// held" in docs/reliability.md.
func (w *world) halfMade(stack string) bool {
	in := &cloudformation.StackPageInput{StackName: stack}
	for {
		out, err := w.CloudFormation.DescribeStackEvents(w.t.Context(), w.Admin(), in)
		if err != nil {
			return false
		}
		if slices.ContainsFunc(out.StackEvents, func(e cloudformation.StackEvent) bool {
			return strings.HasSuffix(e.StackName, "-"+names.Network) && e.PhysicalResourceId == e.StackId && e.ResourceStatus == "ROLLBACK_FAILED"
		}) {
			return true
		}
		if in.NextToken = out.NextToken; in.NextToken == "" {
			return false
		}
	}
}
