// The change function changes one stack of a plan.
package main

import (
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/change/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

func main() {
	cfg, bucket := lambdaruntime.AWS(), lambdaruntime.Must(lambdaruntime.StateBucket)
	bucketClient := s3.NewClient(cfg)
	state := store.NewState(s3.NewBucket(bucketClient, bucket), store.Silent, time.Now)
	cloud := cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, lambdaruntime.Must(lambdaruntime.CloudFormationRole))
	pools := autoscaling.New(awsautoscaling.NewFromConfig(cfg))
	h := &handler.Handler{
		Specs: s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.SpecsBucket)), State: state, Stacks: cloud,
		Clusters: eks.New(awseks.NewFromConfig(cfg)), Groups: pools,
		Resume: &waiter.Resumer{
			Steps: stepfunctions.New(sfn.NewFromConfig(cfg), ""), Stacks: cloud, Groups: pools, State: state, Now: time.Now,
		},
		TemplateBase: fmt.Sprintf("https://%s.s3.%s.%s", bucket, cfg.Region, names.DNSSuffix(lambdaruntime.Must(lambdaruntime.Partition))),
	}
	lambda.Start(lambdaruntime.Wrap("change", h.Handle))
}
