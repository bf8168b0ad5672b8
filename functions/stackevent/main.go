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
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/notify"
	"github.com/drover-run/drover/shared/resume"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := environment.AWS()
	state := store.NewState(store.NewBucket(environment.S3(cfg), environment.Must(environment.StateBucket)), time.Now)
	state.Tell = notify.New(cfg, environment.Must(environment.TopicARN), os.Stdout, time.Now).Tell
	h := &handler.Handler{State: state, Now: time.Now, Resume: &resume.Resumer{
		Steps: stepfunctions.New(sfn.NewFromConfig(cfg), ""), State: state, Now: time.Now,
		Stacks: cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, ""), Groups: autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
	}}
	lambda.Start(boundary.Wrap("stackevent", h.Handle))
}
