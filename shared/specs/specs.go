// Package specs reads uploads: the specs of clusters, the releases and the channels. It distinguishes absent and unusable uploads
// from failed reads. Functions, services and the CLI use it. It reaches the bucket only through the interface Source.
package specs

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/templates"
)

// ErrAbsent reports that a key has no upload.
var ErrAbsent = errors.New("not uploaded")

// Reason is why an upload is unusable.
type Reason string

const (
	// TooLarge means that the upload was not read, because it exceeds api.MaxFile.
	TooLarge Reason = "TooLarge"
	// Invalid means that the upload does not pass validation.
	Invalid Reason = "Invalid"
)

// Unusable reports an upload that exists, but cannot be used. Its user must upload another one.
type Unusable struct {
	Reason Reason
	// Message is for the user.
	Message string
	// Version of the upload.
	Version string
}

func (e *Unusable) Error() string { return e.Message }

// Source is the specs bucket, or the state bucket for pinned releases: a subset of store.Objects.
type Source interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// Versions is the specs bucket with its earlier versions: a subset of store.Objects.
type Versions interface {
	GetVersion(ctx context.Context, key, version string, limit int64) (store.Object, error)
}

// Upload reads an upload without decoding it. It returns ErrAbsent, or *Unusable for an upload that is too large.
func Upload(ctx context.Context, from Source, key string) (store.Object, error) {
	object, err := from.Get(ctx, key, api.MaxFile)
	return object, Explain(err)
}

// Explain returns ErrAbsent or *Unusable for an error of a bucket that means one of them, and other errors unchanged.
func Explain(err error) error {
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrAbsent, err)
	case errors.As(err, &large):
		return &Unusable{Reason: TooLarge, Message: err.Error(), Version: large.Version}
	}
	return err
}

// Missing reports whether an error means that no upload can be used: ErrAbsent or *Unusable.
func Missing(err error) bool {
	var unusable *Unusable
	return errors.Is(err, ErrAbsent) || errors.As(err, &unusable)
}

// Version returns the version of an upload, usable or not. It is empty without an upload.
func Version(ctx context.Context, from Source, key string) (string, error) {
	object, err := Upload(ctx, from, key)
	var unusable *Unusable
	switch {
	case errors.Is(err, ErrAbsent):
		return "", nil
	case errors.As(err, &unusable):
		return unusable.Version, nil
	}
	return object.Version, err
}

// Exists reports whether something is uploaded under a key, usable or not.
func Exists(ctx context.Context, from Source, key string) (bool, error) {
	_, err := Upload(ctx, from, key)
	switch {
	case errors.Is(err, ErrAbsent):
		return false, nil
	case Missing(err):
		return true, nil
	}
	return err == nil, err
}

// Cluster reads the newest spec of a cluster, and its version.
func Cluster(ctx context.Context, from Source, cluster string) (spec *api.Cluster, version string, err error) {
	key := names.ClusterSpec(cluster)
	object, err := Upload(ctx, from, key)
	if err != nil {
		return nil, "", err
	}
	spec, errs := api.ReadCluster(key, object.Body, api.Options{Name: cluster, TemplateVersions: templates.Versions()})
	if errs != nil {
		return nil, "", &Unusable{Reason: Invalid, Message: errs.Error(), Version: object.Version}
	}
	return spec, object.Version, nil
}

// ClusterVersion reads a version of the spec of a cluster without decoding it. It returns store.ErrNotFound for a version that expired.
func ClusterVersion(ctx context.Context, from Versions, cluster, version string) (store.Object, error) {
	return from.GetVersion(ctx, names.ClusterSpec(cluster), version, api.MaxFile)
}

// Release reads the newest content of a release, and its bytes.
func Release(ctx context.Context, from Source, name string) (release *api.Release, body []byte, err error) {
	object, err := Upload(ctx, from, names.ReleaseSpec(name))
	if err != nil {
		return nil, nil, err
	}
	return decodeRelease(name, object)
}

// PinnedRelease reads the content of a release that a cluster or an upgrade is pinned to, and its bytes, from the
// state bucket. An absent one is a failure of drover, so the error of the bucket is returned unchanged. The error is
// *Unusable if this drover cannot decode it.
func PinnedRelease(ctx context.Context, from Source, name, sha256 string) (release *api.Release, body []byte, err error) {
	object, err := from.Get(ctx, names.PinnedRelease(sha256), api.MaxFile)
	if err != nil {
		return nil, nil, err
	}
	return decodeRelease(name, object)
}

func decodeRelease(name string, object store.Object) (*api.Release, []byte, error) {
	release, errs := api.ReadRelease(names.ReleaseSpec(name), object.Body, api.Options{Name: name})
	if errs != nil {
		return nil, nil, &Unusable{Reason: Invalid, Message: errs.Error(), Version: object.Version}
	}
	return release, object.Body, nil
}

// Channels reads the releases of the channels.
func Channels(ctx context.Context, from Source) (*api.Channels, error) {
	key := names.ReleaseSpec(api.ChannelsName)
	object, err := Upload(ctx, from, key)
	if err != nil {
		return nil, err
	}
	channels, errs := api.ReadChannels(key, object.Body, api.Options{})
	if errs != nil {
		return nil, &Unusable{Reason: Invalid, Message: errs.Error(), Version: object.Version}
	}
	return channels, nil
}
