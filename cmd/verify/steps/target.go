// Package steps holds what `make verify` proves in an AWS account: one idea a file. It uses what a user has: credentials, the commands
// deploy and drover, and AWS's APIs.
package steps

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/verify/runner"
)

// Options of a run.
type Options struct {
	// Drover and Deploy are the commands to run.
	Drover, Deploy string
	// App is the folder of a synthesized cloud assembly. If it is empty, the CDK app is synthesized.
	App string
	// Dir is where the specs of the run are written.
	Dir string
	// Kubernetes is the newer of the two minor versions of the run. If it is empty, it is EKS's default version.
	Kubernetes string
}

// Target is the account and region, and what the run made there.
type Target struct {
	Options
	Meter *runner.Meter
	// Suffix is in the name and in the tags of everything that the run makes.
	Suffix string
	Region string
	// Simulated is true in a local account.
	Simulated bool

	cfg                aws.Config
	account, partition string
	caller             arn.ARN
	objects            *s3.Client
	// older and newer are the releases of the run.
	older, newer release
	zones        []string
	// experiments are the roles for the questions that AWS leaves open, by name.
	experiments map[string]string
	// removed reports whether drover reported every cluster as Deleted.
	removed bool
}

// tagKey is the tag of everything that a run makes. Its value is the suffix.
const tagKey = "drover-verify"

// Open finds the account and region of the caller's credentials.
func Open(ctx context.Context, options Options, meter *runner.Meter) (*Target, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no region is set: set AWS_REGION to a region without drover")
	}
	identity, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the account of your credentials: %w", err)
	}
	caller, err := arn.Parse(aws.ToString(identity.Arn))
	if err != nil {
		return nil, fmt.Errorf("reading your identity: %w", err)
	}
	return &Target{
		Options: options, Meter: meter, Suffix: strings.ToLower(rand.Text()[:6]), Region: cfg.Region, Simulated: onThisMachine(cfg),
		cfg: cfg, account: caller.AccountID, partition: caller.Partition, caller: caller,
		objects: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = cfg.BaseEndpoint != nil }),
	}, nil
}

// onThisMachine reports whether AWS_ENDPOINT_URL leads to a local account.
func onThisMachine(cfg aws.Config) bool {
	endpoint, err := url.Parse(aws.ToString(cfg.BaseEndpoint))
	if err != nil {
		return false
	}
	ip := net.ParseIP(endpoint.Hostname())
	return endpoint.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Redactor hides the account and the caller.
func (t *Target) Redactor() *runner.Redactor {
	return runner.NewRedactor(map[string]string{t.account: "<account>", t.caller.Resource: "<caller>"})
}

// principal is the IAM principal of the caller, as access entries name it.
func (t *Target) principal(ctx context.Context) (string, error) {
	principal, hint := cli.PrincipalOf(t.caller, func(role string) (string, error) {
		out, err := iam.NewFromConfig(t.cfg).GetRole(ctx, &iam.GetRoleInput{RoleName: &role})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.Role.Arn), nil
	})
	if principal == "" {
		return "", errors.New(hint)
	}
	return principal, nil
}

// cluster is the name of the first cluster of the run. The names of all its clusters begin with it.
func (t *Target) cluster() string { return "verify-" + t.Suffix }

// simulatedHaste is how much more often a run reads in a local account, whose work takes less time.
const simulatedHaste = 20

// until calls ready until it returns true or an error, or ctx ends. every is the pause between two calls on AWS.
func (t *Target) until(ctx context.Context, every time.Duration, what string, ready func() (bool, error)) error {
	if t.Simulated {
		every /= simulatedHaste
	}
	for {
		done, err := ready()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(every):
		}
	}
}
