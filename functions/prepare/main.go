// The prepare function grants drover's other functions access to a cluster.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/functions/prepare/handler"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := lambdaruntime.AWS()
	clusters := kube.NewClusters(eks.NewFromConfig(cfg), sts.NewFromConfig(cfg))
	h := &handler.Handler{
		Clusters: kube.Opener[handler.Cluster]{Clusters: clusters, As: func(c *kube.Cluster) handler.Cluster { return c }},
		State:    store.NewState(s3.NewBucket(s3.NewClient(cfg), lambdaruntime.Must(lambdaruntime.StateBucket)), store.Silent, time.Now),
		Timeout:  80 * time.Second, Pause: 2 * time.Second,
	}
	lambda.Start(lambdaruntime.Wrap("prepare", h.Handle))
}
