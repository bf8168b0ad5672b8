// Package setup builds the fleet function: its clients, its adapters and its handler.
package setup

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/fleet/handler"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/cloudwatch"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/store"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	return &handler.Handler{
		Specs: docs.Specs(), State: docs.State(store.Silent), // it changes no status
		Stacks:     cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, ""),
		Executions: stepfunctions.New(sfn.NewFromConfig(cfg), env.Must(lambdaruntime.ConvergeARN)),
		Alarms:     cloudwatch.New(awscloudwatch.NewFromConfig(cfg)), Functions: lambda.New(cfg),
		Account: env.Must(lambdaruntime.Account), Region: cfg.Region,
		Limit: env.Count(lambdaruntime.CellLimit), Parallel: 16, Pause: pause, Now: time.Now,
	}
}

// pause waits before another attempt. Its length is random, so that concurrent calls do not conflict again.
func pause(ctx context.Context, attempt int) error {
	longest := min(time.Second, 50*time.Millisecond<<attempt)
	select {
	case <-time.After(rand.N(longest)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
