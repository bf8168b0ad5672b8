package handler

// Specs that arrive during an execution. The execution of such a spec may have ended because this execution held the lease.

import (
	"context"
	"errors"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// isOutdated reports whether a plan without changes is about a spec that is no longer the newest. Such a plan takes no lease: the execution
// of the newer spec may have recorded its verdict already, for example that the cluster is paused. This verdict must not overwrite it.
func (h *Handler) isOutdated(ctx context.Context, in events.ReportRequest) (bool, error) {
	if in.Plan == nil || len(failures(in)) > 0 || in.Plan.Outcome != events.OutcomeUnchanged && in.Plan.Outcome != events.OutcomeStopped {
		return false, nil
	}
	version, err := h.version(ctx, in.Cluster)
	return err == nil && version != in.Plan.SpecVersion, err
}

// hasNewerSpec reports whether there is a spec that this round did not plan.
func (h *Handler) hasNewerSpec(ctx context.Context, in events.ReportRequest) (bool, error) {
	version, err := h.version(ctx, in.Cluster)
	switch {
	case err != nil:
		return false, err
	case in.Plan != nil && version == in.Plan.SpecVersion && in.Plan.Accepted:
		return h.isOverwritten(ctx, in.Cluster, version)
	case in.Plan != nil:
		return version != in.Plan.SpecVersion, nil
	}
	if version == "" {
		return false, nil
	}
	// Planning failed, and its spec is unknown. A pending spec is planned again, once.
	again := false
	err = h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if version == s.PlannedVersion {
			return // or an earlier attempt of this write succeeded, and its answer was lost
		}
		again, s.PlannedVersion = true, version
		if s.Phase == status.Failed && s.RetryAt == nil {
			// If the answer of this report is lost, too, the audit plans the spec.
			s.RetryAt = retryTime(h.Now(), backoff.Retries[0])
		}
	})
	return again, err
}

// isOverwritten reports whether the status rejects a spec that planning accepted. A slow invocation of admit read an older spec and wrote
// its verdict after planning. It also started an execution, which ends at once if this one holds the lease.
func (h *Handler) isOverwritten(ctx context.Context, cluster, version string) (bool, error) {
	document, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) { // a user deleted it: the sweep records it again
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c := document.Status.Condition(status.SpecAccepted)
	return document.Status.PlannedVersion == version && c != nil && c.Reason == status.ReasonSpecInvalid, nil
}

// version returns the version of the newest spec; empty if there is none.
func (h *Handler) version(ctx context.Context, cluster string) (string, error) {
	return specs.Version(ctx, h.Specs, names.ClusterSpec(cluster))
}
