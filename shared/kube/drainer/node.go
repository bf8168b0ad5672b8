package drainer

// What a drain writes to the node. One patch cordons it, excludes it from load balancers and keeps the cluster autoscaler
// away. Another patch reverts that on a node that stays. Settings that others made are kept.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/kube"
)

const (
	// annotationScaleDownDisabled keeps the cluster autoscaler from choosing the node while it is being drained.
	// See the FAQ of the cluster autoscaler, "How can I prevent Cluster Autoscaler from scaling down a particular node?":
	// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
	annotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// annotationBegan is when the drain of the node began, with the first cordon. annotationSince is since when the node is cordoned and
	// excluded from load balancers. annotationSettings lists which of the three settings drover made.
	annotationBegan    = "drover.run/drain-began"
	annotationSince    = kube.AnnotationDraining
	annotationSettings = "drover.run/drain-settings"
	// annotationScaleDownBefore is the value that annotationScaleDownDisabled had before the drain, if it had another one.
	annotationScaleDownBefore = "drover.run/scale-down-disabled-before"
	// annotationContact is the end of the last call that tried evictions long enough to apply onTimeout, if its time had come: see
	// drain.Task.TriedLongEnough.
	annotationContact = "drover.run/drain-contact"
	// annotationEmpty is since when no pods are left, annotationWaits is what the drain waits for.
	annotationEmpty = "drover.run/pods-gone-since"
	annotationWaits = "drover.run/drain-waits-for"
)

// Settings in annotationSettings: a field, a label and an annotation of the node, by their names in Kubernetes.
const (
	cordoned   = "unschedulable"
	excluded   = "exclude-from-external-load-balancers"
	autoscaler = "scale-down-disabled"
)

// cordonState is a node that is cordoned.
type cordonState struct {
	uid types.UID
	// began is when the drain began. since is when the node was cordoned and taken out of load balancers. contact is annotationContact.
	began, since, contact time.Time
	// waits is annotationWaits.
	waits string
}

// cordonNode cordons a node, excludes it from load balancers and keeps the autoscaler away, with one patch. It writes nothing if
// that is done already, so the time of the first patch counts. The start of the drain is the time
// recorded on the node. Without one it is began, and if that is zero, now. cordonNode retries until ctx ends.
func (d *Drainer) cordonNode(ctx context.Context, name string, began time.Time) (cordonState, error) {
	var cordon cordonState
	err := d.retry(ctx, func(ctx context.Context) error {
		var node corev1.Node
		if err := d.cluster.Core.Get().Resource("nodes").Name(name).Do(ctx).Into(&node); err != nil {
			return err
		}
		cordon = cordonState{uid: node.UID, waits: node.Annotations[annotationWaits], began: began}
		if began.IsZero() {
			cordon.began = time.Now()
		}
		if at, err := time.Parse(time.RFC3339Nano, node.Annotations[annotationBegan]); err == nil && at.Before(cordon.began) {
			cordon.began = at
		}
		if at, err := time.Parse(time.RFC3339Nano, node.Annotations[annotationContact]); err == nil && at.After(cordon.began) {
			cordon.contact = at
		} else {
			cordon.contact = cordon.began
		}
		_, isExcluded := node.Labels[corev1.LabelNodeExcludeBalancers]
		value, hasValue := node.Annotations[annotationScaleDownDisabled]
		isExempt := value == "true" // the autoscaler ignores other values
		since, err := time.Parse(time.RFC3339Nano, node.Annotations[annotationSince])
		if cordon.since = since; err != nil || !node.Spec.Unschedulable || !isExcluded {
			cordon.since = time.Now()
		} else if isExempt {
			return nil
		}
		ours := ownSettings(&node)
		for setting, present := range map[string]bool{cordoned: node.Spec.Unschedulable, excluded: isExcluded, autoscaler: isExempt} {
			if !present && !slices.Contains(ours, setting) {
				ours = append(ours, setting)
			}
		}
		slices.Sort(ours)
		annotations := map[string]any{
			annotationBegan: cordon.began.UTC().Format(time.RFC3339Nano), annotationSince: cordon.since.UTC().Format(time.RFC3339Nano),
			annotationEmpty: nil, annotationSettings: strings.Join(ours, ","), annotationScaleDownDisabled: "true",
		}
		if hasValue && !isExempt {
			annotations[annotationScaleDownBefore] = value
		}
		return d.patch(ctx, name, node.UID, map[string]any{
			"metadata": map[string]any{"annotations": annotations, "labels": map[string]any{corev1.LabelNodeExcludeBalancers: "true"}},
			"spec":     map[string]any{"unschedulable": true},
		})
	})
	return cordon, err
}

// ownSettings lists the settings of a node that drover made.
func ownSettings(node *corev1.Node) []string {
	return strings.FieldsFunc(node.Annotations[annotationSettings], func(r rune) bool { return r == ',' })
}

// Restore reverts the settings of a drain on a node that stays. A drained node stays cordoned and out of load balancers,
// and the autoscaler may remove it. After an aborted drain the node has its earlier settings.
func (d *Drainer) Restore(ctx context.Context, name string, drained bool) error {
	return d.retry(ctx, func(ctx context.Context) error {
		var node corev1.Node
		if err := d.cluster.Core.Get().Resource("nodes").Name(name).Do(ctx).Into(&node); err != nil {
			return err
		}
		annotations := map[string]any{}
		for _, key := range []string{
			annotationBegan, annotationSince, annotationSettings, annotationScaleDownBefore, annotationContact, annotationEmpty, annotationWaits,
		} {
			if _, ok := node.Annotations[key]; ok {
				annotations[key] = nil
			}
		}
		if len(annotations) == 0 {
			return nil
		}
		ours, labels, patch := ownSettings(&node), map[string]any{}, map[string]any{}
		if slices.Contains(ours, autoscaler) && node.Annotations[annotationScaleDownDisabled] == "true" {
			annotations[annotationScaleDownDisabled] = nil
			if value, ok := node.Annotations[annotationScaleDownBefore]; ok {
				annotations[annotationScaleDownDisabled] = value
			}
		}
		if !drained && slices.Contains(ours, excluded) {
			labels[corev1.LabelNodeExcludeBalancers] = nil
		}
		if !drained && slices.Contains(ours, cordoned) {
			patch["spec"] = map[string]any{"unschedulable": nil}
		}
		patch["metadata"] = map[string]any{"annotations": annotations, "labels": labels}
		return d.patch(ctx, name, node.UID, patch)
	})
}

// minOutage is the least time without contact that counts as an outage, in addition to twice the longest pause between
// calls.
const minOutage = 30 * time.Second

// isOutage reports whether no call had contact for so long that the drain must retry its requests before its timeout may
// end it.
func (h cordonState) isOutage(now time.Time) bool {
	return now.Sub(h.contact) > minOutage+2*backoff.DrainCalls.Pause(h.contact.Sub(h.began))
}

// note writes to the node what its drain waits for, and, for the next call, that this call had contact.
func (c *drainRun) note(ctx context.Context) {
	annotations := map[string]any{}
	if text := c.report.Summary(); text != c.cordon.waits {
		annotations[annotationWaits] = text
	}
	if now := time.Now(); c.synced && c.task.Ends() && c.task.TriedLongEnough(now, c.cordon.since) {
		annotations[annotationContact] = now.UTC().Format(time.RFC3339Nano)
	}
	if len(annotations) == 0 {
		return
	}
	if err := c.annotate(context.WithoutCancel(ctx), annotations); err != nil && c.report.Message == "" {
		c.report.Message = err.Error()
	}
}

func (c *drainRun) annotate(ctx context.Context, annotations map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout/2)
	defer cancel()
	return c.patch(ctx, c.node, c.cordon.uid, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// emptySince returns since when no pods are left on the node. The first call records the current time on the node.
func (c *drainRun) emptySince(ctx context.Context) (time.Time, error) {
	var node corev1.Node
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	if err := c.cluster.Core.Get().Resource("nodes").Name(c.node).Do(ctx).Into(&node); err != nil {
		return time.Time{}, fmt.Errorf("reading node %s: %w", c.node, err)
	}
	if since, err := time.Parse(time.RFC3339Nano, node.Annotations[annotationEmpty]); err == nil {
		return since, nil
	}
	now := time.Now()
	return now, c.patch(ctx, c.node, c.cordon.uid, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotationEmpty: now.UTC().Format(time.RFC3339Nano)}},
	})
}

// awaitDetached watches until one of the attachments is deleted, the time is over, or the watch ends.
func (c *drainRun) awaitDetached(ctx context.Context, s source[storagev1.VolumeAttachment], version string, attached map[types.UID]bool,
	left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	w, err := s.watch(ctx, version)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if object, ok := event.Object.(*storagev1.VolumeAttachment); ok && attached[object.UID] && event.Type == "DELETED" {
			return nil
		}
	}
	return nil
}

// patch changes the node if its UID is the one that was read.
func (d *Drainer) patch(ctx context.Context, name string, uid types.UID, patch map[string]any) error {
	patch["metadata"].(map[string]any)["uid"] = uid
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if err := d.cluster.Core.Patch(types.MergePatchType).Resource("nodes").Name(name).Body(body).Do(ctx).Error(); err != nil {
		return fmt.Errorf("patching node %s: %w", name, err)
	}
	return nil
}

// retry calls until the call succeeds, the node does not exist, or ctx ends.
func (d *Drainer) retry(ctx context.Context, call func(context.Context) error) error {
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		within, cancel := context.WithTimeout(ctx, kube.CallTimeout)
		err := call(within)
		cancel()
		if err == nil || apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
