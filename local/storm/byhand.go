package storm

// What people, and Kubernetes, do in the account beside drover.

import (
	"context"
	"strings"

	"github.com/drover-run/drover/local/cloudformation"
	"github.com/drover-run/drover/shared/names"
)

// unstack deletes a stack as somebody at the console does. CloudFormation may refuse.
func (w *world) unstack(name string) {
	_, err := w.CloudFormation.DeleteStack(context.Background(), w.Admin(), &cloudformation.DeleteStackInput{StackName: name})
	if err != nil {
		w.tell("%s is not deleted: %v", name, err)
	}
}

// kubernetesMakes load balancers, volumes and network interfaces, where there is a network to make them in.
func (w *world) kubernetesMakes(cluster string) {
	stacks := w.Stacks(cluster)
	if !strings.HasSuffix(stacks[names.Network], "_COMPLETE") || !w.known.standing[cluster] || stacks[names.Network] == "DELETE_COMPLETE" {
		return
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
