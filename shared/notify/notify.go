// Package notify tells who listens: people by an SNS topic, their tools by an EventBridge bus.
package notify

import (
	"context"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sns"

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

// New returns those who listen to the topic with that ARN and to drover's bus. Phases are counted in a metric too.
func New(cfg aws.Config, topicARN string, out io.Writer, now func() time.Time) *Listeners {
	return &Listeners{
		topic: NewTopic(sns.NewFromConfig(cfg), topicARN), bus: NewBus(eventbridge.NewFromConfig(cfg), names.Bus), metrics: out, now: now,
	}
}

// Tell tells of a change before it is written, so that it may be told twice, when writing fails, but never not at all: it is the
// Tell of a store.State.
func (l *Listeners) Tell(ctx context.Context, cluster string, before, after *status.Status) error {
	notices := notice.Between(cluster, before, after)
	if len(notices) == 0 {
		return nil
	}
	if err := l.send(ctx, notices); err != nil {
		return err
	}
	if before.Phase != after.Phase {
		return metrics.Count(l.metrics, l.now(), "ClusterPhase", "phase", string(after.Phase))
	}
	return nil
}

// TellRelease tells of a verdict on a release before it is written, as Tell does: it is the TellRelease of a store.State.
func (l *Listeners) TellRelease(ctx context.Context, release string, before, after *status.ReleaseStatus) error {
	notices := notice.OfRelease(release, before, after)
	if len(notices) == 0 {
		return nil
	}
	return l.send(ctx, notices)
}

func (l *Listeners) send(ctx context.Context, notices []notice.Notice) error {
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
