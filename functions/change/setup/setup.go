// Package setup builds the change function: its clients, its adapters and its handler.
package setup

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/change/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	state := docs.State(store.Silent)
	cloud := cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, env.Must(lambdaruntime.CloudFormationRole))
	pools := autoscaling.New(awsautoscaling.NewFromConfig(cfg))
	return &handler.Handler{
		Specs: docs.Specs(), State: state, Stacks: cloud,
		Clusters: eks.New(awseks.NewFromConfig(cfg)), Groups: pools,
		Resume: &waiter.Resumer{
			Tasks: stepfunctions.New(sfn.NewFromConfig(cfg), ""), Stacks: cloud, Groups: pools, State: state,
		},
		Now:          time.Now,
		TemplateBase: fmt.Sprintf("https://%s.s3.%s.%s", state.Name(), cfg.Region, names.DNSSuffix(env.Must(lambdaruntime.Partition))),
	}
}
