package passes

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/store"
)

// Channels requests a plan for the clusters whose channel moved to another release. Planning decides what they do. The sweep and the audit
// both run it. If no channel moved, it costs one conditional read.
type Channels struct {
	Specs ChannelSpecs
	State ChannelState
	// Cache is kept between sweeps.
	Cache *ChannelCache
	// Parallel is how many clusters are handled at the same time.
	Parallel int
	Now      func() time.Time
}

// ChannelSpecs reads the channels and the specs that follow them: a subset of store.Objects.
type ChannelSpecs interface {
	work.SpecLister
	GetUnless(ctx context.Context, key, etag string, limit int64) (object store.Object, changed bool, err error)
}

// ChannelState holds the handled channels and what is due: a subset of store.State.
type ChannelState interface {
	GetJSON(ctx context.Context, key string, v any) (etag string, err error)
	Replace(ctx context.Context, key string, body []byte, etag string) (string, error)
	AddDue(ctx context.Context, cluster string, at time.Time) error
}

// requestedChannels is the content of the object names.HandledChannels: the channels for which plans were requested last.
type requestedChannels struct {
	// ETag of releases/channels.yaml; empty if it was absent or invalid.
	ETag     string           `json:"etag"`
	Channels api.ChannelsSpec `json:"channels"`
}

// ChannelCache holds the ETag of the channels file that was handled last. While the function lives, an unchanged file needs no other read.
type ChannelCache struct {
	mu   sync.Mutex
	etag string
}

func (c *ChannelCache) get() string { c.mu.Lock(); defer c.mu.Unlock(); return c.etag }

func (c *ChannelCache) set(etag string) { c.mu.Lock(); defer c.mu.Unlock(); c.etag = etag }

// Run records the channels after it has requested the plans. If the function dies in between, the next sweep requests them again.
func (p Channels) Run(ctx context.Context) error {
	key := names.ReleaseSpec(api.ChannelsName)
	object, changed, err := p.Specs.GetUnless(ctx, key, p.Cache.get(), api.MaxFile)
	var unusable *specs.Unusable
	err = specs.Explain(err)
	switch {
	case errors.Is(err, specs.ErrAbsent):
		return nil // without channels no cluster moves
	case errors.As(err, &unusable):
		logging.From(ctx).Warn("channels invalid", "error", err.Error())
		return nil
	case err != nil || !changed:
		return err
	}
	var before requestedChannels
	etag, err := p.State.GetJSON(ctx, names.HandledChannels, &before)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if before.ETag == object.ETag {
		p.Cache.set(object.ETag)
		return nil
	}
	channels, errs := api.ReadChannels(key, object.Body, api.Options{})
	if errs != nil {
		logging.From(ctx).Warn("channels invalid", "error", errs.Error())
		p.Cache.set(object.ETag) // until the file changes
		return nil
	}
	if err := p.requestPlans(ctx, movedChannels(before.Channels, channels.Spec)); err != nil {
		return err
	}
	body, err := json.Marshal(requestedChannels{ETag: object.ETag, Channels: channels.Spec})
	if err != nil {
		return err
	}
	if _, err = p.State.Replace(ctx, names.HandledChannels, body, etag); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	p.Cache.set(object.ETag)
	return nil
}

// movedChannels are the channels whose release changed. All releases of the channel Nodes count as one, because the cluster's version
// decides which applies.
func movedChannels(before, after api.ChannelsSpec) map[api.Channel]bool {
	return map[api.Channel]bool{
		api.ChannelStable: before.Stable != after.Stable, api.ChannelRapid: before.Rapid != after.Rapid,
		api.ChannelNodes: !maps.Equal(before.Nodes, after.Nodes),
	}
}

// requestPlans requests a plan for each cluster that follows a moved channel. It reads the spec of every cluster.
func (p Channels) requestPlans(ctx context.Context, moved map[api.Channel]bool) error {
	uploads, err := p.Specs.List(ctx, names.ClusterSpecs)
	if err != nil {
		return err
	}
	var clusters []string
	for _, spec := range uploads {
		if cluster, ok := names.ClusterOfKey(spec.Key); ok {
			clusters = append(clusters, cluster)
		}
	}
	return work.ForEach(p.Parallel, clusters, func(cluster string) error {
		object, err := specs.Upload(ctx, p.Specs, names.ClusterSpec(cluster))
		if specs.Missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		spec, errs := api.ReadCluster("", object.Body, api.Options{})
		if errs != nil || !moved[spec.Spec.Upgrade.Channel] {
			return nil
		}
		logging.From(ctx).Info("channel moved", "cluster", cluster, "channel", spec.Spec.Upgrade.Channel)
		return p.State.AddDue(ctx, cluster, p.Now())
	})
}
