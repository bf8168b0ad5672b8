// Package handler admits specs: it reads what is in the bucket now, whatever event woke it, says in the status whether it
// can be used, and starts to converge. A bad spec changes nothing but its status.
package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/templates"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State tells people: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	UpdateUnread(ctx context.Context, specs store.Lister) error
}

// Machine starts to converge: a subset of stepfunctions.Executions.
type Machine interface {
	Converge(ctx context.Context, cluster, specVersion, after string) error
}

// Handler admits specs.
type Handler struct {
	Specs   Specs
	State   State
	Machine Machine
	Now     func() time.Time
}

// rounds bounds how often a spec that changes while it is admitted is read again.
const rounds = 5

// Handle takes one S3 event. What the event says is only that something happened to the key.
func (h *Handler) Handle(ctx context.Context, in events.Event[events.Object]) (struct{}, error) {
	var done struct{}
	key := in.Detail.Object.Key
	cluster, ok := names.ClusterOfKey(key)
	if !ok {
		logging.From(ctx).Warn("unread upload", "key", key)
		return done, h.State.UpdateUnread(ctx, h.Specs)
	}
	return done, h.Admit(ctx, cluster)
}

// Admit judges the spec of a cluster that is there now. A spec uploaded meanwhile may have been told about by a faster copy of
// this function, whose status ours has then overwritten: it looks again until what is told is what is there.
func (h *Handler) Admit(ctx context.Context, cluster string) error {
	for range rounds {
		told, err := h.admit(ctx, cluster)
		if err != nil {
			return err
		}
		if version, err := h.version(ctx, names.ClusterSpec(cluster)); err != nil || version == told {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("the spec of %s changed %d times while it was admitted", cluster, rounds)}
}

// version of the spec that is there now; empty when there is none.
func (h *Handler) version(ctx context.Context, key string) (string, error) {
	object, err := h.Specs.Get(ctx, key, api.MaxFile)
	var large *store.TooLarge
	if errors.As(err, &large) {
		return large.Version, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return object.Version, err
}

// admit judges the spec that is there now and returns its version.
func (h *Handler) admit(ctx context.Context, cluster string) (string, error) {
	key := names.ClusterSpec(cluster)
	object, err := h.Specs.Get(ctx, key, api.MaxFile)
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", h.absent(ctx, cluster)
	case errors.As(err, &large):
		return large.Version, h.reject(ctx, cluster, large.Version, status.ReasonSpecInvalid, large.Error())
	case err != nil:
		return "", err
	}
	spec, errs := api.ReadCluster(key, object.Body, api.Options{Name: cluster, TemplateVersions: templates.Versions(), Now: h.Now()})
	if errs != nil {
		return object.Version, h.reject(ctx, cluster, object.Version, status.ReasonSpecInvalid, errs.Error())
	}
	logging.From(ctx).Info("accepted", "cluster", cluster, "version", object.Version)
	var acted, after string
	err = h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.ObservedVersion, acted, after = object.Version, s.SpecVersion, s.SpecVersion
		if c := s.Condition(status.SpecAccepted); acted == object.Version && c != nil && c.Reason == status.ReasonSpecInvalid {
			// By planning, or by a slow copy of this function that had read an older spec. Only planning can tell.
			after = "rejected " + c.LastTransitionTime.Format(time.RFC3339Nano)
		}
		if s.SpecVersion != object.Version { // else planning knows better: this event is late, or another of the same
			s.Set(status.Condition{Type: status.SpecAccepted, Status: "True", Reason: status.ReasonValid}, h.Now())
			s.Warn(api.Warnings(spec, nil), h.Now()) // planning knows the release, too
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
	return object.Version, h.Machine.Converge(ctx, cluster, object.Version, after)
}

// absent starts to converge a cluster whose spec was deleted: planning decides whether the cluster goes with it. A cluster that
// nobody has heard of is none.
func (h *Handler) absent(ctx context.Context, cluster string) error {
	document, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Warn("there is neither a spec nor a cluster: ignored", "cluster", cluster)
		return nil
	}
	if err != nil {
		return err
	}
	// Where no version was acted on, as after a deletion that failed, nothing in the status would say that this is still to be begun. So
	// it is begun before it is told, after the upload that is gone now: twice is one execution, and that of the first deletion is another.
	if s := document.Status; s.SpecVersion == "" && s.ObservedVersion != "" && s.Phase != status.Deleted &&
		s.Condition(status.Converged) != nil {
		logging.From(ctx).Info("what was uploaded after the spec was deleted is gone, too", "cluster", cluster)
		if err := h.Machine.Converge(ctx, cluster, "", s.ObservedVersion); err != nil {
			return err
		}
	}
	var acted string
	err = h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.ObservedVersion, acted = "", s.SpecVersion
		s.Set(status.Condition{
			Type: status.SpecAccepted, Status: "False", Reason: status.ReasonSpecAbsent, Message: names.ClusterSpec(cluster) + " was deleted",
		}, h.Now())
		if (s.Phase == status.Stopped || s.Phase == status.Pending) && acted == "" && s.Condition(status.Converged) == nil {
			// It was never planned, so nothing was ever made.
			s.Phase, s.Message = status.Deleted, "the spec was deleted before anything was made of it"
		}
	})
	if err != nil || acted == "" {
		return err
	}
	logging.From(ctx).Info("the spec was deleted", "cluster", cluster)
	return h.Machine.Converge(ctx, cluster, "", acted)
}

// told bounds a message in the status, in bytes.
const told = 16 << 10

// reject says in the status why the newest spec is not used. The cluster's phase stays what it was: it keeps running on
// its last good spec, if it had one.
func (h *Handler) reject(ctx context.Context, cluster, version, reason, message string) error {
	if len(message) > told {
		message = message[:told] + "\n…"
	}
	logging.From(ctx).Warn("rejected", "cluster", cluster, "reason", reason)
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.ObservedVersion = version
		s.Set(status.Condition{Type: status.SpecAccepted, Status: "False", Reason: reason, Message: message}, h.Now())
		// What is under way says itself how it goes; drains ask whether the cluster is being deleted.
		if s.SpecVersion == "" && s.Phase != status.Converging && s.Phase != status.Upgrading && s.Phase != status.Deleting && !unspecified(s) {
			s.Phase, s.Message = status.Stopped, "there is no spec that can be used yet"
		}
	})
}

// unspecified says that a cluster whose spec was deleted is gone, could not be deleted, or is protected. That is what people are to be
// told of it, and what could not be deleted is tried again, whatever is uploaded that cannot be used.
func unspecified(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return c != nil && (s.Phase == status.Failed || c.Reason == status.ReasonDeleted || c.Reason == status.ReasonDeletionProtected)
}
