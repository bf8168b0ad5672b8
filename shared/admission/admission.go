// Package admission judges one uploaded spec. It records in the status whether the spec is valid, and starts drover-converge for a valid or
// deleted one. An invalid spec changes only the status. It reads no stacks: planning does. The admit function and the sweep use it.
package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/templates"
)

// Specs is the bucket of specs: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State is the state bucket: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Machine starts drover-converge: a subset of stepfunctions.Executions.
type Machine interface {
	Converge(ctx context.Context, cluster, specVersion, after string) error
}

// Admitter admits specs.
type Admitter struct {
	Specs   Specs
	State   State
	Machine Machine
	Now     func() time.Time
	// Settings are what the cell allows. If they are nil, they are not checked.
	Settings *api.CellSettings
}

// maxReads bounds how often a spec is read again because it changed while it was admitted.
const maxReads = 5

// Admit judges the spec of a cluster that exists now. It repeats until the version that it recorded is the newest: a faster copy of this
// function may have recorded a newer upload, and this one may have overwritten that status.
func (a *Admitter) Admit(ctx context.Context, cluster string) error {
	for range maxReads {
		recorded, err := a.admitOnce(ctx, cluster)
		if err != nil {
			return err
		}
		if version, err := a.newestVersion(ctx, names.ClusterSpec(cluster)); err != nil || version == recorded {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("the spec of %s changed %d times while it was admitted", cluster, maxReads)}
}

// newestVersion is the version of the spec that exists now; empty if there is none.
func (a *Admitter) newestVersion(ctx context.Context, key string) (string, error) {
	return specs.Version(ctx, a.Specs, key)
}

// admitOnce judges the spec that exists now, and returns its version.
func (a *Admitter) admitOnce(ctx context.Context, cluster string) (string, error) {
	key := names.ClusterSpec(cluster)
	object, err := specs.Upload(ctx, a.Specs, key)
	var unusable *specs.Unusable
	switch {
	case errors.Is(err, specs.ErrAbsent):
		return "", a.admitDeletion(ctx, cluster)
	case errors.As(err, &unusable):
		return unusable.Version, a.reject(ctx, cluster, unusable.Version, status.ReasonSpecInvalid, unusable.Message)
	case err != nil:
		return "", err
	}
	spec, errs := api.ReadCluster(key, object.Body, api.Options{
		Name: cluster, TemplateVersions: templates.Versions(), Now: a.Now(), Cell: a.Settings,
	})
	if errs != nil {
		return object.Version, a.reject(ctx, cluster, object.Version, status.ReasonSpecInvalid, errs.Error())
	}
	logging.From(ctx).Info("spec accepted", "cluster", cluster, "version", object.Version)
	var planned, after string
	err = a.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		planned, after = s.PlannedVersion, s.PlannedVersion
		if c := s.Condition(status.SpecAccepted); planned == object.Version && c != nil && c.Reason == status.ReasonSpecInvalid {
			// Planning rejected it, or a slow copy of this function recorded an older spec. Only planning knows.
			after = "rejected " + c.LastTransitionTime.Format(time.RFC3339Nano)
		}
		// Planning adds the warnings about the release.
		upload := status.Upload{Version: object.Version, UploadedAt: object.Modified, Labels: spec.Metadata.Labels}
		s.AcceptSpec(upload, api.Warnings(spec, nil), spec.Spec.Paused, a.Now())
	})
	if err != nil || after == object.Version {
		return object.Version, err
	}
	return object.Version, a.Machine.Converge(ctx, cluster, object.Version, after)
}

// admitDeletion starts drover-converge for a cluster whose spec was deleted. Planning decides whether the cluster is deleted. It ignores a
// cluster without a status.
func (a *Admitter) admitDeletion(ctx context.Context, cluster string) error {
	document, err := a.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Warn("deletion of unknown cluster ignored", "cluster", cluster)
		return nil
	}
	if err != nil {
		return err
	}
	// If no version was planned, as after a failed deletion, the status would not show that this deletion is pending. So the execution is
	// started before the status is written. Its name contains the withdrawn version: a repeated start is the same execution, and the
	// execution of the first deletion is another one.
	if s := document.Status; s.PlannedVersion == "" && s.ObservedVersion != "" && s.Phase != status.Deleted &&
		s.Condition(status.Converged) != nil {
		logging.From(ctx).Info("upload after deletion withdrawn", "cluster", cluster)
		if err := a.Machine.Converge(ctx, cluster, "", s.ObservedVersion); err != nil {
			return err
		}
	}
	var planned string
	err = a.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		planned = s.PlannedVersion
		s.WithdrawSpec(names.ClusterSpec(cluster)+" was deleted", a.Now())
	})
	if err != nil || planned == "" {
		return err
	}
	logging.From(ctx).Info("spec deleted", "cluster", cluster)
	return a.Machine.Converge(ctx, cluster, "", planned)
}

// maxMessageBytes bounds a message in the status.
const maxMessageBytes = 16 << 10

// reject records why the newest spec is rejected. The phase of the cluster stays: its last good spec applies, if it has one.
func (a *Admitter) reject(ctx context.Context, cluster, version, reason, message string) error {
	if len(message) > maxMessageBytes {
		message = message[:maxMessageBytes] + "\n…"
	}
	logging.From(ctx).Warn("spec rejected", "cluster", cluster, "reason", reason)
	return a.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.RejectSpec(version, reason, message, a.Now()) })
}
