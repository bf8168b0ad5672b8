package handler

// Channels: when one moves, the clusters that follow it are woken, and planning decides. A tick at which none moved costs one conditional
// read.

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/store"
)

// seen is what the channels were at when clusters were last woken: the object names.Channels.
type seen struct {
	// ETag of releases/channels.yaml, empty when it was absent or could not be used.
	ETag     string           `json:"etag"`
	Channels api.ChannelsSpec `json:"channels"`
}

// memory is what a running function knows of the channels, so that it need not read what is in the bucket.
type memory struct {
	mu   sync.Mutex
	etag string
}

func (m *memory) get() string { m.mu.Lock(); defer m.mu.Unlock(); return m.etag }

func (m *memory) set(etag string) { m.mu.Lock(); defer m.mu.Unlock(); m.etag = etag }

// channels wakes the clusters whose channel moved. What was woken is written down afterwards: a sweep that dies on the way wakes them
// once more.
func (h *Handler) channels(ctx context.Context) error {
	key := names.ReleaseSpec(api.ChannelsName)
	object, changed, err := h.Specs.GetUnless(ctx, key, h.known.get(), api.MaxFile)
	var unusable *specs.Unusable
	err = specs.Explain(err)
	switch {
	case errors.Is(err, specs.ErrAbsent):
		return nil
	case errors.As(err, &unusable):
		logging.From(ctx).Warn("the channels cannot be used", "error", err.Error())
		return nil
	case err != nil || !changed:
		return err
	}
	var before seen
	etag, err := h.State.GetJSON(ctx, names.Channels, &before)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if before.ETag == object.ETag {
		h.known.set(object.ETag)
		return nil
	}
	channels, errs := api.ReadChannels(key, object.Body, api.Options{})
	if errs != nil {
		logging.From(ctx).Warn("the channels cannot be used", "error", errs.Error())
		h.known.set(object.ETag) // until they change
		return nil
	}
	if err := h.wake(ctx, moved(before.Channels, channels.Spec)); err != nil {
		return err
	}
	body, err := json.Marshal(seen{ETag: object.ETag, Channels: channels.Spec})
	if err != nil {
		return err
	}
	if _, err = h.State.Replace(ctx, names.Channels, body, etag); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	h.known.set(object.ETag)
	return nil
}

// moved are the channels that are at another release than before. Nodes counts as one: which release it has for a cluster is the
// cluster's own.
func moved(before, after api.ChannelsSpec) map[api.Channel]bool {
	return map[api.Channel]bool{
		api.ChannelStable: before.Stable != after.Stable, api.ChannelRapid: before.Rapid != after.Rapid,
		api.ChannelNodes: !maps.Equal(before.Nodes, after.Nodes),
	}
}

// wake the clusters that follow a channel which moved. The spec of every cluster is read for that.
func (h *Handler) wake(ctx context.Context, moved map[api.Channel]bool) error {
	uploads, err := h.Specs.List(ctx, names.ClusterSpecs)
	if err != nil {
		return err
	}
	var clusters []string
	for _, spec := range uploads {
		if cluster, ok := names.ClusterOfKey(spec.Key); ok {
			clusters = append(clusters, cluster)
		}
	}
	return each(max(1, h.Parallel), clusters, func(cluster string) error {
		object, err := specs.Upload(ctx, h.Specs, names.ClusterSpec(cluster))
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
		logging.From(ctx).Info("its channel moved", "cluster", cluster, "channel", spec.Spec.Upgrade.Channel)
		return h.State.AddDue(ctx, cluster, h.Now())
	})
}
