// Package handler ends a round of converging: it gives the verdict in the status, tells who listens, gives the lease up,
// and only then looks whether a newer spec came meanwhile, so that none is missed.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/metrics"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Specs is what people wrote: a subset of store.Bucket.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State is what drover keeps: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	CheckLease(ctx context.Context, cluster, execution string, fence int64) error
	Release(ctx context.Context, cluster, execution string) error
}

// Topic tells who listens: notify.Topic.
type Topic interface {
	Publish(ctx context.Context, subject, message string) error
}

// Handler reports.
type Handler struct {
	Specs   Specs
	State   State
	Topic   Topic
	Metrics io.Writer
	Now     func() time.Time
}

// verdict is what a round came to.
type verdict struct {
	phase     status.Phase
	message   string
	condition status.Condition
	// spec is true when only the newest spec is no good: a cluster that runs as its last good one says is Ready all the same.
	spec bool
	// version of the spec that was judged and not converged to; empty when planning has told it already.
	version string
}

// Handle ends a round.
func (h *Handler) Handle(ctx context.Context, in events.ReportRequest) (events.ReportResult, error) {
	if in.Plan != nil && in.Plan.Fence > 0 {
		err := h.State.CheckLease(ctx, in.Cluster, in.Execution, in.Plan.Fence)
		var lost *fault.LeaseLost
		if errors.As(err, &lost) {
			boundary.Log(ctx).Warn("another execution took the cluster over", "cluster", in.Cluster, "error", err.Error())
			return events.ReportResult{Reason: lost.Error()}, nil
		}
		if err != nil {
			return events.ReportResult{}, err
		}
	}
	v := judge(in)
	if err := h.tell(ctx, in.Cluster, v); err != nil {
		return events.ReportResult{}, err
	}
	if err := h.State.Release(ctx, in.Cluster, in.Execution); err != nil {
		return events.ReportResult{}, err
	}
	again, err := h.newer(ctx, in)
	return events.ReportResult{Again: again, Failed: v.phase == status.Failed, Reason: v.message}, err
}

// newer says whether there is a spec that this round did not plan: its own execution may have left the cluster to this one.
func (h *Handler) newer(ctx context.Context, in events.ReportRequest) (bool, error) {
	version, err := h.version(ctx, in.Cluster)
	if err != nil || in.Plan != nil {
		return err == nil && version != in.Plan.SpecVersion, err
	}
	// Planning failed, and nobody knows for which spec. One that was never acted on gets one try.
	again := false
	err = h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if again = version != "" && version != s.SpecVersion; again {
			s.SpecVersion = version
		}
	})
	return again, err
}

// judge decides what a round came to.
func judge(in events.ReportRequest) verdict {
	if failures := failures(in); len(failures) > 0 {
		message := strings.Join(failures, "\n")
		return verdict{phase: status.Failed, message: message, condition: status.Condition{
			Type: status.Converged, Status: "False", Reason: reason(in), Message: message,
		}}
	}
	if in.Plan.Outcome == events.OutcomeStopped {
		v := verdict{phase: status.Stopped, message: in.Plan.Message, version: in.Plan.SpecVersion, condition: status.Condition{
			Type: status.Converged, Status: "False", Reason: in.Plan.Reason, Message: in.Plan.Message,
		}}
		if slices.Contains([]string{status.ReasonSpecInvalid, status.ReasonSpecAbsent, status.ReasonReleaseUnusable}, in.Plan.Reason) {
			v.condition.Type, v.spec = status.SpecAccepted, true
		}
		return v
	}
	return verdict{phase: status.Ready, message: "the cluster is what its spec says", condition: status.Condition{
		Type: status.Converged, Status: "True", Reason: status.ReasonUpToDate,
	}}
}

// failures lists what failed, one line each.
func failures(in events.ReportRequest) []string {
	var lines []string
	if in.Error != "" {
		lines = append(lines, cause(in.Error, in.Cause))
	}
	for _, result := range in.Results {
		if result.Error != "" {
			lines = append(lines, cause(result.Error, result.Cause))
		}
	}
	if in.Plan == nil && len(lines) == 0 {
		lines = append(lines, "planning ended without a result")
	}
	return lines
}

// reason is the name of the first fault.
func reason(in events.ReportRequest) string {
	if in.Error != "" {
		return in.Error
	}
	for _, result := range in.Results {
		if result.Error != "" {
			return result.Error
		}
	}
	return fault.Name(&fault.Internal{})
}

// cause reads what a failed step said: a ChangeResult when a stack failed, Lambda's error object when a function did,
// words otherwise.
func cause(name, text string) string {
	var said struct {
		Cause        string `json:"cause"`
		ErrorMessage string `json:"errorMessage"`
	}
	if json.Unmarshal([]byte(text), &said) == nil {
		switch {
		case said.Cause != "":
			text = said.Cause
		case said.ErrorMessage != "":
			text = said.ErrorMessage
		}
	}
	if text == "" {
		return name
	}
	return name + ": " + text
}

// tell publishes a verdict that is new, then writes it. In this order a notification may come twice, never not at all.
func (h *Handler) tell(ctx context.Context, cluster string, v verdict) error {
	before, err := h.State.Status(ctx, cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	apply := func(s *status.Status) { v.apply(s, h.Now()) }
	after := before.Status
	after.Conditions = slices.Clone(after.Conditions)
	apply(&after)
	if after.Phase != before.Status.Phase || after.Message != before.Status.Message {
		if err := h.Topic.Publish(ctx, fmt.Sprintf("drover: %.60s is %s", cluster, after.Phase), after.Message); err != nil {
			return err
		}
		if err := metrics.Count(h.Metrics, h.Now(), "ClusterPhase", "phase", string(after.Phase)); err != nil {
			return err
		}
	}
	return h.State.UpdateStatus(ctx, cluster, apply)
}

// apply writes a verdict into a status.
func (v verdict) apply(s *status.Status, now time.Time) {
	s.Phase, s.Message = v.phase, v.message
	if v.version != "" {
		s.SpecVersion = v.version
	}
	switch converged := s.Condition(status.Converged); {
	case v.phase == status.Ready:
		s.Plan = nil
		s.Set(status.Condition{Type: status.SpecAccepted, Status: "True", Reason: status.ReasonValid}, now)
	case v.spec && converged != nil && converged.Status == "True":
		s.Phase, s.Message = status.Ready, "the cluster is what its last good spec says; the newest is not used: "+v.message
	case v.spec:
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: v.condition.Reason, Message: v.message}, now)
	}
	s.Set(v.condition, now)
}

// version of the spec that is there now; empty when there is none.
func (h *Handler) version(ctx context.Context, cluster string) (string, error) {
	object, err := h.Specs.Get(ctx, names.ClusterSpec(cluster), api.MaxFile)
	var large *store.TooLarge
	if errors.As(err, &large) {
		return large.Version, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return object.Version, err
}
