package drainer

// The system pods of a deleted cluster. Their budgets cannot be satisfied once no node is left for their replacements. A
// drain waits for them only while other pods need them: CoreDNS for names, the EBS driver to detach volumes. See ADR 12.

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
)

const (
	// systemCheckPause is between two checks. Each reads the pods of the whole cluster.
	systemCheckPause = 5 * time.Second
	// podsPage is how many pods are read at a time. A check ends at the first pod that needs the system pods.
	podsPage = 500
)

// systemUnneeded reports whether no pod of the cluster needs the system pods, and no volume is attached. If the API server
// does not respond, they count as needed: the drain's timeout ends the wait.
func (c *drainRun) systemUnneeded(ctx context.Context) bool {
	attachments, _, err := c.allAttachments().list(ctx)
	if err != nil || len(attachments) > 0 {
		return false
	}
	for next := ""; ; {
		page, err := c.podsFrom(ctx, next)
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

func (c *drainRun) podsFrom(ctx context.Context, next string) (page corev1.PodList, err error) {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	err = c.cluster.Core.Get().Resource("pods").VersionedParams(&metav1.ListOptions{Limit: podsPage, Continue: next}, kube.Parameters).
		Do(ctx).Into(&page)
	return page, err
}
