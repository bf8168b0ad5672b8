// The publish function checks uploaded releases: whether everything that they name exists.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
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

func main() {
	cfg := lambdaruntime.AWS()
	bucketClient := s3.NewClient(cfg)
	topic, bus := sns.NewTopic(cfg, lambdaruntime.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	notifier := notification.New(topic, bus, os.Stdout, time.Now)
	state := store.NewState(s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.StateBucket)), notifier, time.Now)
	specs := s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.SpecsBucket))
	checker := &releases.Checker{
		Specs: specs, State: state, EKS: eks.New(awseks.NewFromConfig(cfg)), Images: ec2.New(cfg), Now: time.Now,
	}
	h := &handler.Handler{Checker: checker, State: state, Specs: specs}
	lambda.Start(lambdaruntime.Wrap("publish", h.Handle))
}
