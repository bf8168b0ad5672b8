package storm

// Deletions of clusters whose protection or control plane was removed outside drover: neither their data nor a protected
// cluster may be deleted.

import (
	"strings"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/shared/names"
)

// disableTerminationProtection disables the termination protection of a cluster's network and, if it exists, of its
// control plane. The accepted specs still protect them.
func (w *world) disableTerminationProtection(cluster string) {
	for _, stack := range []string{names.Network, names.ControlPlane} {
		if _, found := w.Stacks(cluster)[stack]; !found {
			continue
		}
		in := &cloudformation.UpdateTerminationProtectionInput{StackName: names.Stack(cluster, stack)}
		if _, err := w.CloudFormation.UpdateTerminationProtection(w.t.Context(), w.Admin(), in); err != nil {
			w.record("termination protection of %s stays: %v", in.StackName, err)
			continue
		}
		w.unguarded[cluster] = true
		w.affectedStacks(cluster)[stack] = true
	}
}

// deleteUnprotectedControlPlane deletes the control plane of a cluster that may be deleted. For a protected cluster the EKS cluster
// and its network would remain.
func (w *world) deleteUnprotectedControlPlane(cluster string) {
	if w.observed.hasControlPlane[cluster] && !w.Protected(names.EKSCluster(cluster)) && !w.guarded(cluster) {
		w.deleteLiveStack(cluster, names.ControlPlane)
	}
}

// seeVolumeDeletion checks that drover read from the cluster's API which volumes to retain before it deletes one. The
// name of the session is the cluster's.
func (w *world) seeVolumeDeletion(call endpoint.Call) {
	cluster, ours := strings.CutPrefix(call.Caller[strings.LastIndex(call.Caller, "/")+1:], names.EKSCluster(""))
	if !ours {
		return
	}
	w.observed.Lock()
	surveyed := w.observed.volumesListed[cluster]
	w.observed.Unlock()
	w.check(11, surveyed, "a volume of %s is deleted, and its API was never asked which to retain", cluster)
}
