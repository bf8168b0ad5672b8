// Package setup builds the sweep function: its clients, its adapters and its handler.
package setup

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/functions/sweep/handler"
	"github.com/drover-run/drover/shared/admission"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/lambdaruntime/documents"
	"github.com/drover-run/drover/shared/lambdaruntime/notices"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/releases"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/store/cache"
	"github.com/drover-run/drover/shared/waiter"
)

// New returns the handler of the function. A caller may replace any exported field before the first event.
func New(cfg aws.Config, env lambdaruntime.Env) *handler.Handler {
	docs := documents.New(cfg, env)
	state, specs := docs.State(notices.New(cfg, env)), docs.Specs()
	cloudformationClient := cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, "")
	steps := sfn.NewFromConfig(cfg)
	pools, eksClient := autoscaling.New(awsautoscaling.NewFromConfig(cfg)), eks.New(awseks.NewFromConfig(cfg))
	machine := stepfunctions.New(steps, env.Must(lambdaruntime.ConvergeARN))
	instances, settings := ec2.New(cfg), env.Cell()
	functions, snapshot := lambda.New(cfg), cache.NewSnapshot(state, time.Now)
	h := &handler.Handler{
		State: state, Stacks: cloudformationClient, Groups: pools, EKS: eksClient, Snapshot: snapshot, Instances: instances,
		Functions: functions, Fleet: functions, Cell: names.Cell(env.Must(lambdaruntime.Account), cfg.Region),
		Nodes: kube.NewClusters(cfg, kube.WithTransport(env.Transport), kube.WithRole(env.Role(cfg.Region, "sweep"), kube.SweepGroup),
			kube.WithRelay(relay.To(functions))),
		Executions: machine,
		Upgrade:    stepfunctions.NewMachine(steps, env.Must(lambdaruntime.UpgradeARN)),
		JoinNode:   stepfunctions.NewMachine(steps, env.Must(lambdaruntime.JoinARN)),
		DrainNode:  stepfunctions.NewMachine(steps, env.Must(lambdaruntime.DrainARN)),
		Resumer:    &waiter.Resumer{Tasks: machine, Stacks: cloudformationClient, Groups: pools, State: state},
		Admit:      &admission.Admitter{Specs: specs, State: state, Machine: machine, Now: time.Now, Settings: settings},
		Releases: &releases.Checker{
			Specs: specs, State: state, EKS: eksClient, Images: instances, Region: cfg.Region, Settings: settings, Now: time.Now,
		},
		Parallel: 16,
		// S3's events usually arrive within seconds.
		EventGrace: 2 * time.Minute, Now: time.Now,
	}
	// The cache compares the times of listings with the clock of the handler.
	specCache := cache.NewETagCache(specs, func() time.Time { return h.Now() }, names.ClusterSpecs, names.ReleaseSpecs)
	h.Specs = specCache
	relayCode, _ := render.ParseRelayCode(env.Must(lambdaruntime.Relay))
	h.Planner = &planner.Planner{
		Specs: specCache, State: snapshot, Groups: pools, EKS: eksClient, Now: time.Now, Relay: relayCode,
		Functions: functions, Settings: settings,
		Cell: render.Cell{
			Partition: env.Must(lambdaruntime.Partition), Region: cfg.Region,
			Account: env.Must(lambdaruntime.Account), StateBucket: state.Name(),
		},
	}
	return h
}
