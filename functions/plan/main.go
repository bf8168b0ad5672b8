// The plan function decides what a cluster needs.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/plan/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := lambdaruntime.AWS()
	bucketClient := s3.NewClient(cfg)
	state := s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.StateBucket))
	topic, bus := sns.NewTopic(cfg, lambdaruntime.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	notifier := notification.New(topic, bus, os.Stdout, time.Now)
	told := store.NewState(state, notifier, time.Now)
	p := &planner.Planner{
		Specs: s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.SpecsBucket)), State: told,
		Stacks: cloudformation.New(awscloudformation.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), ""),
		Groups: autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
		EKS:    eks.New(awseks.NewFromConfig(cfg)),
		Cell: render.Cell{
			Partition: lambdaruntime.Must(lambdaruntime.Partition), Region: cfg.Region,
			Account: lambdaruntime.Must(lambdaruntime.Account), StateBucket: state.Name(),
		},
		Now: time.Now,
	}
	h := &handler.Handler{Planner: p, State: told, Executions: stepfunctions.New(sfn.NewFromConfig(cfg), ""), Now: time.Now}
	lambda.Start(lambdaruntime.Wrap("plan", h.Handle))
}
