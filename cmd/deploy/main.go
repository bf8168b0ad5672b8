// Command deploy puts drover into an AWS account and region, and removes it. The Makefile calls it: make bootstrap, make deploy, make
// destroy, make destroy-all. It runs the pinned CDK command for the stacks, and does what that command does not do: termination
// protection, running executions, and the contents of the buckets. It uses the caller's AWS credentials.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"
)

// target is the account and region, and the clients for it.
type target struct {
	account, partition, region string
	stacks                     *cloudformation.Client
	machines                   *sfn.Client
	objects                    *s3.Client
	cdk                        cdk
	in                         io.Reader
	out                        io.Writer
	// yes reports whether the user wants no questions: YES=1.
	yes bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "deploy",
		Short:         "Deploy drover into the AWS account of your credentials, or remove it",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	var app, approval string
	cmd.PersistentFlags().StringVar(&app, "app", "", "folder of a synthesized cloud assembly (default: the CDK app is synthesized)")
	add := func(use, short string, run func(context.Context, *target) error) *cobra.Command {
		sub := &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				t, err := open(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
				if err != nil {
					return err
				}
				t.cdk = cdk{app: app, approval: approval}
				return run(cmd.Context(), t)
			},
		}
		cmd.AddCommand(sub)
		return sub
	}
	add("bootstrap", "Prepare the account and region for the CDK", bootstrap)
	deploying := add("deploy", "Create or update drover's stacks, and protect them", deploy)
	deploying.Flags().StringVar(&approval, "approval", "broadening",
		"when the CDK command asks before it changes permissions: never, broadening, any-change")
	add("destroy", "Remove drover; clusters, specs and their statuses stay", destroy)
	add("destroy-all", "Remove drover with its buckets, once no cluster exists", destroyAll)
	return cmd
}

// open finds the account and region of the caller's credentials.
func open(ctx context.Context, in io.Reader, out io.Writer) (*target, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no region is set: set AWS_REGION to the region of drover")
	}
	identity, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the account of your credentials: %w", err)
	}
	return &target{
		account: aws.ToString(identity.Account), partition: partitionOf(aws.ToString(identity.Arn)), region: cfg.Region,
		stacks: cloudformation.NewFromConfig(cfg), machines: sfn.NewFromConfig(cfg),
		objects: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = cfg.BaseEndpoint != nil }),
		in:      in, out: out, yes: os.Getenv("YES") == "1",
	}, nil
}

// say prints one line of progress.
func (t *target) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }
