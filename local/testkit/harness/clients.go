package harness

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/s3"
)

func (a *Account) s3(cfg aws.Config) *awss3.Client { return s3.NewClient(cfg) }

func (a *Account) eks(cfg aws.Config) *awseks.Client { return awseks.NewFromConfig(cfg) }

func (a *Account) versions(cfg aws.Config) *eks.Versions { return eks.New(a.eks(cfg)) }

func (a *Account) groups(cfg aws.Config) *autoscaling.Groups {
	return autoscaling.New(awsautoscaling.NewFromConfig(cfg))
}

// stacks returns the adapter of CloudFormation, which acts as a role. In real time it polls change sets every millisecond.
func (a *Account) stacks(cfg aws.Config, role string) *cloudformation.Stacks {
	s := cloudformation.New(awscloudformation.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), role)
	if !a.options.Bubble {
		s.Pause = time.Millisecond
	}
	return s
}
