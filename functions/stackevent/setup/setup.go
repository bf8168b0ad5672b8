// Package setup builds the stackevent function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/stackevent/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
	"github.com/drover-run/drover/shared/waiter"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	state := documents.New(cfg, env).State(notices.New(cfg, env))
	return &handler.Handler{State: state, Now: time.Now, Resume: &waiter.Resumer{
		Tasks: stepfunctions.New(sfn.NewFromConfig(cfg), ""), State: state,
		Stacks: cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, ""), Groups: autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
	}}
}
