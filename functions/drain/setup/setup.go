// Package setup builds the drain function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/drover-run/drover/functions/drain/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	clusters := kube.NewClusters(cfg, kube.WithTransport(env.Transport), kube.WithRole(env.Role(cfg.Region, "drain"), kube.DrainGroup),
		kube.WithRelay(relay.To(lambda.New(cfg))))
	return &handler.Handler{
		Clusters: kube.Opener[handler.Cluster]{Clusters: clusters, As: func(c *kube.Cluster) handler.Cluster { return drainer.NewCluster(c) }},
		Groups:   autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
		State:    documents.New(cfg, env).State(notices.New(cfg, env)),
		Slice:    50 * time.Second, JoinGrace: 10 * time.Second, Now: time.Now, Metrics: env.Output,
	}
}
