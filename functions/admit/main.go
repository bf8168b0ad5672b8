// The admit function reads uploaded specs and starts to converge their clusters.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
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

func main() {
	cfg := lambdaruntime.AWS()
	bucketClient := s3.NewClient(cfg)
	topic, bus := sns.NewTopic(cfg, lambdaruntime.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	notifier := notification.New(topic, bus, os.Stdout, time.Now)
	state := store.NewState(s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.StateBucket)), notifier, time.Now)
	specs := s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.SpecsBucket))
	admitter := &admission.Admitter{
		Specs: specs, State: state, Machine: stepfunctions.New(sfn.NewFromConfig(cfg), lambdaruntime.Must(lambdaruntime.ConvergeARN)),
		Now: time.Now,
	}
	h := &handler.Handler{Admitter: admitter, State: state, Specs: specs}
	lambda.Start(lambdaruntime.Wrap("admit", h.Handle))
}
