// The stackevent function records stack statuses and resumes the step that waits for a stack.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/stackevent/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

func main() {
	cfg := lambdaruntime.AWS()
	topic, bus := sns.NewTopic(cfg, lambdaruntime.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	notifier := notification.New(topic, bus, os.Stdout, time.Now)
	state := store.NewState(s3.NewBucket(s3.NewClient(cfg), lambdaruntime.Must(lambdaruntime.StateBucket)), notifier, time.Now)
	h := &handler.Handler{State: state, Now: time.Now, Resume: &waiter.Resumer{
		Steps: stepfunctions.New(sfn.NewFromConfig(cfg), ""), State: state, Now: time.Now,
		Stacks: cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, ""), Groups: autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
	}}
	lambda.Start(lambdaruntime.Wrap("stackevent", h.Handle))
}
