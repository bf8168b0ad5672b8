package passes

// Which clusters a moved channel wakes, and what a failure on the way leaves for the next sweep.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// objects are a bucket of specs and one of state. The ETag of an object is its content; failing are the errors of calls, by name and key.
type objects struct {
	ChannelSpecs
	ChannelState
	content map[string]string
	failing map[string]error
	calls   []string
}

func (o *objects) call(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	o.calls = append(o.calls, call)
	return o.failing[call]
}

func (o *objects) List(_ context.Context, prefix string) (entries []store.Entry, err error) {
	for key := range o.content {
		if len(key) > len(prefix) && key[:len(prefix)] == prefix {
			entries = append(entries, store.Entry{Key: key})
		}
	}
	return entries, o.failing["list "+prefix]
}

func (o *objects) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	if err := o.failing["get "+key]; err != nil {
		return store.Object{}, err
	}
	body, found := o.content[key]
	if !found {
		return store.Object{}, store.ErrNotFound
	}
	return store.Object{Body: []byte(body), ETag: body}, nil
}

func (o *objects) GetUnless(ctx context.Context, key, etag string, limit int64) (store.Object, bool, error) {
	object, err := o.Get(ctx, key, limit)
	if err == nil && object.ETag == etag {
		return store.Object{}, false, nil
	}
	return object, err == nil, err
}

func (o *objects) GetJSON(ctx context.Context, key string, v any) (string, error) {
	object, err := o.Get(ctx, key, 0)
	if err != nil {
		return "", err
	}
	return object.ETag, json.Unmarshal(object.Body, v)
}

func (o *objects) Replace(_ context.Context, key string, body []byte, etag string) (string, error) {
	if err := o.call("write"); err != nil {
		return "", err
	}
	if !bytes.Equal([]byte(o.content[key]), []byte(etag)) {
		return "", store.ErrConflict
	}
	o.content[key] = string(body)
	return string(body), nil
}

func (o *objects) AddDue(_ context.Context, cluster string, _ time.Time) error {
	return o.call("wake %s", cluster)
}

// wokenClusters returns the clusters that were woken, by name.
func (o *objects) wokenClusters() (clusters []string) {
	for _, call := range o.calls {
		if len(call) > 5 && call[:5] == "wake " {
			clusters = append(clusters, call[5:])
		}
	}
	slices.Sort(clusters)
	return clusters
}

func channelsAt(stable, rapid, nodes string) string {
	text := "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec:\n"
	text += "  stable: " + stable + "\n  rapid: " + rapid + "\n"
	if nodes != "" {
		text += "  nodes: {\"1.36\": " + nodes + "}\n"
	}
	return text
}

func clusterOn(name, channel string) string {
	text := "apiVersion: drover.run/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + `}
spec:
  release: {name: r1}
  network: {cidr: 10.0.0.0/16, zones: [eu-central-1a, eu-central-1b], natGateways: Single}
  pools: [{name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}]
`
	if channel != "" {
		text += "  upgrade: {channel: " + channel + "}\n"
	}
	return text
}

// replacedChannels returns an account whose clusters were last woken for the channels before. after replaced them.
func replacedChannels(t *testing.T, before, after string) (*objects, Channels) {
	t.Helper()
	was, errs := api.ReadChannels(names.ReleaseSpec(api.ChannelsName), []byte(before), api.Options{})
	require.Nil(t, errs)
	known, err := json.Marshal(requestedChannels{ETag: before, Channels: was.Spec})
	require.NoError(t, err)
	o := &objects{failing: map[string]error{"get " + names.ClusterSpec(""): errors.New("no cluster")}, content: map[string]string{
		names.ReleaseSpec(api.ChannelsName): after, names.HandledChannels: string(known),
		names.ClusterSpec("steady"): clusterOn("steady", "Stable"), names.ClusterSpec("swift"): clusterOn("swift", "Rapid"),
		names.ClusterSpec("nodes"): clusterOn("nodes", "Nodes"), names.ClusterSpec("fixed"): clusterOn("fixed", ""),
		names.ClusterSpecs + "readme.txt": "no cluster",
	}}
	return o, Channels{Specs: o, State: o, Cache: &ChannelCache{}, Now: depsOf(&sweeptest.Account{}).Now}
}

func TestMovedChannelWakesClusters(t *testing.T) {
	channelsKey, before := names.ReleaseSpec(api.ChannelsName), channelsAt("r1", "r1", "r1")
	for name, test := range map[string]struct {
		after string
		given func(*objects)
		err   error
		woken []string
		// written reports whether the sweep recorded the channels. known reports whether a running function does not read them again.
		written, known bool
	}{
		"wakes clusters that follow it": {
			after: channelsAt("r2", "r1", "r1"), woken: []string{"steady"}, written: true, known: true,
		},
		"wakes clusters that follow another channel": {
			after: channelsAt("r1", "r2", "r1"), woken: []string{"swift"}, written: true, known: true,
		},
		"wakes clusters that follow releases of nodes": {
			after: channelsAt("r1", "r1", "r2"), woken: []string{"nodes"}, written: true, known: true,
		},
		"wakes none when no channel moved":              {after: before + "\n", written: true, known: true},
		"wakes none when the channels equal the record": {after: before, known: true},
		"wakes none when there are no channels":         {given: func(o *objects) { delete(o.content, channelsKey) }},
		"wakes none when the channels are too large": {
			given: func(o *objects) { o.failing["get "+channelsKey] = &store.TooLarge{} },
		},
		"wakes none when the channels are invalid": {after: "kind: Channels", known: true},
		"wakes none when the channels cannot be read": {
			given: func(o *objects) { o.failing["get "+channelsKey] = errThrottled }, err: errThrottled,
		},
		"wakes none when the record cannot be read": {
			after: channelsAt("r2", "r1", "r1"), given: func(o *objects) { o.failing["get "+names.HandledChannels] = errThrottled },
			err: errThrottled,
		},
		"wakes all that follow any channel when there is no record": {
			after: before, given: func(o *objects) { delete(o.content, names.HandledChannels) }, woken: []string{"nodes", "steady", "swift"},
			written: true, known: true,
		},
		"wakes them although another sweep wrote the record first": {
			after: channelsAt("r2", "r1", "r1"), given: func(o *objects) { o.failing["write"] = store.ErrConflict }, woken: []string{"steady"},
			known: true,
		},
		"wakes them again when the record could not be written": {
			after: channelsAt("r2", "r1", "r1"), given: func(o *objects) { o.failing["write"] = errThrottled }, err: errThrottled,
			woken: []string{"steady"},
		},
		"wakes all again when one could not be woken": {
			after: channelsAt("r2", "r2", "r1"), given: func(o *objects) { o.failing["wake steady"] = errThrottled }, err: errThrottled,
			woken: []string{"steady", "swift"},
		},
		"wakes all again when a spec could not be read": {
			after: channelsAt("r2", "r2", "r1"), given: func(o *objects) { o.failing["get "+names.ClusterSpec("steady")] = errThrottled },
			err: errThrottled, woken: []string{"swift"},
		},
		"wakes all later when specs could not be listed": {
			after: channelsAt("r2", "r2", "r1"), given: func(o *objects) { o.failing["list "+names.ClusterSpecs] = errThrottled }, err: errThrottled,
		},
		"wakes them although other specs are unusable": {
			after: channelsAt("r2", "r2", "r1"), given: func(o *objects) {
				o.failing["get "+names.ClusterSpec("steady")] = &store.TooLarge{}
				o.failing["get "+names.ClusterSpec("fixed")] = store.ErrNotFound
				o.content[names.ClusterSpec("nodes")] = "kind: Cluster"
			}, woken: []string{"swift"}, written: true, known: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, h := replacedChannels(t, before, test.after)
			if test.given != nil {
				test.given(o)
			}
			recorded := o.content[names.HandledChannels]
			err := h.Run(t.Context())
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.woken, o.wokenClusters())
			require.Equal(t, test.written, recorded != o.content[names.HandledChannels])
			require.Equal(t, test.known, h.Cache.get() == test.after && test.after != "")
			o.calls, o.failing = nil, map[string]error{}
			require.NoError(t, h.Run(t.Context()))
			if test.err == nil {
				require.Empty(t, o.wokenClusters(), "a channel wakes once")
			}
		})
	}
	t.Run("records nothing that is recorded", func(t *testing.T) {
		o, h := replacedChannels(t, before, before)
		require.NoError(t, h.Run(t.Context()))
		require.Empty(t, o.calls)
	})
	t.Run("reads nothing that it knows", func(t *testing.T) {
		o, h := replacedChannels(t, before, before)
		o.failing["get "+names.HandledChannels] = errors.New("read again")
		h.Cache.set(before)
		require.NoError(t, h.Run(t.Context()))
		require.Empty(t, o.calls)
	})
}
