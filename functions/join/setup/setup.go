// Package setup builds the join function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/drover-run/drover/functions/join/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	clusters := kube.NewClusters(cfg, kube.WithTransport(env.Transport), kube.WithRole(env.Role(cfg.Region, "join"), kube.JoinGroup),
		kube.WithRelay(relay.To(lambda.New(cfg))))
	return &handler.Handler{
		Clusters: kube.Opener[handler.Cluster]{Clusters: clusters, As: func(c *kube.Cluster) handler.Cluster { return c }},
		Groups:   autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
		Stacks:   cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, ""),
		State:    documents.New(cfg, env).State(notices.New(cfg, env)),
		Limit:    14 * time.Minute,
		Grace:    50 * time.Second,
		// CloudFormation waits for signals of a batch for an hour at most.
		SignalLimit: time.Hour,
		// AWS lets a launch hook stay open for 48 hours at most: see ADR 32.
		HoldTimeout: 24 * time.Hour, Now: time.Now,
	}
}
