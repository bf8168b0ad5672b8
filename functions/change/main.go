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
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/resume"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg, bucket := environment.AWS(), environment.Must(environment.StateBucket)
	s3 := environment.S3(cfg)
	state := store.NewState(store.NewBucket(s3, bucket), time.Now)
	cloud := cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, environment.Must(environment.CloudFormationRole))
	pools := autoscaling.New(awsautoscaling.NewFromConfig(cfg))
	h := &handler.Handler{
		Specs: store.NewBucket(s3, environment.Must(environment.SpecsBucket)), State: state, Stacks: cloud,
		Clusters: eks.New(awseks.NewFromConfig(cfg)), Groups: pools,
		Resume: &resume.Resumer{
			Steps: stepfunctions.New(sfn.NewFromConfig(cfg), ""), Stacks: cloud, Groups: pools, State: state, Now: time.Now,
		},
		TemplateBase: fmt.Sprintf("https://%s.s3.%s.%s", bucket, cfg.Region, names.DNSSuffix(environment.Must(environment.Partition))),
	}
	lambda.Start(boundary.Wrap("change", h.Handle))
}
