// The drain function evicts the pods of a node before the node terminates, one slice a call.
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
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := lambdaruntime.AWS()
	topic, bus := sns.NewTopic(cfg, lambdaruntime.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	notifier := notification.New(topic, bus, os.Stdout, time.Now)
	state := store.NewState(s3.NewBucket(s3.NewClient(cfg), lambdaruntime.Must(lambdaruntime.StateBucket)), notifier, time.Now)
	clusters := kube.NewClusters(eks.NewFromConfig(cfg), sts.NewFromConfig(cfg))
	h := &handler.Handler{
		Clusters: kube.Opener[handler.Cluster]{Clusters: clusters, As: func(c *kube.Cluster) handler.Cluster { return drainer.NewCluster(c) }},
		Groups:   autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
		State:    state,
		Slice:    50 * time.Second, JoinGrace: 10 * time.Second, Now: time.Now, Metrics: os.Stdout,
	}
	lambda.Start(lambdaruntime.Wrap("drain", h.Handle))
}
