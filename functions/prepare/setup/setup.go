// Package setup builds the prepare function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/functions/prepare/handler"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/store"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	clusters := kube.NewClusters(eks.NewFromConfig(cfg), sts.NewFromConfig(cfg), kube.WithTransport(env.Transport))
	return &handler.Handler{
		Clusters: kube.Opener[handler.Cluster]{Clusters: clusters, As: func(c *kube.Cluster) handler.Cluster { return c }},
		State:    store.NewState(s3.NewBucket(s3.NewClient(cfg), env.Must(lambdaruntime.StateBucket)), store.Silent, time.Now),
		Timeout:  80 * time.Second, Pause: 2 * time.Second,
	}
}
