// Package setup builds the report function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/drover-run/drover/functions/report/handler"
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/store"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	bucketClient := s3.NewClient(cfg)
	topic, bus := sns.NewTopic(cfg, env.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	notifier := notification.New(topic, bus, env.Output, time.Now)
	state := store.NewState(s3.NewBucket(bucketClient, env.Must(lambdaruntime.StateBucket)), notifier, time.Now)
	return &handler.Handler{
		Specs: s3.NewBucket(bucketClient, env.Must(lambdaruntime.SpecsBucket)), State: state, Now: time.Now,
	}
}
