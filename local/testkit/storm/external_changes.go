package storm

// Changes of the account outside drover, by operators and by Kubernetes.

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
	"github.com/drover-run/drover/shared/status"
)

// deleteStack deletes a stack as an operator does. CloudFormation may refuse.
func (w *world) deleteStack(name string) {
	cluster, stack := clusterOf(name)
	if _, exists := w.Stacks(cluster)[stack]; !exists {
		return
	}
	_, err := w.CloudFormation.DeleteStack(context.Background(), w.Admin(), &cloudformation.DeleteStackInput{StackName: name})
	if err != nil {
		w.record("%s is not deleted: %v", name, err)
		return
	}
	w.observed.Lock()
	defer w.observed.Unlock()
	w.observed.operatorChangeEnded[name] = time.Time{}
}

// deleteNode deletes the Node of one of a pool's instances, if enough are in service and the cluster has no node problem
// yet. The instance remains in service, but no pods run there.
func (w *world) deleteNode(cluster, pool string, which int) {
	api := w.API(names.EKSCluster(cluster))
	if api == nil || w.silentNode[cluster] != "" || w.nodeless(cluster) != "" {
		return
	}
	w.observed.Lock()
	serves := map[string]bool{}
	for _, i := range w.observed.groupViews[names.Group(cluster, pool)].Instances {
		serves[i.ID] = i.State == "InService"
	}
	w.observed.Unlock()
	for _, n := range api.Nodes() {
		if !serves[instanceOf(n)] {
			continue
		}
		if which--; which < 0 {
			// Recorded first, because observers see the deletion at once.
			w.observed.Lock()
			w.observed.lostInstances[instanceOf(n)], w.observed.nodelessInstance[cluster] = true, instanceOf(n)
			w.observed.Unlock()
			answer := w.DeleteNode(cluster, n.Name)
			if w.record("node %s is deleted: %d", n.Name, answer); answer != http.StatusOK {
				w.observed.Lock()
				delete(w.observed.lostInstances, instanceOf(n))
				delete(w.observed.nodelessInstance, cluster)
				w.observed.Unlock()
			}
			return
		}
	}
}

// nodeless returns the instance in service of a cluster whose Node was deleted, or "". The audit replaces it.
func (w *world) nodeless(cluster string) string {
	w.observed.Lock()
	defer w.observed.Unlock()
	for group, v := range w.observed.groupViews {
		if of, _ := clusterOf(group); of == cluster && slices.ContainsFunc(v.Instances, func(i scaling.InstanceView) bool {
			return i.ID == w.observed.nodelessInstance[cluster] && i.State == "InService"
		}) {
			return w.observed.nodelessInstance[cluster]
		}
	}
	return ""
}

// removeTag removes a stack's tags, as a stack update without them does. Network and control plane keep the tag that
// permits drover's role to change them: without it only operators could repair them.
func (w *world) removeTag(cluster, stack string) {
	name := names.Stack(cluster, stack)
	if _, exists := w.Stacks(cluster)[stack]; !exists {
		return
	}
	err := w.Retag(name, func(tags map[string]string) {
		keep := stack == names.Network || stack == names.ControlPlane
		maps.DeleteFunc(tags, func(key, _ string) bool { return !keep || key != names.TagCluster })
		tags["owner"] = "unknown"
	})
	if err != nil {
		w.record("%s is not updated: %v", name, err)
		return
	}
	w.affectedStacks(cluster)[stack] = true
	w.observed.Lock()
	defer w.observed.Unlock()
	w.observed.operatorChangeEnded[name] = time.Time{}
	w.observed.updatedByOperator[name] = true
}

// autoscale sets a pool's desired capacity to a share of its range, as an autoscaler does, independently of drover's
// plans.
func (w *world) autoscale(cluster, pool string, share float64) {
	group := names.Group(cluster, pool)
	v, exists := w.AutoScaling.View(group)
	if !exists {
		return
	}
	desired := v.Min + int(share*float64(v.Max-v.Min)+0.5)
	rests := stack.Settled(w.Stacks(cluster)[names.PoolStack(pool)])
	// A roll in flight restores the previous size, as CloudFormation does, and ends instances that Auto Scaling selects.
	// This is recorded first, because Auto Scaling begins at once.
	w.observed.Lock()
	least, rolling := w.observed.minInService[group]
	if rolling = rolling && !rests; rolling {
		delete(w.observed.minInService, group)
		w.observed.suspendedMin[group] = least
	}
	w.observed.Unlock()
	_, err := autoscaling.NewFromConfig(w.Config()).SetDesiredCapacity(context.Background(), &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: &group, DesiredCapacity: aws.Int32(int32(desired)), // #nosec G115 -- a few
	})
	w.observed.Lock()
	defer w.observed.Unlock()
	if err != nil {
		w.record("%s is not scaled to %d: %v", group, desired, err)
		if rolling {
			delete(w.observed.suspendedMin, group)
			w.observed.minInService[group] = least
		}
		return
	}
	w.record("%s is scaled from %d to %d", group, v.Desired, desired)
	w.observed.lastGrowth[group] = growth{time.Now(), max(0, desired-v.Desired)}
	if delete(w.observed.autoscalerDesired, group); rests { // between two changes of a roll there may be more room than in the spec
		w.observed.autoscalerDesired[group] = min(desired, w.maxSizeOf(cluster, pool))
	}
}

// limitDesired limits the autoscaler's choices to a new spec.
func (k *observations) limitDesired(spec *wish) {
	k.Lock()
	defer k.Unlock()
	for _, p := range spec.pools {
		if n, found := k.autoscalerDesired[names.Group(spec.name, p.name)]; found {
			k.autoscalerDesired[names.Group(spec.name, p.name)] = min(n, p.max)
		}
	}
}

// isProtectionChanging reports whether the protection in a cluster's newest spec is not deployed. If the spec is deleted now, the
// cluster may be kept or not. A spec with protection keeps the cluster in any case once the status reports it as
// accepted, planned or not. A spec that drover has not accepted promises nothing: one since the last planned spec applies.
func (w *world) isProtectionChanging(cluster string) bool {
	accepted, uploads := w.accepted(cluster), w.uploads[cluster]
	if w.protected[cluster] && accepted {
		return false
	}
	good := slices.IndexFunc(uploads, func(u upload) bool { return u.version != "" && u.version == w.Status(cluster).GoodVersion })
	differs := func(u upload) bool { return u.wish != nil && u.wish.protected != w.protected[cluster] }
	if !accepted && slices.ContainsFunc(uploads[max(good, 0):], differs) {
		return true
	}
	for _, s := range w.CloudFormation.Stacks() {
		if of, stack := clusterOf(s.StackName); of == cluster && (stack == names.Network || stack == names.ControlPlane) &&
			s.EnableTerminationProtection != w.protected[cluster] && !w.unguarded[cluster] {
			return true
		}
	}
	return w.observed.hasControlPlane[cluster] && w.Protected(names.EKSCluster(cluster)) != w.protected[cluster]
}

// accepted reports whether users can see in the status that drover accepted the newest spec.
func (w *world) accepted(cluster string) bool {
	s := w.Status(cluster)
	c := s.Condition(status.SpecAccepted)
	return s.GoodVersion == w.versions[cluster] || s.ObservedVersion == w.versions[cluster] && c != nil && c.Status == "True"
}

// maxDriftDetection is the longest time until the audit finds a stack that was deleted outside drover, without faults: audits run
// every 15 minutes.
const maxDriftDetection = 21 * time.Minute

// hasUndetectedDeletion reports whether a stack was deleted outside drover and the audit may not have found it yet. While faults occur this
// lasts as long as the stack is missing.
func (w *world) hasUndetectedDeletion(of string) bool {
	exists := w.Stacks(of)
	w.observed.Lock()
	defer w.observed.Unlock()
	for name, ended := range w.observed.operatorChangeEnded {
		c, stack := clusterOf(name)
		if c != of {
			continue
		}
		if ended.IsZero() || time.Since(ended) < maxDriftDetection || time.Since(w.faultsEndedAt) < maxDriftDetection ||
			!w.faultsEnded && exists[stack] == "" {
			return true
		}
	}
	return false
}

// createKubernetesResources creates load balancers, volumes and network interfaces, if a network exists and has none yet.
func (w *world) createKubernetesResources(cluster string) {
	if !strings.HasSuffix(w.Stacks(cluster)[names.Network], "_COMPLETE") || !w.observed.hasControlPlane[cluster] {
		return
	}
	for _, tagged := range w.AllResources() {
		if tagged.Tags["elbv2.k8s.aws/cluster"] == names.EKSCluster(cluster) {
			return
		}
	}
	w.KubernetesMakes(cluster)
}

// checkLeftovers checks that deleted clusters and stacks have no leftovers.
func (w *world) checkLeftovers() {
	exists := map[string]bool{}
	for _, stack := range w.CloudFormation.Stacks() {
		exists[stack.StackId] = true
	}
	for arn, tagged := range w.AllResources() {
		if of := tagged.Tags["aws:cloudformation:stack-id"]; of != "" {
			if !exists[of] && w.isHalfCreatedNetwork(of) {
				continue
			}
			w.check(11, exists[of], "%s is left of %s, which is deleted", arn, of)
		}
		for _, cluster := range w.clusters() {
			if w.desired[cluster] == nil && len(w.Stacks(cluster)) == 0 {
				mine := tagged.Tags[names.TagCluster] == cluster || tagged.Tags[names.OwnershipTag(cluster)] != "" ||
					tagged.Tags["elbv2.k8s.aws/cluster"] == names.EKSCluster(cluster) || tagged.Tags["cluster.k8s.amazonaws.com/name"] ==
					names.EKSCluster(cluster)
				w.check(11, !mine || w.isRetained(cluster, arn), "%s is left of %s, which is deleted", arn, cluster)
			}
		}
	}
}

// isRetained reports whether a status lists a volume as retained because the cluster's API did not answer before its deletion, so
// that the need of its data was unknown.
func (w *world) isRetained(cluster, arn string) bool {
	d := w.Status(cluster).Deletion
	_, volume, found := strings.Cut(arn, ":volume/")
	return found && d != nil && !d.RetainListed && slices.Contains(d.Retained, "volume "+volume)
}

// isHalfCreatedNetwork reports whether a stack was a network whose creation and rollback both failed: its deletion retains resources. See
// "What is not held" in docs/reliability.md.
func (w *world) isHalfCreatedNetwork(stack string) bool {
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
