// Package setup builds the publish function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/functions/publish/handler"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
	"github.com/drover-run/drover/shared/releases"
	"github.com/drover-run/drover/shared/uploads"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	state, specs := docs.State(notices.New(cfg, env)), docs.Specs()
	checker := &releases.Checker{
		Specs: specs, State: state, EKS: eks.New(awseks.NewFromConfig(cfg)), Images: ec2.New(cfg), Region: cfg.Region,
		Settings: env.Cell(), Now: time.Now,
	}
	return &handler.Handler{Checker: checker, Uploads: uploads.Uploads{State: state, Specs: specs}}
}
