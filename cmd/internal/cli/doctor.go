package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	awsservicequotas "github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/iam"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/aws/servicequotas"
	"github.com/drover-run/drover/shared/aws/ssm"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/doctor/collect"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/templates"
)

func doctorCommand() *cobra.Command {
	var release string
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "doctor [SPEC...]",
		Short: "Check whether the account is ready for drover and for clusters; changes nothing",
		Long: `Checks an account and region before drover is deployed, and before a cluster is created. drover makes the same checks
before it creates the first stack of a cluster. A SPEC is the file of a cluster. Its release is read from a file, too.
Without a SPEC, the command checks the account alone.

Each finding is ok, warning or blocks, with the command that fixes it.`,
		Example: `  drover doctor
  drover doctor clusters/demo.yaml
  drover doctor clusters/demo.yaml --release releases/1.36-1.yaml -o json`,
		Annotations:       ExitCodes("nothing blocks", "an error, for example an invalid spec", "something blocks"),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, files []string) error {
			clusters, err := readNewClusters(cmd.Context(), files, release)
			if err != nil {
				return err
			}
			d, err := examine(cmd.Context(), clusters)
			if err != nil {
				return err
			}
			if output.forMachines() {
				err = output.print(cmd.OutOrStdout(), d)
			} else {
				d.print(cmd.OutOrStdout())
			}
			if err == nil && d.Blocks {
				err = errFindings
			}
			return err
		},
	}
	cmd.Flags().StringVar(&release, "release", "", "the release's file (default: releases/<name>.yaml next to the spec's folder)")
	output = addOutputFlag(cmd)
	return cmd
}

// readNewClusters reads and resolves specs with their releases, all from files.
func readNewClusters(ctx context.Context, files []string, releaseFile string) ([]doctor.Cluster, error) {
	var clusters []doctor.Cluster
	for _, file := range files {
		cluster, data, err := ReadCluster(file)
		if err != nil {
			return nil, err
		}
		release, _, err := ReadRelease(releaseFile, file, cluster)
		if err != nil {
			return nil, err
		}
		region := regionOf(cluster)
		if region == "" {
			cfg, err := loadConfig(ctx)
			if err != nil {
				return nil, err
			}
			region = cfg.Region
		}
		resolved, errs := api.Resolve(cluster, release.In(region))
		if errs == nil {
			errs = api.Validate(resolved, api.Options{TemplateVersions: templates.Versions()})
		}
		if errs != nil {
			return nil, errs.In(file, data)
		}
		clusters = append(clusters, doctor.Cluster{Resolved: resolved})
	}
	return clusters, nil
}

// diagnosis is the output of doctor.
type diagnosis struct {
	Account  string           `json:"account,omitempty"`
	Region   string           `json:"region,omitempty"`
	Blocks   bool             `json:"blocks"`
	Findings []doctor.Finding `json:"findings"`
}

func (d *diagnosis) add(f ...doctor.Finding) {
	d.Findings = append(d.Findings, f...)
	d.Blocks = d.Blocks || len(doctor.Blocking(f)) > 0
}

// examine checks the account of the caller's credentials. Credentials or a region that are missing are findings, without further ones.
func examine(ctx context.Context, clusters []doctor.Cluster) (*diagnosis, error) {
	cfg, err := loadConfig(ctx)
	if err != nil {
		return nil, err
	}
	d := &diagnosis{Region: cfg.Region, Findings: []doctor.Finding{}}
	if cfg.Region == "" {
		d.add(doctor.Finding{
			Check: doctor.Region, Level: doctor.Blocks, Message: "no region is set", Fix: "export AWS_REGION=<where drover is or will be deployed>",
		})
		return d, nil
	}
	if err := checkLocal(ctx, cfg); err != nil {
		return nil, err
	}
	identity, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		d.add(doctor.Finding{
			Check: doctor.Credentials, Level: doctor.Blocks, Message: reason(explainIdentity(cfg, err)), Fix: "aws configure, or aws sso login",
		})
		return d, nil
	}
	d.Account = aws.ToString(identity.Account)
	d.add(
		doctor.Finding{Check: doctor.Credentials, Level: doctor.OK, Message: "you are " + aws.ToString(identity.Arn)},
		doctor.Finding{Check: doctor.Region, Level: doctor.OK, Message: cfg.Region},
	)
	if clusters, err = d.withoutExisting(ctx, cfg, clusters); err != nil {
		return nil, err
	}
	found, err := newCollector(cfg, d.Account).ExamineAll(ctx, clusters)
	if err != nil {
		return nil, err
	}
	d.add(found...)
	return d, nil
}

// withoutExisting returns the clusters that have no stack yet, and reports the others.
func (d *diagnosis) withoutExisting(ctx context.Context, cfg aws.Config, clusters []doctor.Cluster) ([]doctor.Cluster, error) {
	stacks := cloudformation.New(awscloudformation.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), "")
	var failed error
	absent := slices.DeleteFunc(slices.Clone(clusters), func(c doctor.Cluster) bool {
		name := c.Resolved.Metadata.Name
		deployed, err := stacks.ListCluster(ctx, name, []string{names.Network, names.ControlPlane})
		if err != nil || stack.NothingCreated(deployed) {
			failed = errors.Join(failed, err)
			return false
		}
		d.add(doctor.Finding{
			Check: doctor.ClusterExists, Level: doctor.OK,
			Message: fmt.Sprintf("%s exists in account %s: what it needs is not counted again", name, d.Account),
		})
		return true
	})
	return absent, failed
}

// newCollector returns the collector of an account.
func newCollector(cfg aws.Config, account string) *collect.Collector {
	return &collect.Collector{
		Account: account, Region: cfg.Region, Now: time.Now,
		Quotas: servicequotas.New(awsservicequotas.NewFromConfig(cfg)), Networks: ec2.NewNetworks(cfg, account),
		Capacity: ec2.New(cfg), EKS: eks.New(awseks.NewFromConfig(cfg)), Identities: iam.New(cfg), Functions: lambda.New(cfg),
		Parameters: ssm.New(cfg), Lenient: true,
	}
}

// reason returns AWS's own message if the error has one. The SDK's text has a request id, so it would differ each time.
func reason(err error) string {
	var refused interface{ ErrorMessage() string }
	if errors.As(err, &refused) {
		return refused.ErrorMessage()
	}
	return err.Error()
}

// print writes the findings as text: one line each, and a second one for what fixes it.
func (d *diagnosis) print(w io.Writer) {
	for _, f := range d.Findings {
		fmt.Fprintf(w, "%-8s %-20s %s\n", f.Level, f.Check, f.Message)
		if f.Fix != "" {
			fmt.Fprintf(w, "%29s fix: %s\n", "", f.Fix)
		}
	}
	blocking := len(doctor.Blocking(d.Findings))
	if blocking == 0 {
		fmt.Fprintln(w, "\nnothing blocks")
		return
	}
	fmt.Fprintf(w, "\n%d of %d findings block: fix them, then run the command again\n", blocking, len(d.Findings))
}
