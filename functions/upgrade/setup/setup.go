// Package setup builds the upgrade function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	awsservicequotas "github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/upgrade/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/cloudwatch"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/aws/servicequotas"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/kube/survey"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/preflight/collect"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/upgrade/checker"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	state, specs := docs.State(notices.New(cfg, env)), docs.Specs()
	cloudformationClient := cloudformation.New(awscloudformation.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), "")
	eksClient := eks.New(awseks.NewFromConfig(cfg))
	pools, cloudwatchClient := autoscaling.New(awsautoscaling.NewFromConfig(cfg)), cloudwatch.New(awscloudwatch.NewFromConfig(cfg))
	relayCode, _ := render.ParseRelayCode(env.Must(lambdaruntime.Relay))
	functions := lambda.New(cfg)
	signIn := kube.WithRole(env.Role(cfg.Region, "upgrade"), kube.UpgradeGroup)
	clusters, ec2Client := kube.NewClusters(cfg, kube.WithTransport(env.Transport), signIn,
		kube.WithRelay(relay.To(functions))), ec2.New(cfg)
	executions := stepfunctions.New(sfn.NewFromConfig(cfg), "")
	facts := &collect.Gatherer{
		Kubernetes: survey.New(clusters), EKS: eksClient, Groups: pools, Alarms: cloudwatchClient, Capacity: ec2Client,
		Quotas: servicequotas.New(awsservicequotas.NewFromConfig(cfg)), Now: time.Now,
	}
	return &handler.Handler{
		Checker: &checker.Checker{
			Specs: specs, State: state, Stacks: cloudformationClient, Executions: executions, EKS: eksClient, Facts: facts, Region: cfg.Region,
			Now: time.Now,
		},
		State: state, Stacks: cloudformationClient, Executions: executions, EKS: eksClient, Groups: pools, Alarms: cloudwatchClient,
		Nodes: clusters, Instances: ec2Client, Facts: facts,
		Planner: &planner.Planner{
			Specs: specs, State: state, Stacks: cloudformationClient, Groups: pools, EKS: eksClient, Now: time.Now, Relay: relayCode,
			Functions: functions, Settings: env.Cell(),
			Cell: render.Cell{
				Partition: env.Must(lambdaruntime.Partition), Region: cfg.Region,
				Account: env.Must(lambdaruntime.Account), StateBucket: state.Name(),
			},
		},
		// Waiting this long costs less than the state transitions of another call.
		Patience: 10 * time.Second, Pause: 2 * time.Second, Now: time.Now,
	}
}
