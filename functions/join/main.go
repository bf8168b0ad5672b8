// The join function lets an instance into service once it is a node that is Ready.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/functions/join/handler"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/stacks"
)

func main() {
	cfg := environment.AWS()
	h := &handler.Handler{
		Clusters: kube.NewClusters(eks.NewFromConfig(cfg), sts.NewFromConfig(cfg)),
		Groups:   groups.New(autoscaling.NewFromConfig(cfg)),
		Stacks:   stacks.New(cloudformation.NewFromConfig(cfg), nil, ""),
		Watch:    50 * time.Second,
		// The launch hook gives 15 minutes: see the pool's template.
		Limit: 14 * time.Minute,
		// CloudFormation waits for signals of a batch for an hour at most.
		SignalLimit: time.Hour, Now: time.Now,
	}
	lambda.Start(boundary.Wrap("join", h.Handle))
}
