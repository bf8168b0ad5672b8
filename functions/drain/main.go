// The drain function takes the pods off a node before it goes, a minute's work at a time.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/functions/drain/handler"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/kube"
)

func main() {
	cfg := environment.AWS()
	h := &handler.Handler{
		Clusters: kube.NewClusters(eks.NewFromConfig(cfg), sts.NewFromConfig(cfg)),
		Groups:   groups.New(autoscaling.NewFromConfig(cfg)),
		Slice:    50 * time.Second, Now: time.Now, Metrics: os.Stdout,
	}
	lambda.Start(boundary.Wrap("drain", h.Handle))
}
