package drainer

// The end of a deleted cluster's system pods. Their budgets cannot be satisfied once no node is left to run their
// replacements, and they are worth waiting for only as long as other pods need them: CoreDNS for names, the EBS
// driver to detach volumes. See ADR 12.

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
)

const (
	// servedPause is between two checks, each of which reads pods of the whole cluster.
	servedPause = 5 * time.Second
	// podsPage is how many pods are read at a time. The first that needs the system pods ends a check.
	podsPage = 500
)

// servesNothing says whether no pod of the cluster needs its system pods any more, and no volume is attached. If the API server does not
// say, they are still needed: the drain's timeout ends it.
func (d *operation) servesNothing(ctx context.Context) bool {
	attachments, _, err := d.allAttachments().list(ctx)
	if err != nil || len(attachments) > 0 {
		return false
	}
	for next := ""; ; {
		page, err := d.podsFrom(ctx, next)
		if err != nil {
			return false
		}
		for i := range page.Items {
			if drain.NeedsSystem(&page.Items[i]) {
				return false
			}
		}
		if next = page.Continue; next == "" {
			return true
		}
	}
}

func (d *operation) podsFrom(ctx context.Context, next string) (page corev1.PodList, err error) {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	err = d.cluster.Core.Get().Resource("pods").VersionedParams(&metav1.ListOptions{Limit: podsPage, Continue: next}, kube.Parameters).
		Do(ctx).Into(&page)
	return page, err
}
