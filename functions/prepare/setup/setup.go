// Package setup builds the prepare function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/drover-run/drover/functions/prepare/handler"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/store"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	clusters := kube.NewClusters(cfg, kube.WithTransport(env.Transport), kube.WithRole(env.Role(cfg.Region, "prepare"), ""),
		kube.WithRelay(relay.To(lambda.New(cfg))))
	return &handler.Handler{
		Clusters: kube.Opener[handler.Cluster]{Clusters: clusters, As: func(c *kube.Cluster) handler.Cluster { return c }},
		State:    documents.New(cfg, env).State(store.Silent),
		Timeout:  80 * time.Second, Pause: 2 * time.Second,
	}
}
