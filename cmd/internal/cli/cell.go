package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/store"
)

// Cell is the deployment of drover in the caller's account and region.
type Cell struct {
	cfg    aws.Config
	render render.Cell
	Specs  *s3.Bucket
	State  *store.State
}

// loadConfig loads the SDK's configuration from the environment and the files of the caller. AWS_ENDPOINT_URL selects a local account. It
// silences the SDK's own log, because every failure is returned as an error.
func loadConfig(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return cfg, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	lambdaruntime.KeepConnections(&cfg)
	return cfg, nil
}

// regionConfig loads the SDK's configuration, which must have a region.
func regionConfig(ctx context.Context) (aws.Config, error) {
	cfg, err := loadConfig(ctx)
	if err != nil {
		return cfg, err
	}
	if cfg.Region == "" {
		return cfg, fmt.Errorf("no region is set: set AWS_REGION to where drover is deployed")
	}
	return cfg, checkLocal(ctx, cfg)
}

// openCell finds the account by the caller's credentials.
func openCell(ctx context.Context) (*Cell, error) {
	cfg, err := regionConfig(ctx)
	if err != nil {
		return nil, err
	}
	identity, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, explainIdentity(cfg, err)
	}
	parsed, err := arn.Parse(aws.ToString(identity.Arn))
	if err != nil {
		return nil, err
	}
	return NewCell(cfg, parsed.Partition, parsed.AccountID), nil
}

// localEndpoint is the URL of AWS_ENDPOINT_URL if it leads to this machine: a local account's.
func localEndpoint(cfg aws.Config) (*url.URL, bool) {
	endpoint, err := url.Parse(aws.ToString(cfg.BaseEndpoint))
	if err != nil || endpoint.Host == "" {
		return nil, false
	}
	ip := net.ParseIP(endpoint.Hostname())
	return endpoint, endpoint.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// checkLocal fails if AWS_ENDPOINT_URL is a loopback address and no process listens there. The SDK would retry for seconds, and then
// report each of its layers.
func checkLocal(ctx context.Context, cfg aws.Config) error {
	endpoint, local := localEndpoint(cfg)
	if !local {
		return nil
	}
	port := endpoint.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[endpoint.Scheme]
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(endpoint.Hostname(), port))
	if err == nil {
		return connection.Close()
	}
	if !nothingListens(err) {
		return nil // the SDK's own error has more detail
	}
	return fmt.Errorf(
		`nothing listens at %s, where AWS_ENDPOINT_URL leads: is the local account running? Start it with make up or drover local, then run
  eval "$(drover local env)"
An account that ended does not come back: the next one has another port and access key. To reach AWS, `+
			`unset AWS_ENDPOINT_URL and the access key`, endpoint)
}

func nothingListens(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// explainIdentity explains why STS did not return the caller's identity.
func explainIdentity(cfg aws.Config, err error) error {
	var refused smithy.APIError
	endpoint, local := localEndpoint(cfg)
	if local && errors.As(err, &refused) && slices.Contains([]string{"InvalidClientTokenId", "SignatureDoesNotMatch"}, refused.ErrorCode()) {
		return fmt.Errorf(`the local account at %s does not know your access key: it is another account than the one you had: run
  eval "$(drover local env)"`, endpoint)
	}
	return fmt.Errorf("asking AWS who you are: %w", err)
}

// NewCell returns the deployment of drover in an account and the region of a configuration.
func NewCell(cfg aws.Config, partition, account string) *Cell {
	client := s3.NewClient(cfg)
	state := s3.NewBucket(client, names.StateBucket(account, cfg.Region))
	return &Cell{
		cfg:    cfg,
		render: render.Cell{Partition: partition, Region: cfg.Region, Account: account, StateBucket: state.Name()},
		Specs:  s3.NewBucket(client, names.SpecsBucket(account, cfg.Region)),
		State:  store.NewState(state, store.Silent, time.Now),
	}
}

// start starts an execution of one of drover's machines, with a generated name.
func (c *Cell) start(ctx context.Context, machine string, input any) (execution string, err error) {
	body, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	named := c.machineARN(machine)
	started, err := sfn.NewFromConfig(c.cfg).StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &named, Input: aws.String(string(body)),
	})
	if absent := (*sfntypes.StateMachineDoesNotExist)(nil); errors.As(err, &absent) {
		return "", fmt.Errorf("drover is not deployed in account %s, region %s: deploy it with make deploy; specs and clusters are kept",
			c.render.Account, c.render.Region)
	}
	if err != nil {
		return "", err
	}
	return aws.ToString(started.ExecutionArn), nil
}

// machineARN returns the ARN of one of drover's machines.
func (c *Cell) machineARN(machine string) string {
	return fmt.Sprintf("arn:%s:states:%s:%s:stateMachine:%s%s", c.render.Partition, c.render.Region, c.render.Account, names.Prefix, machine)
}

// planner plans as the plan function does, with specs read from elsewhere.
func (c *Cell) planner(specs planner.Specs) *planner.Planner {
	return &planner.Planner{
		Specs: specs, State: c.State, Cell: c.render, Now: time.Now, Relay: render.UnknownRelay,
		Stacks: cloudformation.New(awscloudformation.NewFromConfig(c.cfg), resourcegroupstaggingapi.NewFromConfig(c.cfg), ""),
		Groups: autoscaling.New(awsautoscaling.NewFromConfig(c.cfg)),
		EKS:    eks.New(awseks.NewFromConfig(c.cfg)), Functions: lambda.New(c.cfg), Images: ec2.New(c.cfg),
	}
}

// settings returns the settings of the deployed cell, which its functions have.
func (c *Cell) settings(ctx context.Context) (*api.CellSettings, error) {
	text, err := lambda.New(c.cfg).Variable(ctx, names.Function("plan"), api.CellSettingsVariable)
	if err != nil {
		return nil, err
	}
	settings, err := api.ParseCellSettings(text)
	settings.Account = c.render.Account
	return &settings, err
}
