// Package lambdaruntime connects handlers with the Lambda runtime. Wrap gives a handler its logger and names its errors. Must and AWS
// read the environment of the function. Only main packages use it.
package lambdaruntime

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// Environment variables of the functions. infra/ sets them.
const (
	SpecsBucket        = "DROVER_SPECS_BUCKET"
	StateBucket        = "DROVER_STATE_BUCKET"
	Account            = "DROVER_ACCOUNT"
	Partition          = "DROVER_PARTITION"
	ConvergeARN        = "DROVER_CONVERGE_ARN"
	JoinARN            = "DROVER_JOIN_ARN"
	UpgradeARN         = "DROVER_UPGRADE_ARN"
	DrainARN           = "DROVER_DRAIN_ARN"
	TopicARN           = "DROVER_TOPIC_ARN"
	CloudFormationRole = "DROVER_CLOUDFORMATION_ROLE_ARN"
	LeftoversRole      = "DROVER_LEFTOVERS_ROLE_ARN"
)

// Must returns the value of a variable. If it is not set, the process exits before it receives an event.
func Must(name string) string {
	value := os.Getenv(name)
	if value == "" {
		fmt.Fprintf(os.Stderr, "%s is not set: the function was not deployed by drover's CDK app\n", name)
		os.Exit(1)
	}
	return value
}

// AWS returns the SDK's configuration from the environment that Lambda sets.
func AWS() aws.Config {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fmt.Fprintf(os.Stderr, "loading the AWS configuration: %v\n", err)
		os.Exit(1)
	}
	KeepConnections(&cfg)
	return cfg
}
