package handler

// What failed is tried again by itself only if a later try can go otherwise and harms nobody, and after growing pauses: see
// docs/adr about retries.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// retry counts a failure and says when the next try is. One that was counted is not counted again: a report that died may have written
// it.
func (v verdict) retry(s *status.Status, now time.Time) {
	if s.Phase == status.Failed && s.Execution == v.execution && s.FailedTry == v.try && s.Message == v.Message {
		return
	}
	s.FailedTry = v.try
	s.RetryAt = nil
	next := backoff.Retries
	if v.quick {
		next = slices.Concat(backoff.QuickRetries, backoff.Retries)
	}
	if v.again && s.Failures < len(next) {
		s.RetryAt = at(now, next[s.Failures])
	}
	s.Failures++
}

// backOff is for how many seconds the execution waits before it tries again; 0 when it ends. It ends when another execution has
// the cluster, or when the next try is the audit's.
func (h *Handler) backOff(ctx context.Context, in events.ReportRequest) (seconds int64, err error) {
	document, err := h.State.Status(ctx, in.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	s := document.Status
	if s.Phase != status.Failed || s.Execution != in.Execution || s.RetryAt == nil || s.Failures > len(backoff.QuickRetries) {
		return 0, nil
	}
	return max(0, int64(s.RetryAt.Sub(h.Now())/time.Second)) + 1, nil
}

// quickly says whether every failure may pass within minutes. Each failure that may also passes. A step of an upgrade ends with its first
// failure: the upgrade stops.
func quickly(in events.ReportRequest) bool {
	if names.MakesUpgrade(in.Cluster, in.Execution) {
		return false
	}
	if in.Error != "" && !quicklyPasses(in.Error) {
		return false
	}
	return !slices.ContainsFunc(in.Results, func(r events.ChangeResult) bool { return r.Error != "" && !quicklyPasses(r.Error) })
}

func quicklyPasses(name string) bool {
	faults := []string{fault.Name(&fault.Throttled{}), fault.Name(&fault.Transient{}), fault.Name(&fault.ClusterUnreachable{})}
	return slices.Contains(faults, name) || ofLambda(name)
}

// at is the time of the next try.
func at(now time.Time, pause time.Duration) *time.Time {
	next := now.Add(pause).UTC().Truncate(time.Second)
	return &next
}

// passing says whether everything that failed may go otherwise the next time.
func passing(in events.ReportRequest) bool {
	if in.Error != "" && !passes(in.Error, in.Cause) {
		return false
	}
	for _, result := range in.Results {
		if result.Error != "" && !passes(result.Error, result.Cause) {
			return false
		}
	}
	return true
}

// passes says whether one failure may go otherwise the next time: what AWS or the network did, what ended a function, and stacks that
// must be removed or turned back before anything else. A change that was taken back is none: a pool would replace its nodes
// again and again.
func passes(name, cause string) bool {
	switch name {
	case fault.Name(&fault.Throttled{}), fault.Name(&fault.Transient{}), fault.Name(&fault.ClusterUnreachable{}),
		fault.Name(&fault.Internal{}), "States.Timeout":
		return true
	case fault.Name(&fault.StackFailed{}):
		var result events.ChangeResult
		return json.Unmarshal([]byte(cause), &result) == nil && (stack.MustRecreate(result.Status) || result.Status == "UPDATE_ROLLBACK_FAILED")
	}
	return ofLambda(name)
}

// ofLambda says whether an error is Lambda's, or that of a function that crashed.
func ofLambda(name string) bool {
	return slices.ContainsFunc([]string{"Lambda.", "Runtime.", "Sandbox."}, func(family string) bool {
		return strings.HasPrefix(name, family)
	})
}
