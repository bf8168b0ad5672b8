package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/drover-run/drover/functions/plan/handler"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/executions"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stacks"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/versions"
)

// cell is the deployment of drover that the caller's credentials and region lead to.
type cell struct {
	cfg    aws.Config
	render render.Cell
	specs  *store.Bucket
	state  *store.State
}

// openCell finds the account by its credentials; AWS_ENDPOINT_URL leads to a local account. What goes wrong is an error: the SDK's own
// remarks are not for people.
func openCell(ctx context.Context) (*cell, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("no region is set: set AWS_REGION to where drover is deployed")
	}
	identity, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, fmt.Errorf("asking AWS who you are: %w", err)
	}
	parsed, err := arn.Parse(aws.ToString(identity.Arn))
	if err != nil {
		return nil, err
	}
	return newCell(cfg, parsed.Partition, parsed.AccountID), nil
}

func newCell(cfg aws.Config, partition, account string) *cell {
	client := environment.S3(cfg)
	state := store.NewBucket(client, names.StateBucket(account, cfg.Region))
	return &cell{
		cfg:    cfg,
		render: render.Cell{Partition: partition, Region: cfg.Region, Account: account, StateBucket: state.Name()},
		specs:  store.NewBucket(client, names.SpecsBucket(account, cfg.Region)),
		state:  store.NewState(state, time.Now),
	}
}

// start an execution of a machine of drover's, as a person would at the console.
func (c *cell) start(ctx context.Context, machine string, input any) (execution string, err error) {
	body, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	named := c.machineARN(machine)
	started, err := sfn.NewFromConfig(c.cfg).StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &named, Input: aws.String(string(body))})
	if err != nil {
		return "", err
	}
	return aws.ToString(started.ExecutionArn), nil
}

// machineARN is the ARN of a machine of drover's.
func (c *cell) machineARN(machine string) string {
	return fmt.Sprintf("arn:%s:states:%s:%s:stateMachine:%s%s", c.render.Partition, c.render.Region, c.render.Account, names.Prefix, machine)
}

// planner plans as the plan function does, with specs read from elsewhere.
func (c *cell) planner(specs handler.Specs) *handler.Handler {
	return &handler.Handler{
		Specs: specs, State: c.state, Cell: c.render, Now: time.Now,
		Stacks:     stacks.New(cloudformation.NewFromConfig(c.cfg), resourcegroupstaggingapi.NewFromConfig(c.cfg), ""),
		Executions: executions.New(sfn.NewFromConfig(c.cfg), ""),
		Groups:     groups.New(autoscaling.NewFromConfig(c.cfg)),
		Versions:   versions.New(eks.NewFromConfig(c.cfg)),
	}
}
