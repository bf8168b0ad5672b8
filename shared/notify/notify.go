// Package notify tells who listens: people by an SNS topic, their tools by an EventBridge bus.
package notify

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/metrics"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notice"
	"github.com/drover-run/drover/shared/status"
)

// Listeners hear what changes in the status of clusters.
type Listeners struct {
	topic   *Topic
	bus     *Bus
	metrics io.Writer
	now     func() time.Time
}

// New returns those who listen to the topic with that ARN and to drover's bus. Phases of clusters and upgrades are counted in metrics too.
func New(cfg aws.Config, topicARN string, out io.Writer, now func() time.Time) *Listeners {
	return &Listeners{
		topic: NewTopic(sns.NewFromConfig(cfg), topicARN), bus: NewBus(eventbridge.NewFromConfig(cfg), names.Bus), metrics: out, now: now,
	}
}

// StatusChanging tells of a change before it is written, so that it may be told twice, when writing fails for good, but never
// not at all. It notes what it told in what is to be written, and for the next try. It implements store.Notifier.
func (l *Listeners) StatusChanging(ctx context.Context, cluster string, before, after *status.Status, sent map[string]bool) error {
	notices := notice.Between(cluster, before, after)
	notices = slices.DeleteFunc(notices, func(n notice.Notice) bool { return sent[once(n)] })
	if err := l.send(ctx, notices); err != nil {
		return err
	}
	for _, n := range notices {
		sent[once(n)] = true
	}
	notice.Remember(before, after)
	if phase := "phase " + string(after.Phase); before.Phase != after.Phase && !sent[phase] {
		sent[phase] = true
		if err := metrics.Count(l.metrics, l.now(), "ClusterPhase", "phase", string(after.Phase)); err != nil {
			return err
		}
	}
	for _, n := range notices {
		if change, is := n.Detail.(events.UpgradeChange); is {
			if err := l.upgrade(change, before, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// once is what makes a notice the same as another.
func once(n notice.Notice) string {
	detail, _ := json.Marshal(n.Detail) // of plain fields
	return n.DetailType + string(detail)
}

// upgrade counts the phases of upgrades, and measures those that are over. Steps are of one phase.
func (l *Listeners) upgrade(told events.UpgradeChange, before, after *status.Status) error {
	for _, u := range []*status.Upgrade{before.Upgrade, before.NextUpgrade} {
		if u != nil && u.Phase == told.Phase && u.Execution == told.Execution {
			return nil
		}
	}
	if err := metrics.Count(l.metrics, l.now(), "UpgradePhase", "phase", told.Phase); err != nil {
		return err
	}
	u := after.Upgrade
	if u == nil || u.Phase != told.Phase || u.Execution != told.Execution || u.Started == nil || u.Ended == nil {
		return nil
	}
	return metrics.Took(l.metrics, l.now(), "UpgradeDuration", u.Ended.Sub(*u.Started), "phase", told.Phase)
}

// ReleaseChanging tells of a verdict on a release before it is written, as StatusChanging does.
func (l *Listeners) ReleaseChanging(ctx context.Context, release string, before, after *status.ReleaseStatus) error {
	return l.send(ctx, notice.OfRelease(release, before, after))
}

// UnreadChanging notifies of uploads that drover does not read, as StatusChanging does.
func (l *Listeners) UnreadChanging(ctx context.Context, before, after []status.Unread) error {
	return l.send(ctx, notice.OfUnread(before, after))
}

func (l *Listeners) send(ctx context.Context, notices []notice.Notice) error {
	if len(notices) == 0 {
		return nil
	}
	if err := l.bus.Put(ctx, notices); err != nil {
		return err
	}
	for _, n := range notices {
		if err := l.topic.Publish(ctx, n.Subject, n.Message, n.Attributes); err != nil {
			return err
		}
	}
	return nil
}
