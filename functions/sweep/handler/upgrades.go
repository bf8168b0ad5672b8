package handler

// Upgrades that did not begin when they were to, and those whose execution ended without a word.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// busy tells of an upgrade whose time came while its cluster is being converged. What is asked for while another upgrade is under way, such
// as by a channel that moved, planning has yet to see: it tells of it, and finds that the cluster is busy.
func (h *Handler) busy(ctx context.Context, due store.Due, holder string) error {
	if err := h.late(ctx, due.Cluster, due.At, "waits for "+holder); err != nil {
		return err
	}
	document, err := h.State.Status(ctx, due.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if s := document.Status; underWay(s.Upgrade) && s.NextUpgrade == nil {
		return h.Executions.Converge(ctx, due.Cluster, s.SpecVersion, "behind "+due.At.UTC().Format(time.RFC3339)) // once for each time
	}
	return nil
}

// underWay says whether an upgrade is being made, by the status.
func underWay(u *status.Upgrade) bool {
	return u != nil && (u.Phase == string(upgrade.Checking) || u.Phase == string(upgrade.Running)) && u.Execution != ""
}

// late tells of an upgrade that was to begin at a time and did not: after half an hour it is delayed, after two hours it is missed.
func (h *Handler) late(ctx context.Context, cluster string, at time.Time, why string) error {
	late := h.Now().Sub(at)
	if late < upgrade.Delayed {
		return nil
	}
	phase, spec := status.UpgradeDelayed, (*api.Cluster)(nil)
	if late >= upgrade.Late {
		phase = status.UpgradeMissed
		var err error
		if spec, err = h.spec(ctx, cluster); err != nil {
			return err
		}
	}
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		for _, u := range []*status.Upgrade{s.Upgrade, s.NextUpgrade} {
			if u == nil || !status.ToCome(u.Phase) || u.Phase == phase || u.Phase == status.UpgradeMissed || u.At == nil || !u.At.Equal(at) {
				continue
			}
			u.Phase, u.Message = phase, fmt.Sprintf("it was to begin at %s and %s", at.UTC().Format(time.RFC3339), why)
			if phase == status.UpgradeDelayed {
				continue
			}
			u.Message += fmt.Sprintf(", for %s by now. %s", upgrade.Late, upgrade.Again(spec, upgrade.Origin(u.Origin), h.Now()))
			s.Remember(*u)
			if u == s.Upgrade { // otherwise it is about the one that is under way
				s.Set(status.Condition{Type: status.Upgraded, Status: "False", Reason: status.ReasonUpgradeMissed, Message: u.Message}, h.Now())
			}
		}
	})
}

// spec returns the spec of a cluster; nil if there is no usable one.
func (h *Handler) spec(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, _, err := specs.Cluster(ctx, h.Specs, cluster)
	if specs.Missing(err) {
		return nil, nil
	}
	return spec, err
}

// settled are the records of upgrades that were seen to be over, by key and ETag, so that a running function need not read them again.
type settled struct {
	mu    sync.Mutex
	etags map[string]string
}

func (s *settled) is(e store.Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.etags[e.Key] == e.ETag
}

func (s *settled) add(e store.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etags == nil {
		s.etags = map[string]string{}
	}
	s.etags[e.Key] = e.ETag
}

// upgrades looks for those whose execution is over and did not say so: it was stopped by hand, ran out of time, or could not tell.
func (h *Handler) upgrades(ctx context.Context) error {
	entries, err := h.State.List(ctx, names.Upgrades)
	if err != nil {
		return err
	}
	unsettled := map[string]store.Entry{}
	for _, entry := range entries {
		if !h.settled.is(entry) {
			unsettled[strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Upgrades), ".json")] = entry
		}
	}
	return each(max(1, h.Parallel), slices.Sorted(maps.Keys(unsettled)), func(cluster string) error {
		record, _, err := h.State.Upgrade(ctx, cluster)
		if err != nil || record == nil {
			return err
		}
		if record.State.Over() {
			h.settled.add(unsettled[cluster])
			return nil
		}
		return h.leader(ctx, cluster, record.Execution)
	})
}

// leader of an upgrade that is under way: if it is over it is told of by another execution, which knows how to end an upgrade. That is
// tried at each sweep until it is done, and twice in the same one is once.
func (h *Handler) leader(ctx context.Context, cluster, execution string) error {
	running, err := h.Executions.Running(ctx, execution)
	if err != nil || running {
		return err
	}
	logging.From(ctx).Warn("an upgrade ended without a word", "cluster", cluster, "execution", execution)
	at := h.Now().UTC().Truncate(5 * time.Minute)
	return h.Upgrade.Start(ctx, names.UpgradeStart(cluster, names.EndedKey(execution, at), 0, at),
		events.Upgrade{Cluster: cluster, Ended: execution})
}

// upgrading looks after a cluster whose upgrade is under way by its status, or was to begin.
func (r *round) upgrading(ctx context.Context, cluster string, s *status.Status) (done bool, err error) {
	u := s.Upgrade
	if next := s.NextUpgrade; u != nil && r.waits(next) {
		if err := r.behind(ctx, cluster, *next, u.To); err != nil {
			return false, err
		}
	}
	switch {
	case u == nil:
		return false, nil
	case underWay(u):
		// Its record may be over, and that was not told.
		return false, r.leader(ctx, cluster, u.Execution)
	case s.NextUpgrade != nil && s.NextUpgrade.Execution == "" && s.Phase == status.Ready && u.Ended != nil:
		return r.repeat(ctx, cluster, s, names.RetryNextUpgrade, *u.Ended)
	case s.Phase == status.Upgrading && u.Ended != nil:
		// Whoever said so knew nothing of its end, and nobody is at it who would say more.
		return r.repeat(ctx, cluster, s, names.RetryAfterUpgrade, *u.Ended)
	case r.waits(u):
		return r.overdue(ctx, cluster, s)
	}
	return false, nil
}

// untold says whether an upgrade is to come that no status tells of: whoever was to plan it, as when a channel moved, was stopped before it
// did. What planning has told of waits for its time, or begins; what is over is not to come. A cluster that failed waits for its next try,
// and one that is upgraded is told what comes after.
func (r *round) untold(cluster string, s *status.Status, next *status.Upgrade) bool {
	return next != nil && s.ToldOf(next) == nil && (s.Phase == status.Ready || s.Phase == status.Stopped) && !r.due[cluster]
}

// waits says whether an upgrade was to begin and did not, and may be late.
func (r *round) waits(u *status.Upgrade) bool {
	return u != nil && status.ToCome(u.Phase) && u.Phase != status.UpgradeMissed && u.At != nil && r.now.Sub(*u.At) >= period
}

// behind looks after an upgrade that waits for the one that is under way.
func (r *round) behind(ctx context.Context, cluster string, next status.Upgrade, to string) error {
	if told, err := r.tells(ctx, cluster, next); told || err != nil {
		return err
	}
	return r.late(ctx, cluster, *next.At, fmt.Sprintf("waits for the upgrade to %s, which is under way", to))
}

// tells says whether an execution waits to begin an upgrade, and so tells of it itself. One that is over waits for nothing: what is left of
// it is planning's to take back.
func (r *round) tells(ctx context.Context, cluster string, u status.Upgrade) (bool, error) {
	if u.Execution == "" {
		return false, nil
	}
	running, err := r.Executions.Running(ctx, u.Execution)
	if err != nil || running {
		return running, err
	}
	return false, r.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		for _, o := range []*status.Upgrade{s.Upgrade, s.NextUpgrade} {
			if o != nil && o.Execution == u.Execution && status.ToCome(o.Phase) {
				o.Execution = ""
			}
		}
	})
}

// overdue looks after an upgrade that was to begin. Whatever its cluster is at, it is told to be late; where nothing is in its way,
// planning never saw it, or its execution, and does once more.
func (r *round) overdue(ctx context.Context, cluster string, s *status.Status) (done bool, err error) {
	if told, err := r.tells(ctx, cluster, *s.Upgrade); told || err != nil {
		return false, err
	}
	at, why := *s.Upgrade.At, fmt.Sprintf("the cluster is %s", s.Phase)
	if s.Message != "" {
		why += ": " + s.Message
	}
	if lacks := lacks(s.Upgrade); lacks != "" {
		why = "cannot yet: " + lacks
	}
	if err := r.late(ctx, cluster, at, why); err != nil {
		return false, err
	}
	if r.due[cluster] {
		return false, nil // the sweep starts it
	}
	accepted := s.Condition(status.SpecAccepted)
	if (s.Phase == status.Ready || s.Phase == status.Upgrading) && (accepted == nil || accepted.Status == "True") {
		return true, r.start(ctx, cluster, s, names.RetryUpgradeNotBegun)
	}
	return false, nil
}
