// The drain function takes the pods off a node before it goes, a minute's work at a time.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/functions/drain/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/notify"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := environment.AWS()
	state := store.NewState(store.NewBucket(environment.S3(cfg), environment.Must(environment.StateBucket)), time.Now)
	state.Tell = notify.New(cfg, environment.Must(environment.TopicARN), os.Stdout, time.Now).Tell
	h := &handler.Handler{
		Clusters: kube.NewClusters(eks.NewFromConfig(cfg), sts.NewFromConfig(cfg)),
		Groups:   autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
		State:    state,
		Slice:    50 * time.Second, Late: 10 * time.Second, Now: time.Now, Metrics: os.Stdout,
	}
	lambda.Start(boundary.Wrap("drain", h.Handle))
}
