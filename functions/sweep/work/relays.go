package work

import (
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// RelayCache holds the clusters that have a relay. The audit fills it.
type RelayCache struct {
	mu       sync.Mutex
	clusters []string
	read     time.Time
}

// Fill replaces the clusters by those of stacks, by cluster and stack.
func (c *RelayCache) Fill(stacks map[string]map[string]stack.Deployed, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters, c.read = nil, now
	for cluster, deployed := range stacks {
		if deployed[names.ControlPlane].API().Relayed {
			c.clusters = append(c.clusters, cluster)
		}
	}
	slices.Sort(c.clusters)
}

// Known returns the clusters, unless they were read too long ago.
func (c *RelayCache) Known(now time.Time) (clusters []string, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusters, !c.read.IsZero() && now.Sub(c.read) < backoff.AuditPeriod+time.Minute
}
