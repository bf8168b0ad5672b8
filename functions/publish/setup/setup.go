// Package setup builds the publish function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/functions/publish/handler"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/releases"
	"github.com/drover-run/drover/shared/store"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	bucketClient := s3.NewClient(cfg)
	topic, bus := sns.NewTopic(cfg, env.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	notifier := notification.New(topic, bus, env.Output, time.Now)
	state := store.NewState(s3.NewBucket(bucketClient, env.Must(lambdaruntime.StateBucket)), notifier, time.Now)
	specs := s3.NewBucket(bucketClient, env.Must(lambdaruntime.SpecsBucket))
	checker := &releases.Checker{
		Specs: specs, State: state, EKS: eks.New(awseks.NewFromConfig(cfg)), Images: ec2.New(cfg), Now: time.Now,
	}
	return &handler.Handler{Checker: checker, State: state, Specs: specs}
}
