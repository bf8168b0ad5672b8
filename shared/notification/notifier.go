package notification

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/metrics"
	"github.com/drover-run/drover/shared/status"
)

// Topic publishes to users.
type Topic interface {
	Publish(ctx context.Context, subject, message string, attributes map[string]string) error
}

// Bus delivers events to tools.
type Bus interface {
	Put(ctx context.Context, notices []Notice) error
}

// Notifier sends notices before a change is written. It implements store.Notifier. It also counts phases of clusters and upgrades in
// metrics.
type Notifier struct {
	topic   Topic
	bus     Bus
	metrics io.Writer
	now     func() time.Time
}

// New returns a notifier. It writes metrics in the embedded metric format to out.
func New(topic Topic, bus Bus, out io.Writer, now func() time.Time) *Notifier {
	return &Notifier{topic: topic, bus: bus, metrics: out, now: now}
}

// StatusChanging sends the notices of a change that are not in sent, adds them to sent, and records a failure in after.
func (n *Notifier) StatusChanging(ctx context.Context, cluster string, before, after *status.Status, sent map[string]bool) error {
	notices := slices.DeleteFunc(Diff(cluster, before, after), func(notice Notice) bool { return sent[identity(notice)] })
	if err := n.send(ctx, notices); err != nil {
		return err
	}
	for _, notice := range notices {
		sent[identity(notice)] = true
	}
	RecordSent(before, after)
	if phase := "phase " + string(after.Phase); before.Phase != after.Phase && !sent[phase] {
		sent[phase] = true
		if err := metrics.Count(n.metrics, n.now(), "ClusterPhase", "phase", string(after.Phase)); err != nil {
			return err
		}
	}
	for _, notice := range notices {
		if change, ok := notice.Detail.(events.UpgradeChange); ok {
			if err := n.measureUpgrade(change, before, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// identity is equal for equal notices.
func identity(n Notice) string {
	detail, _ := json.Marshal(n.Detail) // of plain fields
	return n.DetailType + string(detail)
}

// measureUpgrade counts a new phase of an upgrade, and writes the duration of an upgrade that ended. Steps belong to one phase.
func (n *Notifier) measureUpgrade(sent events.UpgradeChange, before, after *status.Status) error {
	for _, u := range []*status.Upgrade{before.Upgrade, before.NextUpgrade} {
		if u != nil && u.Phase == sent.Phase && u.Execution == sent.Execution {
			return nil
		}
	}
	if err := metrics.Count(n.metrics, n.now(), "UpgradePhase", "phase", sent.Phase); err != nil {
		return err
	}
	u := after.Upgrade
	if u == nil || u.Phase != sent.Phase || u.Execution != sent.Execution || u.Started == nil || u.Ended == nil {
		return nil
	}
	return metrics.Took(n.metrics, n.now(), "UpgradeDuration", u.Ended.Sub(*u.Started), "phase", sent.Phase)
}

// ReleaseChanging sends the notices of a new verdict on a release.
func (n *Notifier) ReleaseChanging(ctx context.Context, release string, before, after *status.ReleaseStatus) error {
	return n.send(ctx, DiffRelease(release, before, after))
}

// IgnoredChanging sends the notices of new uploads that drover does not read.
func (n *Notifier) IgnoredChanging(ctx context.Context, before, after []status.IgnoredUpload) error {
	return n.send(ctx, DiffIgnored(before, after))
}

func (n *Notifier) send(ctx context.Context, notices []Notice) error {
	if len(notices) == 0 {
		return nil
	}
	if err := n.bus.Put(ctx, notices); err != nil {
		return err
	}
	for _, notice := range notices {
		if err := n.topic.Publish(ctx, notice.Subject, notice.Message, notice.Attributes); err != nil {
			return err
		}
	}
	return nil
}
