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
}

// maxReads bounds how often a spec is read again because it changed while it was admitted.
const maxReads = 5

// Admit judges the spec of a cluster that exists now. It repeats until the version that it recorded is the newest: a faster copy of this
// function may have recorded a newer upload, and this one may have overwritten that status.
func (a *Admitter) Admit(ctx context.Context, cluster string) error {
	for range maxReads {
		recorded, err := a.admit(ctx, cluster)
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

// admit judges the spec that exists now, and returns its version.
func (a *Admitter) admit(ctx context.Context, cluster string) (string, error) {
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
	spec, errs := api.ReadCluster(key, object.Body, api.Options{Name: cluster, TemplateVersions: templates.Versions(), Now: a.Now()})
	if errs != nil {
		return object.Version, a.reject(ctx, cluster, object.Version, status.ReasonSpecInvalid, errs.Error())
	}
	logging.From(ctx).Info("spec accepted", "cluster", cluster, "version", object.Version)
	var planned, after string
	err = a.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.ObservedVersion, planned, after = object.Version, s.SpecVersion, s.SpecVersion
		if c := s.Condition(status.SpecAccepted); planned == object.Version && c != nil && c.Reason == status.ReasonSpecInvalid {
			// Planning rejected it, or a slow copy of this function recorded an older spec. Only planning knows.
			after = "rejected " + c.LastTransitionTime.Format(time.RFC3339Nano)
		}
		if s.SpecVersion != object.Version { // otherwise the event is late or repeated, and planning has recorded more
			s.Set(status.Condition{Type: status.SpecAccepted, Status: "True", Reason: status.ReasonValid}, a.Now())
			s.Warn(api.Warnings(spec, nil), a.Now()) // planning adds the warnings about the release
		}
		if s.SpecVersion != object.Version && s.Phase != status.Converging && s.Phase != status.Upgrading && s.Phase != status.Deleting {
			s.Phase, s.Message = status.Pending, "the spec was accepted"
		} else if s.SpecVersion != object.Version && s.Phase != status.Upgrading {
			s.Message = "a newer spec was accepted: it counts as soon as the stacks that are changing now are done"
			if spec.Spec.Paused {
				s.Message = "spec.paused is true: the stacks that are changing now are finished, and nothing else is begun"
			}
		}
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
	if s := document.Status; s.SpecVersion == "" && s.ObservedVersion != "" && s.Phase != status.Deleted &&
		s.Condition(status.Converged) != nil {
		logging.From(ctx).Info("upload after deletion withdrawn", "cluster", cluster)
		if err := a.Machine.Converge(ctx, cluster, "", s.ObservedVersion); err != nil {
			return err
		}
	}
	var planned string
	err = a.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.ObservedVersion, planned = "", s.SpecVersion
		s.Set(status.Condition{
			Type: status.SpecAccepted, Status: "False", Reason: status.ReasonSpecAbsent, Message: names.ClusterSpec(cluster) + " was deleted",
		}, a.Now())
		if (s.Phase == status.Stopped || s.Phase == status.Pending) && planned == "" && s.Condition(status.Converged) == nil {
			// It was never planned, so it has no stacks.
			s.Phase, s.Message = status.Deleted, "the spec was deleted before anything was made of it"
		}
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
	return a.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.ObservedVersion = version
		s.Set(status.Condition{Type: status.SpecAccepted, Status: "False", Reason: reason, Message: message}, a.Now())
		// An operation in flight records its own phase. Drains read the phase to see whether the cluster is deleted.
		if s.SpecVersion == "" && s.Phase != status.Converging && s.Phase != status.Upgrading && s.Phase != status.Deleting && !deletionEnded(s) {
			s.Phase, s.Message = status.Stopped, "there is no spec that can be used yet"
		}
	})
}

// deletionEnded reports whether the deletion of the cluster ended: it is deleted, failed, or was refused by deletion protection. An invalid
// upload must not hide that, and must not end the retries of a failed deletion.
func deletionEnded(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return c != nil && (s.Phase == status.Failed || c.Reason == status.ReasonDeleted || c.Reason == status.ReasonDeletionProtected)
}
