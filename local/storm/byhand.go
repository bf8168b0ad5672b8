package storm

// What people, and Kubernetes, do in the account beside drover.

import (
	"context"
	"strings"
	"time"

	"github.com/drover-run/drover/local/cloudformation"
	"github.com/drover-run/drover/shared/names"
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

// found is how long after a stack was deleted by hand that is found, at the latest, when nothing goes wrong: an audit is due every
// quarter of an hour.
const found = 21 * time.Minute

// unfound says that a stack was deleted by hand, and that nobody may have seen it yet.
func (w *world) unfound(of string) bool {
	w.known.Lock()
	defer w.known.Unlock()
	for name, gone := range w.known.unstacked {
		if c, _ := clusterOf(name); c == of && (gone.IsZero() || time.Since(gone) < found) {
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
	for _, tagged := range w.Everything() {
		if tagged.Tags["elbv2.k8s.aws/cluster"] == names.EKSCluster(cluster) {
			return
		}
	}
	w.KubernetesMakes(cluster)
}

// left says that nothing is left of clusters that are gone.
func (w *world) left() {
	for arn, tagged := range w.Everything() {
		for _, cluster := range w.clusters() {
			if w.wishes[cluster] == nil && len(w.Stacks(cluster)) == 0 {
				mine := tagged.Tags[names.TagCluster] == cluster || tagged.Tags[names.OwnershipTag(cluster)] != "" ||
					tagged.Tags["elbv2.k8s.aws/cluster"] == names.EKSCluster(cluster) || tagged.Tags["cluster.k8s.amazonaws.com/name"] == names.EKSCluster(cluster)
				w.check(11, !mine, "%s is left of %s, which is deleted", arn, cluster)
			}
		}
	}
}
