// The sweep function handles missed events, and audits clusters for drift.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/functions/sweep/audit"
	"github.com/drover-run/drover/functions/sweep/handler"
	"github.com/drover-run/drover/functions/sweep/sweep"
	"github.com/drover-run/drover/shared/admission"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/releases"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/cache"
	"github.com/drover-run/drover/shared/waiter"
)

func main() {
	cfg := lambdaruntime.AWS()
	bucketClient := s3.NewClient(cfg)
	specs := s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.SpecsBucket))
	specCache := cache.NewETagCache(specs, time.Now, names.ClusterSpecs, names.ReleaseSpecs)
	topic, bus := sns.NewTopic(cfg, lambdaruntime.Must(lambdaruntime.TopicARN)), eventbridge.NewBus(cfg, names.Bus)
	notifier := notification.New(topic, bus, os.Stdout, time.Now)
	state := store.NewState(s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.StateBucket)), notifier, time.Now)
	cloud := cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, "")
	steps := sfn.NewFromConfig(cfg)
	pools, offered := autoscaling.New(awsautoscaling.NewFromConfig(cfg)), eks.New(awseks.NewFromConfig(cfg))
	machine := stepfunctions.New(steps, lambdaruntime.Must(lambdaruntime.ConvergeARN))
	snapshot := cache.NewSnapshot(state, time.Now)
	deps := &sweep.Deps{
		Specs: specCache, State: state, Stacks: cloud, Groups: pools,
		Resume:     &waiter.Resumer{Steps: machine, Stacks: cloud, Groups: pools, State: state, Now: time.Now},
		Executions: machine, Start: machine,
		Upgrade:   stepfunctions.NewMachine(steps, lambdaruntime.Must(lambdaruntime.UpgradeARN)),
		JoinNode:  stepfunctions.NewMachine(steps, lambdaruntime.Must(lambdaruntime.JoinARN)),
		DrainNode: stepfunctions.NewMachine(steps, lambdaruntime.Must(lambdaruntime.DrainARN)),
		Admit:     &admission.Admitter{Specs: specs, State: state, Machine: machine, Now: time.Now},
		Publish:   &releases.Checker{Specs: specs, State: state, EKS: offered, Images: ec2.New(cfg), Now: time.Now},
		Parallel:  16,
		// S3's events usually arrive within seconds.
		Patience: 2 * time.Minute, Now: time.Now,
	}
	h := handler.New(&audit.Deps{
		Deps: deps, Snapshot: snapshot, EKS: offered, Nodes: kube.NewClusters(awseks.NewFromConfig(cfg), sts.NewFromConfig(cfg)),
		Planner: &planner.Planner{
			Specs: specCache, State: snapshot, Groups: pools, EKS: offered, Now: time.Now,
			Cell: render.Cell{
				Partition: lambdaruntime.Must(lambdaruntime.Partition), Region: cfg.Region,
				Account: lambdaruntime.Must(lambdaruntime.Account), StateBucket: state.Name(),
			},
		},
	})
	lambda.Start(lambdaruntime.Wrap("sweep", h.Handle))
}
