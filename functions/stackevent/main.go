// The stackevent function records stack statuses and resumes the step that waits for a stack.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/stackevent/handler"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/executions"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/notify"
	"github.com/drover-run/drover/shared/resume"
	"github.com/drover-run/drover/shared/stacks"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := environment.AWS()
	state := store.NewState(store.NewBucket(environment.S3(cfg), environment.Must(environment.StateBucket)), time.Now)
	state.Tell = notify.New(cfg, environment.Must(environment.TopicARN), os.Stdout, time.Now).Tell
	h := &handler.Handler{State: state, Now: time.Now, Resume: &resume.Resumer{
		Steps: executions.New(sfn.NewFromConfig(cfg), ""), State: state, Now: time.Now,
		Stacks: stacks.New(cloudformation.NewFromConfig(cfg), nil, ""), Groups: groups.New(autoscaling.NewFromConfig(cfg)),
	}}
	lambda.Start(boundary.Wrap("stackevent", h.Handle))
}
