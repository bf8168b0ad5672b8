package workload

// Workloads: Deployments, StatefulSets, DaemonSets and single pods, each with at most one budget.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drover-run/drover/local/kubernetes"
)

// Kind of a workload.
type Kind string

// The kinds.
const (
	Deployment  Kind = "Deployment"
	StatefulSet Kind = "StatefulSet"
	DaemonSet   Kind = "DaemonSet"
	// Pods have no controller that replaces them.
	Pods Kind = "Pods"
)

// Workload to run.
type Workload struct {
	// Namespace is created if needed.
	Namespace, Name string
	Kind            Kind
	// Replicas, except for a DaemonSet.
	Replicas int
	// MaxUnavailable or MinAvailable of its disruption budget, a number or a percentage such as "10%". If both are empty
	// there is no budget.
	MaxUnavailable, MinAvailable string
	// ReadyAfter is the time until its pods are Ready, EndsAfter the time until they end, at most Grace.
	ReadyAfter, EndsAfter time.Duration
	// Grace period in whole seconds. 0 means Kubernetes' default.
	Grace time.Duration
	// EmptyDir gives its pods data on their nodes.
	EmptyDir bool
}

// nameLabel is a label of all objects of a workload.
const nameLabel = "app.kubernetes.io/name"

// MustKeep returns the number of replicas that its budget keeps healthy, or 0 without a budget. Like the disruption
// controller it rounds percentages up.
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/#rounding-logic-when-specifying-percentages
func (w Workload) MustKeep() (int, error) {
	switch {
	case w.MinAvailable != "":
		return scaledValue(w.MinAvailable, w.Replicas)
	case w.MaxUnavailable != "":
		out, err := scaledValue(w.MaxUnavailable, w.Replicas)
		return max(0, w.Replicas-out), err
	}
	return 0, nil
}

func scaledValue(value string, of int) (int, error) {
	digits, percent := strings.CutSuffix(value, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is neither a number nor a percentage", value)
	}
	if percent {
		return int(math.Ceil(float64(n) * float64(of) / 100)), nil
	}
	return n, nil
}

// Run deploys workloads and waits until all replicas are healthy and their budgets are up to date. Then it resets the
// watcher's least counts.
func (c *Cluster) Run(ctx context.Context, watcher *Watcher, workloads ...Workload) error {
	if err := c.Deploy(ctx, workloads...); err != nil {
		return err
	}
	if err := watcher.Wait(ctx, "the workloads", func() bool { return watcher.Settled(workloads...) }); err != nil {
		return err
	}
	if err := c.Budgeted(ctx, workloads...); err != nil {
		return err
	}
	watcher.Forget()
	return nil
}

// Deploy creates workloads without waiting for them.
func (c *Cluster) Deploy(ctx context.Context, workloads ...Workload) error {
	for _, w := range workloads {
		if err := c.deploy(ctx, w); err != nil {
			return fmt.Errorf("deploy %s/%s: %w", w.Namespace, w.Name, err)
		}
	}
	return nil
}

func (c *Cluster) deploy(ctx context.Context, w Workload) error {
	if _, err := w.MustKeep(); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	if _, err := c.core.Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	meta := metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace, Labels: map[string]string{nameLabel: w.Name}}
	selector := &metav1.LabelSelector{MatchLabels: meta.Labels}
	if w.MaxUnavailable != "" || w.MinAvailable != "" {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
		if w.MinAvailable != "" {
			value := intstr.Parse(w.MinAvailable)
			budget.Spec.MinAvailable = &value
		} else {
			value := intstr.Parse(w.MaxUnavailable)
			budget.Spec.MaxUnavailable = &value
		}
		if _, err := c.policy.PodDisruptionBudgets(w.Namespace).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	replicas, apps := int32(w.Replicas), c.apps
	var err error
	switch w.Kind {
	case Deployment:
		_, err = apps.Deployments(w.Namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: w.template()},
		}, metav1.CreateOptions{})
	case StatefulSet:
		_, err = apps.StatefulSets(w.Namespace).Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: w.template(), ServiceName: w.Name},
		}, metav1.CreateOptions{})
	case DaemonSet:
		_, err = apps.DaemonSets(w.Namespace).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: w.template()},
		}, metav1.CreateOptions{})
	case Pods:
		var group errgroup.Group
		group.SetLimit(8)
		for range w.Replicas {
			template := w.template()
			// Names are generated, as by controllers, because KWOK mistakes a pod for an earlier one of the same name for a
			// while.
			template.GenerateName = w.Name + "-"
			group.Go(func() error {
				_, err := c.core.Pods(w.Namespace).Create(ctx, &corev1.Pod{
					ObjectMeta: template.ObjectMeta, Spec: template.Spec,
				}, metav1.CreateOptions{})
				return err
			})
		}
		err = group.Wait()
	default:
		err = fmt.Errorf("there is no kind of workload %q", w.Kind)
	}
	return err
}

func (w Workload) template() corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{nameLabel: w.Name}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}},
	}
	for annotation, d := range map[string]time.Duration{kubernetes.ReadyAfter: w.ReadyAfter, kubernetes.EndsAfter: w.EndsAfter} {
		if d > 0 {
			template.Annotations[annotation] = strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
		}
	}
	if w.Grace > 0 {
		grace := int64(w.Grace / time.Second)
		template.Spec.TerminationGracePeriodSeconds = &grace
	}
	if w.EmptyDir {
		template.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	return template
}

// Remove deletes workloads with their budgets and pods immediately. The namespaces remain.
func (c *Cluster) Remove(ctx context.Context, workloads ...Workload) error {
	now, background := int64(0), metav1.DeletePropagationBackground
	for _, w := range workloads {
		var err error
		switch w.Kind {
		case Deployment:
			err = c.apps.Deployments(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		case StatefulSet:
			err = c.apps.StatefulSets(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		case DaemonSet:
			err = c.apps.DaemonSets(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		}
		budget := c.policy.PodDisruptionBudgets(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{})
		for _, err := range []error{err, budget} {
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("remove %s/%s: %w", w.Namespace, w.Name, err)
			}
		}
	}
	for _, w := range workloads {
		// A Deployment's pods end when its ReplicaSet is collected. Until then it may create others.
		if err := until(ctx, 100*time.Millisecond, "the end of "+w.Namespace+"/"+w.Name, func() (bool, error) {
			selection := metav1.ListOptions{LabelSelector: nameLabel + "=" + w.Name}
			pods := c.core.Pods(w.Namespace)
			if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, selection); err != nil {
				return false, err
			}
			remaining, err := pods.List(ctx, selection)
			if err != nil {
				return false, err
			}
			sets, err := c.apps.ReplicaSets(w.Namespace).List(ctx, selection)
			return err == nil && len(remaining.Items)+len(sets.Items) == 0, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Budgeted waits until the budgets of the workloads count all replicas as healthy. It watches instead of polling,
// because polling would take processor time from what is measured.
func (c *Cluster) Budgeted(ctx context.Context, workloads ...Workload) error {
	for _, w := range workloads {
		if w.MaxUnavailable == "" && w.MinAvailable == "" {
			continue
		}
		keep, err := w.MustKeep()
		if err != nil {
			return err
		}
		for whole := false; !whole; {
			if whole, err = c.waitForBudget(ctx, w, keep); err != nil {
				return fmt.Errorf("waiting for the budget of %s: %w", w.Name, err)
			}
		}
	}
	return nil
}

// waitForBudget watches the budget of a workload until it counts all replicas as healthy, or the API server ends the watch.
func (c *Cluster) waitForBudget(ctx context.Context, w Workload, keep int) (whole bool, err error) {
	watched, err := c.policy.PodDisruptionBudgets(w.Namespace).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: w.Name}))
	if err != nil {
		return false, err
	}
	defer watched.Stop()
	for event := range watched.ResultChan() {
		b, ok := event.Object.(*policyv1.PodDisruptionBudget)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		if event.Type == watch.Deleted {
			return false, errors.New("it was deleted")
		}
		if b.Status.ExpectedPods == int32(w.Replicas) && int(b.Status.DesiredHealthy) != keep {
			return false, errors.New("the disruption controller keeps " + strconv.Itoa(int(b.Status.DesiredHealthy)) + " healthy, not " +
				strconv.Itoa(keep))
		}
		if b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == int32(w.Replicas) &&
			int(b.Status.DisruptionsAllowed) == w.Replicas-keep && len(b.Status.DisruptedPods) == 0 {
			return true, nil
		}
	}
	return false, ctx.Err()
}
