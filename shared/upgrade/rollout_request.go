package upgrade

// Upgrades that runs of rollouts request, and the freezes that hold upgrades.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// RolloutRequest is what a run of a rollout requests for a cluster: a release by content. Only the attempt that Key names may begin.
type RolloutRequest struct {
	// Key is that of the future Start. It names the attempt, so each attempt starts one upgrade.
	Key string
	// Release and SHA256 are the release by name and content.
	Release, SHA256 string
	// Rollback reports that the run rolls the cluster back. Release is then the previous release. Windows and freezes do not hold a rollback.
	Rollback bool
}

// IsRolloutKey reports whether the key of a request is that of an attempt of a rollout.
func IsRolloutKey(key string) bool { return strings.HasPrefix(key, "rollout ") }

// requestedByRollout returns the upgrade that a run of a rollout requests; nil if there is none, the cluster opted out, the release is
// deployed, or the attempt was answered. A blocked attempt is not retried: the run decides on another one.
func (in Situation) requestedByRollout() *request {
	a := in.Rollout
	if a == nil || in.Spec.Spec.Fleet.Release == api.FleetPinned || in.Deployed.Release == a.Release && !in.rollsBackUnfinished(a) {
		return nil
	}
	req := &request{
		start: &Start{Origin: OriginRollout, Key: a.Key, Release: a.Release, SHA256: a.SHA256, Rollback: a.Rollback},
		to:    Target{Release: a.Release, SHA256: a.SHA256},
	}
	if a.Rollback {
		req.start.Origin = OriginRollback
	}
	if in.answered(req.start) {
		return nil
	}
	if !a.Rollback {
		in.waitForWindow(req)
	}
	return in.resolveVersion(req)
}

// rollsBackUnfinished reports whether a run rolls back an upgrade that stopped before the cluster was pinned to its release.
func (in Situation) rollsBackUnfinished(a *RolloutRequest) bool {
	return a.Rollback && in.Record.LastChange().unfinished()
}

// releaseVersion returns the Kubernetes version of the release of a start.
func (in Situation) releaseVersion(s *Start) (string, error) {
	if s.SHA256 != "" {
		return in.PinnedVersion(s.Release, s.SHA256)
	}
	return in.KubernetesVersion(s.Release)
}

// freeze makes a request that could begin now wait until the end of the freeze that holds it. An upgrade with a due time
// waits for MissedAfter at most: then it is missed.
func (in Situation) freeze(req *request) {
	if in.Frozen == nil || req.blocked || req.unreadable != "" || req.start.Rollback || !req.at.IsZero() && req.at.After(in.Now) {
		return
	}
	stops := api.StopUpgrades
	if req.start.Origin == OriginRollout {
		stops = api.StopRollouts
	}
	freeze, until := in.Frozen(stops)
	if freeze == nil {
		return
	}
	req.message = fmt.Sprintf("the freeze %s delays it", freeze.Metadata.Name)
	if freeze.Spec.Reason != "" {
		req.message += ": " + freeze.Spec.Reason
	}
	if due := req.start.Due; !due.IsZero() && (until.IsZero() || due.Add(MissedAfter).Before(until)) {
		until = due.Add(MissedAfter)
	}
	if until.IsZero() {
		req.blocked = true
		return
	}
	req.at = until.UTC().Add(time.Second - 1).Truncate(time.Second) // rounded up: keys below due/ have whole seconds
}

// Of returns the upgrade of a request: this record, or the last one that changed the cluster; nil if neither is.
func (r *Record) Of(key string) *Record {
	for _, u := range []*Record{r, r.LastChange()} {
		if u != nil && u.Key == key {
			return u
		}
	}
	return nil
}

// HasAnswered reports whether an upgrade of a request has begun, this one or an earlier one.
func (r *Record) HasAnswered(key string) bool {
	return r != nil && slices.Contains(slices.Collect(maps.Values(r.Answered)), key)
}

// OvertakenBy reports whether the spec stops this upgrade because it names another release.
func (r *Record) OvertakenBy(spec *api.Cluster) bool {
	return spec != nil && !spec.Spec.Paused && r.SupersededReason(spec) != ""
}

// RequestsOther reports whether the spec takes precedence over a rollout to a release: it opts out, or it names a release that is neither
// deployed nor that one.
func (r *Record) RequestsOther(spec *api.Cluster, deployed Target, release string) bool {
	if spec == nil {
		return false
	}
	if spec.Spec.Fleet.Release == api.FleetPinned {
		return true
	}
	wants := spec.Spec.Release.Name
	return !r.targetApplies(spec) && wants != deployed.Release && wants != release
}
