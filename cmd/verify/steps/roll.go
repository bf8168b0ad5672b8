package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/kube"
)

// budgetedApp is a workload of two pods. Its disruption budget keeps one of them.
const budgetedApp = "budgeted"

// putBudgeted creates the workload and waits until both pods are available.
func (t *Target) putBudgeted(ctx context.Context, api *kube.Cluster) error {
	if err := putNamespace(ctx, api); err != nil {
		return err
	}
	err := ensureObject(ctx, api, budgets, `{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
		"metadata": {"name": "`+budgetedApp+`", "namespace": "`+namespace+`"},
		"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "`+budgetedApp+`"}}}}`)
	if err != nil {
		return err
	}
	err = ensureObject(ctx, api, deployments, `{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": {"name": "`+budgetedApp+`", "namespace": "`+namespace+`"},
		"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "`+budgetedApp+`"}}, "template": {
			"metadata": {"labels": {"app": "`+budgetedApp+`"}},
			"spec": {"containers": [{"name": "main", "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.10"}]}}}}`)
	if err != nil {
		return err
	}
	return t.until(ctx, 2*time.Second, "the pods of the workload", func() (bool, error) {
		available, err := availablePods(ctx, api)
		return available == 2, err
	})
}

// removeBudgeted deletes the workload and its budget, on which the deletion of the cluster would wait. It does so after an interrupt too.
func (t *Target) removeBudgeted(ctx context.Context, cluster string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	api, err := t.open(ctx, cluster)
	if err != nil {
		return err
	}
	for _, resource := range []schema.GroupVersionResource{deployments, budgets} {
		err := api.Dynamic.Resource(resource).Namespace(namespace).Delete(ctx, budgetedApp, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting the workload: %w", err)
		}
	}
	return nil
}

// availablePods returns the number of available pods of the workload.
func availablePods(ctx context.Context, api *kube.Cluster) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	object, err := api.Dynamic.Resource(deployments).Namespace(namespace).Get(ctx, budgetedApp, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("reading the workload: %w", err)
	}
	available, _, err := unstructured.NestedInt64(object.Object, "status", "availableReplicas")
	return available, err
}

// roll replaces the nodes of a cluster under the workload's budget.
func (t *Target) roll(ctx context.Context, log *runner.Log, cluster string) error {
	return t.underBudget(ctx, log, cluster, func() error {
		_, err := t.drover(ctx, log, "roll", cluster, poolName, "--watch")
		return err
	})
}

// underBudget carries out a change that replaces all nodes, and fails if a node stayed or if the budget was violated.
func (t *Target) underBudget(ctx context.Context, log *runner.Log, cluster string, change func() error) (err error) {
	api, err := t.open(ctx, cluster)
	if err != nil {
		return err
	}
	if err := t.putBudgeted(ctx, api); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.removeBudgeted(ctx, cluster)) }()
	before, err := nodeNames(ctx, api)
	if err != nil {
		return err
	}
	observer := t.observe(ctx, cluster)
	var after []string
	if err = change(); err == nil {
		after, err = t.waitForNewNodes(ctx, cluster, before)
	}
	least, count, lost := observer.end()
	if err != nil {
		return err
	}
	log.Found("node %s was replaced by %s", strings.Join(before, ", "), strings.Join(after, ", "))
	switch {
	case count == 0:
		return errors.New("the workload could not be observed during the change")
	case least < 1:
		return fmt.Errorf("the disruption budget of one pod was violated: %d pods were available", least)
	}
	log.Found("at least %d of 2 pods were available in %d observations, and the budget requires 1; the API server did not answer %d",
		least, count, lost)
	return nil
}

// nodeDeletionLimit is how long Kubernetes may take to delete the Node object of an instance whose drain has ended. The instance terminates
// first. Then the node lifecycle controller of the cloud provider finds that it no longer exists:
// https://kubernetes.io/docs/concepts/architecture/cloud-controller/#node-controller
const nodeDeletionLimit = 5 * time.Minute

// waitForNewNodes waits until none of the nodes of before is left, and returns the nodes of the pool. It fails if one is left after
// nodeDeletionLimit. It lists again if the API server does not answer.
func (t *Target) waitForNewNodes(ctx context.Context, cluster string, before []string) (after []string, err error) {
	limited, cancel := context.WithTimeout(ctx, nodeDeletionLimit)
	defer cancel()
	var left []string
	var failure error
	err = t.until(limited, 3*time.Second, "the deletion of replaced nodes", func() (bool, error) {
		if after, failure = t.nodesNow(limited, cluster); failure != nil {
			return false, nil
		}
		left = slices.DeleteFunc(slices.Clone(before), func(name string) bool { return !slices.Contains(after, name) })
		return len(left) == 0, nil
	})
	switch {
	case err == nil:
		return after, nil
	case len(left) > 0 && ctx.Err() == nil:
		return nil, fmt.Errorf("node %s was not replaced: its Node object still exists after %v", strings.Join(left, ", "), nodeDeletionLimit)
	}
	return nil, errors.Join(err, failure)
}

// nodesNow lists the names of the nodes with a new connection, because a change may have replaced the API server.
func (t *Target) nodesNow(ctx context.Context, cluster string) ([]string, error) {
	api, err := t.open(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return nodeNames(ctx, api)
}

func nodeNames(ctx context.Context, api *kube.Cluster) (found []string, err error) {
	nodes, err := api.PoolNodes(ctx, poolName)
	for _, node := range nodes {
		found = append(found, node.Name)
	}
	return found, err
}
