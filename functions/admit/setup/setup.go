// Package setup builds the admit function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/admit/handler"
	"github.com/drover-run/drover/shared/admission"
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
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
	specs := s3.NewBucket(bucketClient, env.Must(lambdaruntime.SpecsBucket))
	admitter := &admission.Admitter{
		Specs: specs, State: state, Machine: stepfunctions.New(sfn.NewFromConfig(cfg), env.Must(lambdaruntime.ConvergeARN)),
		Now: time.Now,
	}
	return &handler.Handler{Admitter: admitter, State: state, Specs: specs}
}
