package handler

// Retries. drover retries a failure only if a retry can succeed and is harmless, after growing pauses. See
// docs/adr/0010-retry-of-a-failed-converge.md.

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

// scheduleRetry counts a failure and sets the time of the next retry. If an earlier call of this report counted it
// already, it changes nothing.
func (v verdict) scheduleRetry(s *status.Status, now time.Time) {
	if s.Phase == status.Failed && s.Execution == v.execution && s.FailedTry == v.try && s.Message == v.Message {
		return
	}
	s.FailedTry = v.try
	s.RetryAt = nil
	next := slices.Concat(v.quick, backoff.Retries)
	if v.retryable && s.Failures < len(next) {
		s.RetryAt = retryTime(now, next[s.Failures])
	}
	s.Failures++
}

// secondsUntilRetry returns the seconds that the execution waits before its retry; 0 if it ends. It ends if another
// execution has the cluster, or if the audit makes the next retry.
func (h *Handler) secondsUntilRetry(ctx context.Context, in events.ReportRequest, quick []time.Duration) (seconds int64, err error) {
	document, err := h.State.Status(ctx, in.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	s := document.Status
	if s.Phase != status.Failed || s.Execution != in.Execution || s.RetryAt == nil || s.Failures > len(quick) {
		return 0, nil
	}
	return max(0, int64(s.RetryAt.Sub(h.Now())/time.Second)) + 1, nil
}

// quickRetries returns the pauses before the first retries, if every failure may pass within minutes. A step of an upgrade is never retried
// quickly: its first failure stops the upgrade.
func quickRetries(in events.ReportRequest) []time.Duration {
	if names.IsUpgradeStep(in.Cluster, in.Execution) {
		return nil
	}
	pauses := backoff.QuickRetries
	for _, failure := range append([]events.ChangeResult{{Error: in.Error, Cause: in.Cause}}, in.Results...) {
		switch {
		case failure.Error == "", passesSoon(failure.Error):
		case lacksNewPermission(failure.Error, failure.Cause):
			pauses = backoff.PermissionRetries
		default:
			return nil
		}
	}
	return pauses
}

// deniedByKey is AWS's reason if a key's policy, or a role, does not allow an action of KMS.
const deniedByKey = "is not authorized to perform: kms:"

// lacksNewPermission reports whether a stack could not be created because AWS denied the use of its key. The stack also creates the key,
// its policy and the role that uses it, and their permissions may count minutes later. The failed stack holds nothing.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
func lacksNewPermission(name, cause string) bool {
	var result events.ChangeResult
	return name == fault.Name(&fault.StackFailed{}) && json.Unmarshal([]byte(cause), &result) == nil && stack.MustRecreate(result.Status) &&
		strings.Contains(result.Cause, deniedByKey)
}

// passesSoon reports whether a failure with this name often passes within minutes.
func passesSoon(name string) bool {
	faults := []string{fault.Name(&fault.Throttled{}), fault.Name(&fault.Transient{}), fault.Name(&fault.ClusterUnreachable{})}
	return slices.Contains(faults, name) || isLambdaError(name)
}

// retryTime returns the time of the next retry.
func retryTime(now time.Time, pause time.Duration) *time.Time {
	next := now.Add(pause).UTC().Truncate(time.Second)
	return &next
}

// mayPass reports whether a retry of every failure may succeed.
func mayPass(in events.ReportRequest) bool {
	if in.Error != "" && !isRetryable(in.Error, in.Cause) {
		return false
	}
	for _, result := range in.Results {
		if result.Error != "" && !isRetryable(result.Error, result.Cause) {
			return false
		}
	}
	return true
}

// isRetryable reports whether a retry of one failure may succeed: errors of AWS or the network, crashes and timeouts of a function, and
// stacks that must be recreated or rolled back first. A change that was rolled back is not retried: a pool would replace its nodes
// repeatedly.
func isRetryable(name, cause string) bool {
	switch name {
	case fault.Name(&fault.Throttled{}), fault.Name(&fault.Transient{}), fault.Name(&fault.ClusterUnreachable{}),
		fault.Name(&fault.Internal{}), "States.Timeout":
		return true
	case fault.Name(&fault.StackFailed{}):
		var result events.ChangeResult
		return json.Unmarshal([]byte(cause), &result) == nil && (stack.MustRecreate(result.Status) || result.Status == stack.UpdateRollbackFailed)
	}
	return isLambdaError(name)
}

// isLambdaError reports whether an error is Lambda's, or that of a function that crashed.
func isLambdaError(name string) bool {
	return slices.ContainsFunc([]string{"Lambda.", "Runtime.", "Sandbox."}, func(family string) bool {
		return strings.HasPrefix(name, family)
	})
}
