package storm

// Clusters that lose the stack of their network or of their control plane to somebody's hand. Nothing is made beside
// what is left, and the status says what is missing; then people delete the cluster.

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// lose a stack that holds a cluster which is there: somebody takes its protection off and deletes it. CloudFormation may refuse.
func (w *world) lose(cluster, stack string) {
	name := names.Stack(cluster, stack)
	if _, there := w.Stacks(cluster)[stack]; !there || !w.known.standing[cluster] {
		return
	}
	ctx := w.t.Context()
	_, err := w.CloudFormation.UpdateTerminationProtection(ctx, w.Admin(), &cloudformation.UpdateTerminationProtectionInput{StackName: name})
	if err == nil {
		_, err = w.CloudFormation.DeleteStack(ctx, w.Admin(), &cloudformation.DeleteStackInput{StackName: name})
	}
	if err != nil {
		w.tell("%s is not deleted: %v", name, err)
		return
	}
	w.touched(cluster)[all] = true
	w.lost[cluster] = stack
	w.known.Lock()
	defer w.known.Unlock()
	w.known.unstacked[name], w.known.going[name] = time.Time{}, true
}

// bereft is the stack that a cluster lost though it lives; "" is none.
func (w *world) bereft(cluster string) string {
	stack := w.lost[cluster]
	if is, there := w.Stacks(cluster)[stack]; stack == "" || there && is != "DELETE_FAILED" || !w.lives(cluster) {
		return ""
	}
	return stack
}

// lives says whether the EKS cluster is there.
func (w *world) lives(cluster string) bool {
	_, err := w.EKS.DescribeCluster(w.t.Context(), w.Admin(), eks.NamedInput{Name: names.EKSCluster(cluster)})
	return err == nil
}

// giveUp a cluster that lost a stack, step by step, as the runbook says, once the status says so: its protection, its
// spec, and what was kept.
func (w *world) giveUp(cluster string) {
	if w.lost[cluster] == "" || w.converging(cluster) {
		return
	}
	s, want := w.Status(cluster), w.wishes[cluster]
	switch stack := w.bereft(cluster); {
	case want == nil && s.Phase == status.Deleted && s.Deletion != nil && len(w.Stacks(cluster)) == 0:
		// Without a control plane nobody can tell whether their data is needed.
		var volumes []string
		for _, kept := range s.Deletion.Kept {
			volumes = append(volumes, strings.TrimPrefix(kept, "volume "))
		}
		w.DeleteRetained(cluster, volumes...)
	case want == nil && s.Phase == status.Failed && reasonOf(s) == "LeftoversRemain":
		if len(w.DeleteRetained(cluster)) == 0 {
			w.tell("%s: what was kept is gone", cluster)
			w.Converge(cluster)
		}
	case want == nil || stack == "" || s.SpecVersion != w.versions[cluster] || !says(s, names.Stack(cluster, stack), stack):
	case want.protected:
		spec := *want
		spec.protected = false
		w.do(act{cluster: cluster, what: "unprotect", spec: &spec})
	case w.guarded(cluster): // until drover has taken the protection off
	default:
		w.do(act{cluster: cluster, what: "give up", remove: true})
	}
}

// guarded says whether a stack of a cluster has termination protection.
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

// told is all that a status tells people of a cluster.
func told(s *status.Status) string {
	text := s.Message
	for _, c := range s.Conditions {
		text += "\n" + c.Message
	}
	return text
}

// says whether a status tells that a stack is missing, or half deleted.
func says(s *status.Status, name, stack string) bool {
	return slices.ContainsFunc([]string{
		"stack " + stack + " is missing", "stack " + name + ": absent", "stack " + name + " is DELETE_FAILED",
	}, func(words string) bool {
		return strings.Contains(told(s), words)
	})
}
