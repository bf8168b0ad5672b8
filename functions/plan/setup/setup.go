// Package setup builds the plan function: its clients, its adapters and its handler.
package setup

import (
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	awsservicequotas "github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/plan/handler"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/iam"
	"github.com/drover-run/drover/shared/aws/kms"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/aws/servicequotas"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/doctor/collect"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/render"
)

// relayFile is the code of relays in the package of the function.
const relayFile = "relay.zip"

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	state := docs.State(notices.New(cfg, env))
	relayCode, _ := render.ParseRelayCode(env.Must(lambdaruntime.Relay))
	functions := lambda.New(cfg)
	eksClient := eks.New(awseks.NewFromConfig(cfg))
	capacity, networks := ec2.New(cfg), ec2.NewNetworks(cfg, env.Must(lambdaruntime.Account))
	p := &planner.Planner{
		Images: capacity, Capacity: capacity, Networks: networks, Keys: kms.New(cfg), Relay: relayCode, Functions: functions,
		RelayFile: func() ([]byte, error) {
			return os.ReadFile(filepath.Join(env.Variables[lambdaruntime.TaskRoot], relayFile))
		},
		Specs: docs.Specs(), State: state,
		Stacks: cloudformation.New(awscloudformation.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), ""),
		Groups: autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
		EKS:    eksClient,
		Account: &collect.Collector{
			Account: env.Must(lambdaruntime.Account), Region: cfg.Region, Now: time.Now,
			Quotas:   servicequotas.New(awsservicequotas.NewFromConfig(cfg)),
			Networks: networks, Capacity: capacity, EKS: eksClient,
			Identities: iam.New(cfg), Functions: functions,
		},
		Settings: env.Cell(),
		Cell: render.Cell{
			Partition: env.Must(lambdaruntime.Partition), Region: cfg.Region,
			Account: env.Must(lambdaruntime.Account), StateBucket: state.Name(),
		},
	}
	h := &handler.Handler{Planner: p, State: state, Executions: stepfunctions.New(sfn.NewFromConfig(cfg), ""), Now: time.Now}
	p.Now = func() time.Time { return h.Now() } // one clock for both
	return h
}
