// Package lambdaruntime connects handlers with the Lambda runtime. Wrap gives a handler its logger and names its errors. The functions AWS
// and Process read the environment. Only the main and setup packages of functions use it.
package lambdaruntime

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
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
	// CellLimit is how many clusters rollouts may work on at once. Empty is a tenth of the clusters, and at least three.
	CellLimit = "DROVER_CELL_LIMIT"
	// CellSettings are what the platform team allows specs: api.CellSettings as JSON. Empty allows nothing.
	CellSettings = api.CellSettingsVariable
	// Relay is the code of relays that this version of drover has: render.RelayCode as text.
	Relay = "DROVER_RELAY"
	// TaskRoot is the folder of the function's package. Lambda sets it.
	TaskRoot = "LAMBDA_TASK_ROOT"
)

// Env is what a function gets from its process, apart from the configuration of the SDK. Tests fill it without a process.
type Env struct {
	// Variables are the environment variables, by name.
	Variables map[string]string
	// Output receives metrics. Lambda sends standard output to CloudWatch Logs.
	Output io.Writer
	// Transport calls the API server at an endpoint. If it is nil, the network does.
	Transport func(endpoint string) http.RoundTripper
}

// Process returns the environment of this process.
func Process() Env {
	env := Env{Variables: map[string]string{}, Output: os.Stdout}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		env.Variables[name] = value
	}
	return env
}

// Must returns the value of a variable. If it is not set, the process exits before it receives an event.
func (e Env) Must(name string) string {
	value := e.Variables[name]
	if value == "" {
		fmt.Fprintf(os.Stderr, "%s is not set: the function was not deployed by drover's CDK app\n", name)
		os.Exit(1)
	}
	return value
}

// Count returns the value of a variable that is a number from 1 on, and 0 if it is not set. If it is anything else, the process exits
// before it receives an event.
func (e Env) Count(name string) int {
	value := e.Variables[name]
	if value == "" {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		fmt.Fprintf(os.Stderr, "%s is %q: must be a number from 1 on\n", name, value)
		os.Exit(1)
	}
	return n
}

// Cell returns the settings of the cell. If they are not valid, the process exits before it receives an event.
func (e Env) Cell() *api.CellSettings {
	settings, err := api.ParseCellSettings(e.Variables[CellSettings])
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", CellSettings, err)
		os.Exit(1)
	}
	settings.Account = e.Must(Account)
	return &settings
}

// Role returns the ARN of a function's role.
func (e Env) Role(region, step string) string {
	return names.RoleARN(e.Must(Partition), e.Must(Account), region, step)
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
