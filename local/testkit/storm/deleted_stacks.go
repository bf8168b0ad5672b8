package storm

// Clusters whose network or control plane stack an operator deleted. drover creates nothing while other stacks exist,
// and the status names the missing stack. Then operators delete the cluster.

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// deleteLiveStack disables the protection of a stack that holds a live cluster and deletes it. CloudFormation may refuse.
func (w *world) deleteLiveStack(cluster, stack string) {
	name := names.Stack(cluster, stack)
	if _, exists := w.Stacks(cluster)[stack]; !exists || !w.observed.hasControlPlane[cluster] {
		return
	}
	if w.out.Seed >= firstRecent { // the others have recorded traces
		w.CheckTokens()
	}
	ctx := w.t.Context()
	_, err := w.CloudFormation.UpdateTerminationProtection(ctx, w.Admin(), &cloudformation.UpdateTerminationProtectionInput{StackName: name})
	if err == nil {
		_, err = w.CloudFormation.DeleteStack(ctx, w.Admin(), &cloudformation.DeleteStackInput{StackName: name})
	}
	if err != nil {
		w.record("%s is not deleted: %v", name, err)
		return
	}
	w.affectedStacks(cluster)[all] = true
	w.deletedStacks[cluster] = stack
	w.observed.Lock()
	defer w.observed.Unlock()
	w.observed.operatorChangeEnded[name], w.observed.deletionAllowed[name] = time.Time{}, true
}

// missingStack returns the stack that a live cluster lost, or "".
func (w *world) missingStack(cluster string) string {
	stack := w.deletedStacks[cluster]
	if status, exists := w.Stacks(cluster)[stack]; stack == "" || exists && status != "DELETE_FAILED" || !w.hasEKSCluster(cluster) {
		return ""
	}
	return stack
}

// hasEKSCluster reports whether the EKS cluster exists.
func (w *world) hasEKSCluster(cluster string) bool {
	_, err := w.EKS.DescribeCluster(w.t.Context(), w.Admin(), eks.NamedInput{Name: names.EKSCluster(cluster)})
	return err == nil
}

// deleteOrphaned deletes a cluster that lost a stack, step by step, as the runbook describes, once the status reports it: the
// protection, the spec, and the retained resources.
func (w *world) deleteOrphaned(cluster string) {
	if w.deletedStacks[cluster] == "" || w.converging(cluster) {
		return
	}
	s, want := w.Status(cluster), w.desired[cluster]
	switch stack := w.missingStack(cluster); {
	case want == nil && s.Phase == status.Deleted && s.Deletion != nil && len(w.Stacks(cluster)) == 0:
		// Without a control plane it is unknown whether their data is needed.
		var volumes []string
		for _, kept := range s.Deletion.Retained {
			volumes = append(volumes, strings.TrimPrefix(kept, "volume "))
		}
		w.DeleteRetained(cluster, volumes...)
	case want == nil && s.Phase == status.Failed && reasonOf(s) == "LeftoversRemain":
		if len(w.DeleteRetained(cluster)) == 0 {
			w.record("%s: what was retained is deleted", cluster)
			w.Converge(cluster)
		}
	case want == nil || stack == "" || s.PlannedVersion != w.versions[cluster] || !says(s, names.Stack(cluster, stack), stack):
	case want.protected:
		spec := *want
		spec.protected = false
		w.do(act{cluster: cluster, what: "unprotect", spec: &spec})
	case w.guarded(cluster): // until drover has disabled the protection
	default:
		w.do(act{cluster: cluster, what: "abandon the cluster", remove: true})
	}
}

// guarded reports whether a stack of a cluster has termination protection.
func (w *world) guarded(cluster string) bool {
	return slices.ContainsFunc(w.CloudFormation.Stacks(), func(s cloudformation.Stack) bool {
		of, _ := clusterOf(s.StackName)
		return of == cluster && s.EnableTerminationProtection
	})
}

func reasonOf(s *status.Status) string {
	if c := s.Condition(status.Converged); c != nil {
		return c.Reason
	}
	return ""
}

// messages returns all messages of a cluster's status.
func messages(s *status.Status) string {
	text := s.Message
	for _, c := range s.Conditions {
		text += "\n" + c.Message
	}
	return text
}

// says reports whether a status reports that a stack is missing or partly deleted.
func says(s *status.Status, name, stack string) bool {
	return slices.ContainsFunc([]string{
		"stack " + stack + " is missing", "stack " + name + ": absent", "stack " + name + " is DELETE_FAILED",
	}, func(words string) bool {
		return strings.Contains(messages(s), words)
	})
}
