package drainer

// What a drain writes to the node itself: one patch that cordons it, takes it out of load balancers and holds off the
// cluster autoscaler; and one that gives back what a node that stays should not keep. What others did to it stays theirs.

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
	// autoscalerHold keeps the cluster autoscaler from choosing the node while it is drained.
	// See the FAQ of the cluster autoscaler, "How can I prevent Cluster Autoscaler from scaling down a particular node?":
	// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
	autoscalerHold = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// annotationBegan says when the node's drain began, whoever goes on with it: its time counts from when it was cordoned first.
	// annotationSince says since when it is cordoned and out of load balancers, annotationHolds which of the three are drover's own doing.
	annotationBegan = "drover.run/drain-began"
	annotationSince = kube.AnnotationDraining
	annotationHolds = "drover.run/drain-holds"
	// annotationSaid is what autoscalerHold was before, if people had said otherwise.
	annotationSaid = "drover.run/autoscaler-hold-before"
	// annotationContact says when a call ended that had reached the cluster for long enough to end the drain, had its time been over.
	annotationContact = "drover.run/drain-contact"
	// annotationEmpty says since when no pods are left, annotationWaits what the drain waits for.
	annotationEmpty = "drover.run/pods-gone-since"
	annotationWaits = "drover.run/drain-waits-for"
)

// What a drain does to its node, in annotationHolds.
const (
	cordoned   = "cordon"
	excluded   = "load-balancers"
	autoscaler = "autoscaler"
)

// held is a node that is cordoned.
type held struct {
	uid types.UID
	// began is when its drain did, since when it is out of load balancers, contact when it was seen to last.
	began, since, contact time.Time
	// waits is what the last call of Drain noted.
	waits string
}

// hold cordons a node, excludes it from load balancers and holds the autoscaler off, by one patch; not again when that is
// done already, so that the time since then counts; a node that is drained already keeps the time of whoever began, and
// one that was given back meanwhile that of whoever goes on; zero is now. It tries again until ctx ends.
func (c *Nodes) hold(ctx context.Context, name string, began time.Time) (held, error) {
	var h held
	err := c.patiently(ctx, func(ctx context.Context) error {
		var node corev1.Node
		if err := c.cluster.Core.Get().Resource("nodes").Name(name).Do(ctx).Into(&node); err != nil {
			return err
		}
		h = held{uid: node.UID, waits: node.Annotations[annotationWaits], began: began}
		if began.IsZero() {
			h.began = time.Now()
		}
		if at, err := time.Parse(time.RFC3339Nano, node.Annotations[annotationBegan]); err == nil && at.Before(h.began) {
			h.began = at
		}
		if at, err := time.Parse(time.RFC3339Nano, node.Annotations[annotationContact]); err == nil && at.After(h.began) {
			h.contact = at
		} else {
			h.contact = h.began
		}
		_, isExcluded := node.Labels[corev1.LabelNodeExcludeBalancers]
		said, isSaid := node.Annotations[autoscalerHold]
		isHeld := said == "true" // the autoscaler heeds nothing else
		since, err := time.Parse(time.RFC3339Nano, node.Annotations[annotationSince])
		if h.since = since; err != nil || !node.Spec.Unschedulable || !isExcluded {
			h.since = time.Now()
		} else if isHeld {
			return nil
		}
		ours := holds(&node)
		for hold, present := range map[string]bool{cordoned: node.Spec.Unschedulable, excluded: isExcluded, autoscaler: isHeld} {
			if !present && !slices.Contains(ours, hold) {
				ours = append(ours, hold)
			}
		}
		slices.Sort(ours)
		annotations := map[string]any{
			annotationBegan: h.began.UTC().Format(time.RFC3339Nano), annotationSince: h.since.UTC().Format(time.RFC3339Nano), annotationEmpty: nil,
			annotationHolds: strings.Join(ours, ","), autoscalerHold: "true",
		}
		if isSaid && !isHeld {
			annotations[annotationSaid] = said
		}
		return c.patch(ctx, name, node.UID, map[string]any{
			"metadata": map[string]any{"annotations": annotations, "labels": map[string]any{corev1.LabelNodeExcludeBalancers: "true"}},
			"spec":     map[string]any{"unschedulable": true},
		})
	})
	return h, err
}

// holds lists what a drain did to a node.
func holds(node *corev1.Node) []string {
	return strings.FieldsFunc(node.Annotations[annotationHolds], func(r rune) bool { return r == ',' })
}

// Release gives a node back that stays. One that was drained stays cordoned and out of load balancers, as whoever wanted it empty
// wants it, and may be scaled in; one whose drain was given up is as it was before.
func (c *Nodes) Release(ctx context.Context, name string, drained bool) error {
	return c.patiently(ctx, func(ctx context.Context) error {
		var node corev1.Node
		if err := c.cluster.Core.Get().Resource("nodes").Name(name).Do(ctx).Into(&node); err != nil {
			return err
		}
		annotations := map[string]any{}
		for _, key := range []string{
			annotationBegan, annotationSince, annotationHolds, annotationSaid, annotationContact, annotationEmpty, annotationWaits,
		} {
			if _, ok := node.Annotations[key]; ok {
				annotations[key] = nil
			}
		}
		if len(annotations) == 0 {
			return nil
		}
		ours, labels, patch := holds(&node), map[string]any{}, map[string]any{}
		if slices.Contains(ours, autoscaler) && node.Annotations[autoscalerHold] == "true" {
			annotations[autoscalerHold] = nil
			if said, ok := node.Annotations[annotationSaid]; ok {
				annotations[autoscalerHold] = said
			}
		}
		if !drained && slices.Contains(ours, excluded) {
			labels[corev1.LabelNodeExcludeBalancers] = nil
		}
		if !drained && slices.Contains(ours, cordoned) {
			patch["spec"] = map[string]any{"unschedulable": nil}
		}
		patch["metadata"] = map[string]any{"annotations": annotations, "labels": labels}
		return c.patch(ctx, name, node.UID, patch)
	})
}

// lostAfter is how long nobody may have contact at the least, beyond twice the longest time between two calls, before that is an outage.
const lostAfter = 30 * time.Second

// lost says whether nobody was in contact for so long that what the drain could not do meanwhile is to be tried before it is ended.
func (h held) lost(now time.Time) bool {
	return now.Sub(h.contact) > lostAfter+2*backoff.DrainCalls.Pause(h.contact.Sub(h.began))
}

// note on the node what its drain waits for, where whoever looks at the node finds it; and, for the next call, that this one had contact.
func (d *operation) note(ctx context.Context) {
	annotations := map[string]any{}
	if text := d.report.Summary(); text != d.held.waits {
		annotations[annotationWaits] = text
	}
	if now := time.Now(); d.known && d.task.Ends() && d.task.Tried(now, d.held.since) {
		annotations[annotationContact] = now.UTC().Format(time.RFC3339Nano)
	}
	if len(annotations) == 0 {
		return
	}
	if err := d.annotate(context.WithoutCancel(ctx), annotations); err != nil && d.report.Message == "" {
		d.report.Message = err.Error()
	}
}

func (d *operation) annotate(ctx context.Context, annotations map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout/2)
	defer cancel()
	return d.patch(ctx, d.node, d.held.uid, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// emptied is since when no pods are left on the node: now, if nobody noted it before.
func (d *operation) emptied(ctx context.Context) (time.Time, error) {
	var node corev1.Node
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	if err := d.cluster.Core.Get().Resource("nodes").Name(d.node).Do(ctx).Into(&node); err != nil {
		return time.Time{}, fmt.Errorf("reading node %s: %w", d.node, err)
	}
	if since, err := time.Parse(time.RFC3339Nano, node.Annotations[annotationEmpty]); err == nil {
		return since, nil
	}
	now := time.Now()
	return now, d.patch(ctx, d.node, d.held.uid, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotationEmpty: now.UTC().Format(time.RFC3339Nano)}},
	})
}

// awaitDetached watches until one of the attachments is gone, the time is over, or the watch ends.
func (d *operation) awaitDetached(ctx context.Context, s source[storagev1.VolumeAttachment], version string, attached map[types.UID]bool,
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

// patch the node if it is still the one that was read.
func (c *Nodes) patch(ctx context.Context, name string, uid types.UID, patch map[string]any) error {
	patch["metadata"].(map[string]any)["uid"] = uid
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if err := c.cluster.Core.Patch(types.MergePatchType).Resource("nodes").Name(name).Body(body).Do(ctx).Error(); err != nil {
		return fmt.Errorf("patching node %s: %w", name, err)
	}
	return nil
}

// patiently calls until it succeeds, the node is not there, or ctx ends.
func (c *Nodes) patiently(ctx context.Context, call func(context.Context) error) error {
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
