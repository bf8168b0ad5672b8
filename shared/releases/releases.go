// Package releases checks releases and drafts new ones.
//
// Checker checks one uploaded release, or the channels file: it asks EKS and EC2 whether everything that the file names exists. It records
// the verdict. It changes no cluster, and no cluster waits for the verdict. The publish function and the sweep use it.
//
// Drafter writes a release from what AWS recommends now. The command line uses it.
package releases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/templates"
)

// Specs is the bucket of specs and releases: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State keeps the verdicts: a subset of store.State.
type State interface {
	SetReleaseStatus(ctx context.Context, name string, verdict status.ReleaseStatus) error
}

// EKS lists versions and add-ons that EKS offers: a subset of eks.Reader.
type EKS interface {
	Catalog(ctx context.Context) ([]preflight.Version, error)
	Compat(ctx context.Context, addons []string) (upgrade.Compat, error)
	Recommended(ctx context.Context, addon, version string) ([]api.RecommendedIdentity, error)
}

// Images describes images of EC2: a subset of ec2.Capacity.
type Images interface {
	Images(ctx context.Context, ids []string) (map[string]preflight.Image, error)
}

// Checker checks releases.
type Checker struct {
	Specs  Specs
	State  State
	EKS    EKS
	Images Images
	// Region is the region of the cell. Settings are what the cell allows; nil does not check them.
	Region   string
	Settings *api.CellSettings
	Now      func() time.Time
}

// maxReads bounds how often a file is read again because it changed while it was checked.
const maxReads = 5

// Check checks a release, or the channels, as they are now. It checks the channels again after a release that they name: they may have been
// uploaded before it.
func (c *Checker) Check(ctx context.Context, name string) error {
	err := c.judge(ctx, name)
	if name == api.ChannelsName {
		return err
	}
	named, failed := c.inChannels(ctx, name)
	if named {
		failed = c.judge(ctx, api.ChannelsName)
	}
	return errors.Join(err, failed)
}

// inChannels reports whether the channels may name a release. Absent or invalid channels may name any.
func (c *Checker) inChannels(ctx context.Context, name string) (bool, error) {
	object, err := c.read(ctx, api.ChannelsName)
	if err != nil {
		return false, err
	}
	channels, errs := api.ReadChannels(names.ReleaseSpec(api.ChannelsName), object.Body, api.Options{Name: api.ChannelsName})
	return errs != nil || slices.Contains(slices.Collect(maps.Values(channels.Spec.Releases())), name), nil
}

// judge checks the file that exists now, and records the verdict. It repeats until the verdict is about the newest upload: a faster copy of
// this function may have checked a newer one, and this one may have overwritten its verdict.
func (c *Checker) judge(ctx context.Context, name string) error {
	for range maxReads {
		verdict, err := c.verdict(ctx, name)
		if err != nil {
			return err
		}
		if err := c.State.SetReleaseStatus(ctx, name, verdict); errors.Is(err, store.ErrConflict) {
			continue
		} else if err != nil {
			return err
		}
		if now, err := c.read(ctx, name); err != nil || now.Version == verdict.Version {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("%s changed %d times while it was checked", names.ReleaseSpec(name), maxReads)}
}

// read reads a file. It returns the zero object if the file is absent, and only the version if the file is too large.
func (c *Checker) read(ctx context.Context, name string) (store.Object, error) {
	object, err := specs.Upload(ctx, c.Specs, names.ReleaseSpec(name))
	var unusable *specs.Unusable
	switch {
	case errors.Is(err, specs.ErrAbsent):
		return store.Object{}, nil
	case errors.As(err, &unusable):
		return store.Object{Version: unusable.Version}, nil
	}
	return object, err
}

func (c *Checker) verdict(ctx context.Context, name string) (status.ReleaseStatus, error) {
	object, err := c.read(ctx, name)
	if err != nil || object.Version == "" {
		return status.ReleaseStatus{Message: "it was deleted; clusters that use it keep its content"}, err
	}
	verdict := status.ReleaseStatus{Version: object.Version, SHA256: names.SHA256(object.Body)}
	if name == api.ChannelsName {
		verdict.Checks, err = c.checkChannels(ctx, object.Body)
	} else {
		verdict.Checks, err = c.checkRelease(ctx, name, object.Body)
	}
	verdict.Usable = !preflight.Blocks(verdict.Checks)
	logging.From(ctx).Info("release checked", "release", name, "version", object.Version, "usable", verdict.Usable)
	return verdict, err
}

// maxMessageBytes bounds a message in a status.
const maxMessageBytes = 16 << 10

// invalid is the check of an invalid file.
func invalid(file string, errs api.Errors) []status.Check {
	message := errs.Error()
	if len(message) > maxMessageBytes {
		message = message[:maxMessageBytes] + "\n…"
	}
	return []status.Check{
		{Name: preflight.FileValid, Blocks: true, Message: message, Next: fmt.Sprintf("Correct the file and upload it again; "+
			"`drover validate %s` reports the same, except what cellSettings does not allow.", file)},
	}
}

func (c *Checker) checkRelease(ctx context.Context, name string, body []byte) ([]status.Check, error) {
	release, errs := api.ReadRelease(names.ReleaseSpec(name), body, api.Options{
		Name: name, TemplateVersions: templates.Versions(), Cell: c.Settings,
	})
	if errs != nil {
		return invalid(names.ReleaseSpec(name), errs), nil
	}
	return c.CheckRelease(ctx, release.In(c.Region))
}

// CheckRelease checks what a valid release names, with its own images: see api.Release.In. It needs only EKS, Images and Now.
func (c *Checker) CheckRelease(ctx context.Context, release *api.Release) ([]status.Check, error) {
	facts := &preflight.Facts{ReadAt: c.Now()}
	var addons []string
	for _, addon := range release.Spec.Addons {
		addons = append(addons, addon.Name)
	}
	var err error
	if facts.Catalog, err = c.EKS.Catalog(ctx); err != nil {
		return nil, err
	}
	if facts.Compat, err = c.EKS.Compat(ctx, addons); err != nil {
		return nil, err
	}
	facts.Recommended = map[string][]api.RecommendedIdentity{}
	for _, lacking := range facts.WithoutPermission(release.Spec.Addons) {
		if facts.Recommended[lacking.Name], err = c.EKS.Recommended(ctx, lacking.Name, lacking.Version); err != nil {
			return nil, err
		}
	}
	if facts.Images, err = c.Images.Images(ctx, slices.Sorted(maps.Values(release.Spec.Images))); err != nil {
		return nil, err
	}
	return preflight.CheckRelease(facts, release), nil
}

// checkChannels checks that the releases of the channels exist and are valid. A release of the nodes channel must have the channel's
// Kubernetes version.
func (c *Checker) checkChannels(ctx context.Context, body []byte) ([]status.Check, error) {
	channels, errs := api.ReadChannels(names.ReleaseSpec(api.ChannelsName), body, api.Options{Name: api.ChannelsName})
	if errs != nil {
		return invalid(names.ReleaseSpec(api.ChannelsName), errs), nil
	}
	var wrong []string
	named := channels.Spec.Releases()
	for _, field := range slices.Sorted(maps.Keys(named)) {
		object, err := c.read(ctx, named[field])
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
			wrong = append(wrong, fmt.Sprintf("%s: %s is for Kubernetes %s", field, key, release.Spec.KubernetesVersion))
		}
	}
	if len(wrong) == 0 {
		return nil, nil
	}
	return []status.Check{{
		Name: preflight.ReleasesExist, Blocks: true, Message: strings.Join(wrong, "\n"),
		Next: "Upload the releases, or name others in " + names.ReleaseSpec(api.ChannelsName) +
			". Until then, clusters of these channels do not change.",
	}}, nil
}
