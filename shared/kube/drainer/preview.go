package drainer

// The input of a drain, for dry runs. It lists objects, and changes nothing.

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// Preview is a node and the view that its drain would start with.
type Preview struct {
	Node string
	// Pool is "" if the node belongs to no pool. Instance is an ID.
	Pool, Instance string
	Cordoned       bool
	View           drain.View
}

// Preview reads one node, or all nodes of a pool if node is "". It omits nodes that do not exist.
func (d *Drainer) Preview(ctx context.Context, pool, node string) ([]Preview, error) {
	options := metav1.ListOptions{LabelSelector: names.LabelPool + "=" + pool}
	if node != "" {
		options = metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", node).String()}
	}
	var list corev1.NodeList
	// This timeout covers only the list of nodes: the pods of hundreds of nodes are listed node by node.
	listing, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	if err := d.cluster.Core.Get().Resource("nodes").VersionedParams(&options, kube.Parameters).Do(listing).Into(&list); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	budgets, _, err := d.allBudgets().list(ctx)
	if err != nil {
		return nil, err
	}
	var out []Preview
	for i := range list.Items {
		n := &list.Items[i]
		p := Preview{
			Node: n.Name, Pool: n.Labels[names.LabelPool], Instance: n.Spec.ProviderID[strings.LastIndex(n.Spec.ProviderID, "/")+1:],
			Cordoned: n.Spec.Unschedulable,
			View:     drain.View{Pods: map[types.UID]*drain.Pod{}, Budgets: map[drain.Key]*drain.Budget{}},
		}
		if since, err := time.Parse(time.RFC3339Nano, n.Annotations[annotationSince]); err == nil && p.Cordoned {
			p.View.Cordoned = since
		}
		pods, _, err := d.podsOf(n.Name).list(ctx)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			p.View.Pods[pods[i].UID] = drain.NewPod(&pods[i])
		}
		for i := range budgets {
			b := drain.NewBudget(&budgets[i])
			p.View.Budgets[b.Key] = b
		}
		out = append(out, p)
	}
	return out, nil
}
