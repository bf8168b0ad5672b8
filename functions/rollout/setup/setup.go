// Package setup builds the rollout function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/drover-run/drover/functions/rollout/handler"
	"github.com/drover-run/drover/shared/aws/cloudwatch"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
	"github.com/drover-run/drover/shared/names"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs, notifier := documents.New(cfg, env), notices.New(cfg, env)
	return &handler.Handler{
		Specs: docs.Specs(), State: docs.State(notifier), Alarms: cloudwatch.New(awscloudwatch.NewFromConfig(cfg)),
		Functions: lambda.New(cfg), Notifier: notifier, Cell: names.Cell(env.Must(lambdaruntime.Account), cfg.Region), Now: time.Now,
	}
}
