// Package handler looks at releases and channels as they are uploaded: whether everything that they name is there. It tells people; it
// changes no cluster, and none waits for it.
package handler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/templates"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State tells people: a subset of store.State.
type State interface {
	SetVerdict(ctx context.Context, name string, verdict status.ReleaseStatus) error
	UpdateUnread(ctx context.Context, specs store.Lister) error
}

// Versions is what EKS has: a subset of eks.Versions.
type Versions interface {
	Catalogue(ctx context.Context) ([]preflight.Version, error)
	Compat(ctx context.Context, addons []string) (upgrade.Compat, error)
}

// Images are those of EC2: a subset of ec2.Capacity.
type Images interface {
	Images(ctx context.Context, ids []string) (map[string]preflight.Image, error)
}

// Handler looks at releases.
type Handler struct {
	Specs    Specs
	State    State
	Versions Versions
	Images   Images
	Now      func() time.Time
}

// rounds bounds how often an object that changes while it is looked at is read again.
const rounds = 5

// Handle takes one S3 event. What the event says is only that something happened to the key.
func (h *Handler) Handle(ctx context.Context, in events.Event[events.Object]) (struct{}, error) {
	var done struct{}
	name, ok := names.ReleaseOfKey(in.Detail.Object.Key)
	if !ok {
		logging.From(ctx).Warn("unread upload", "key", in.Detail.Object.Key)
		return done, h.State.UpdateUnread(ctx, h.Specs)
	}
	return done, h.Look(ctx, name)
}

// Look at a release, or the channels, as they are now. The channels are looked at again with a release that they name: they may have come
// before it.
func (h *Handler) Look(ctx context.Context, name string) error {
	err := h.judge(ctx, name)
	if name == api.ChannelsName {
		return err
	}
	named, failed := h.named(ctx, name)
	if named {
		failed = h.judge(ctx, api.ChannelsName)
	}
	return errors.Join(err, failed)
}

// named says whether the channels name a release. Those that are not there, or cannot be read, are looked at whatever they name.
func (h *Handler) named(ctx context.Context, name string) (bool, error) {
	object, err := h.read(ctx, api.ChannelsName)
	if err != nil {
		return false, err
	}
	channels, errs := api.ReadChannels(names.ReleaseSpec(api.ChannelsName), object.Body, api.Options{Name: api.ChannelsName})
	return errs != nil || slices.Contains(slices.Collect(maps.Values(channels.Spec.Releases())), name), nil
}

// judge what is there now, and write the verdict. A faster copy of this function may have looked at a newer upload, and ours then
// overwritten its verdict: it looks until what it wrote is about what is there.
func (h *Handler) judge(ctx context.Context, name string) error {
	for range rounds {
		verdict, err := h.look(ctx, name)
		if err != nil {
			return err
		}
		if err := h.State.SetVerdict(ctx, name, verdict); errors.Is(err, store.ErrConflict) {
			continue
		} else if err != nil {
			return err
		}
		if now, err := h.read(ctx, name); err != nil || now.Version == verdict.Version {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("%s changed %d times while it was looked at", names.ReleaseSpec(name), rounds)}
}

// read what is there; the zero object when nothing is. Of what is too large only the version is there.
func (h *Handler) read(ctx context.Context, name string) (store.Object, error) {
	object, err := h.Specs.Get(ctx, names.ReleaseSpec(name), api.MaxFile)
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Object{}, nil
	case errors.As(err, &large):
		return store.Object{Version: large.Version}, nil
	}
	return object, err
}

func (h *Handler) look(ctx context.Context, name string) (status.ReleaseStatus, error) {
	object, err := h.read(ctx, name)
	if err != nil || object.Version == "" {
		return status.ReleaseStatus{Message: "it was deleted; clusters that use it keep its content"}, err
	}
	verdict := status.ReleaseStatus{Version: object.Version, SHA256: names.SHA256(object.Body)}
	if name == api.ChannelsName {
		verdict.Checks, err = h.channels(ctx, object.Body)
	} else {
		verdict.Checks, err = h.release(ctx, name, object.Body)
	}
	verdict.Usable = !preflight.Blocks(verdict.Checks)
	logging.From(ctx).Info("looked at", "release", name, "version", object.Version, "usable", verdict.Usable)
	return verdict, err
}

// told bounds a message in a status, in bytes.
const told = 16 << 10

// invalid is the check of a file that cannot be read.
func invalid(file string, errs api.Errors) []status.Check {
	message := errs.Error()
	if len(message) > told {
		message = message[:told] + "\n…"
	}
	return []status.Check{
		{Name: preflight.FileValid, Blocks: true, Message: message, Next: fmt.Sprintf("Correct the file and upload it again; `drover validate "+
			"%s` says the same.", file)},
	}
}

func (h *Handler) release(ctx context.Context, name string, body []byte) ([]status.Check, error) {
	release, errs := api.ReadRelease(names.ReleaseSpec(name), body, api.Options{Name: name, TemplateVersions: templates.Versions()})
	if errs != nil {
		return invalid(names.ReleaseSpec(name), errs), nil
	}
	facts := &preflight.Facts{Taken: h.Now()}
	var addons []string
	for _, addon := range release.Spec.Addons {
		addons = append(addons, addon.Name)
	}
	var err error
	if facts.Catalogue, err = h.Versions.Catalogue(ctx); err != nil {
		return nil, err
	}
	if facts.Compat, err = h.Versions.Compat(ctx, addons); err != nil {
		return nil, err
	}
	if facts.Images, err = h.Images.Images(ctx, slices.Sorted(maps.Values(release.Spec.Images))); err != nil {
		return nil, err
	}
	return preflight.Published(facts, release), nil
}

// channels must name releases that are there and can be read; those of nodes of their own Kubernetes version.
func (h *Handler) channels(ctx context.Context, body []byte) ([]status.Check, error) {
	channels, errs := api.ReadChannels(names.ReleaseSpec(api.ChannelsName), body, api.Options{Name: api.ChannelsName})
	if errs != nil {
		return invalid(names.ReleaseSpec(api.ChannelsName), errs), nil
	}
	var wrong []string
	named := channels.Spec.Releases()
	for _, field := range slices.Sorted(maps.Keys(named)) {
		object, err := h.read(ctx, named[field])
		if err != nil {
			return nil, err
		}
		key := names.ReleaseSpec(named[field])
		release, errs := api.ReadRelease(key, object.Body, api.Options{Name: named[field]})
		switch version, ofNodes := strings.CutPrefix(field, "spec.nodes["); {
		case object.Version == "":
			wrong = append(wrong, fmt.Sprintf("%s: there is no %s", field, key))
		case errs != nil:
			wrong = append(wrong, fmt.Sprintf("%s: %s cannot be used", field, key))
		case ofNodes && strings.TrimSuffix(version, "]") != release.Spec.KubernetesVersion:
			wrong = append(wrong, fmt.Sprintf("%s: %s is of Kubernetes %s", field, key, release.Spec.KubernetesVersion))
		}
	}
	if len(wrong) == 0 {
		return nil, nil
	}
	return []status.Check{{
		Name: preflight.ReleasesThere, Blocks: true, Message: strings.Join(wrong, "\n"),
		Next: "Upload the releases, or name others in " + names.ReleaseSpec(api.ChannelsName) +
			". Clusters of these channels stay as they are meanwhile.",
	}}, nil
}
