package handler

// What failed is tried again by itself only if a later try can go otherwise and harms nobody, and after growing pauses: see
// docs/adr about retries.

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// pauses before each further try of the same spec; after the last one a person must act. The audit keeps them, to its own
// quarter of an hour.
var pauses = []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour}

// retry counts a failure and says when the next try is. One that was counted is not counted again: a report that died may have written
// it.
func (v verdict) retry(s *status.Status, now time.Time) {
	if s.Phase == status.Failed && s.Execution == v.execution && s.Message == v.Message {
		return
	}
	s.RetryAt = nil
	if v.again && s.Failures < len(pauses) {
		s.RetryAt = at(now, pauses[s.Failures])
	}
	s.Failures++
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
	case fault.Name(&fault.Throttled{}), fault.Name(&fault.Transient{}), fault.Name(&fault.ClusterUnreachable{}), fault.Name(&fault.Internal{}), "States.Timeout":
		return true
	case fault.Name(&fault.StackFailed{}):
		var result events.ChangeResult
		return json.Unmarshal([]byte(cause), &result) == nil && (plan.Broken(result.Status) || result.Status == "UPDATE_ROLLBACK_FAILED")
	}
	for _, family := range []string{"Lambda.", "Runtime.", "Sandbox."} {
		if strings.HasPrefix(name, family) {
			return true
		}
	}
	return false
}
