package drainer

// Pods that no node can run, while a drain waits for them: a budget allows no eviction before the replacement of the last
// evicted pod is Ready.

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
)

const (
	// maxPendingRead limits the pods that are read to find those of a drain's budgets.
	maxPendingRead = 500
	// maxWhy limits the scheduler's message, in bytes: it has a clause for each kind of node.
	maxWhy = 300
)

// blockingBudgets returns the budgets that block pods in the last decision.
func (c *drainRun) blockingBudgets() (budgets []*drain.Budget) {
	seen := map[drain.Key]bool{}
	for _, blocked := range c.report.Blocked {
		for _, name := range blocked.Budgets {
			if key := drain.Key(name); c.view.Budgets[key] != nil && !seen[key] {
				seen[key] = true
				budgets = append(budgets, c.view.Budgets[key])
			}
		}
	}
	return budgets
}

// pending lists the pods under these budgets that the scheduler could not place, with its message. Without budgets it
// makes no call. A failed call returns none: the next slice calls again.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions
func (c *drainRun) pending(ctx context.Context, budgets []*drain.Budget) (found []events.PendingPod) {
	if len(budgets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), kube.CallTimeout/2)
	defer cancel()
	var list corev1.PodList
	err := c.cluster.Core.Get().Resource("pods").VersionedParams(&metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "").String(), Limit: maxPendingRead,
	}, kube.Parameters).Do(ctx).Into(&list)
	if err != nil {
		return nil
	}
	for i := range list.Items {
		pod := drain.NewPod(&list.Items[i])
		why := unschedulable(&list.Items[i])
		if why == "" || !pod.Deleted.IsZero() || len(found) == events.MaxPending {
			continue
		}
		for _, budget := range budgets {
			if budget.Covers(pod) {
				found = append(found, events.PendingPod{Pod: pod.ID(), Why: why})
				break
			}
		}
	}
	return found
}

// unschedulable returns the message of the scheduler on a pod that it could not place, or "".
func unschedulable(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			if len(c.Message) > maxWhy {
				return c.Message[:maxWhy] + "…"
			}
			return c.Message
		}
	}
	return ""
}
