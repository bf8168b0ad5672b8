package cli

// The upgrade command: to a release, or back to the previous one.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/checker"
)

func upgradeCommand() *cobra.Command {
	var in events.Upgrade
	var watch, dryRun bool
	cmd := &cobra.Command{
		Use:   "upgrade CLUSTER",
		Short: "Upgrade a cluster to a release, or roll back its last upgrade",
		Long: `Starts an upgrade of a cluster now, also outside its window. It runs checks, and then upgrades the control plane, ` +
			`the add-ons and the nodes.
The release is in effect until the spec names another one. Without --to and --rollback, an upgrade that stopped is continued.

With --dry-run it only shows the checks, the steps and the least time that they take. It fails with 1 if a check blocks the upgrade.
For all checks the cluster must let you read it. If it does not, the dry run prints the access entry that its spec needs, shows the rest,
and fails with 2.`,
		Example: `  drover upgrade demo --to 1.37-1 --dry-run
  drover upgrade demo --to 1.37-1 --watch
  drover upgrade demo --rollback`,
		Annotations: ExitCodes("the upgrade was started, or there is nothing to upgrade; with --watch, it is done; with --dry-run, "+
			"no check blocks it",
			"an error, or the upgrade is refused; with --watch, the upgrade is not done; with --dry-run, a check blocks it",
			"--dry-run could not check everything: the cluster does not let you read its nodes and pods"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.Rollback && in.Release != "" {
				return errors.New("--to and --rollback: give one of them; a rollback returns to the release before the last upgrade")
			}
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			in.Cluster = args[0]
			if _, err := readStatus(ctx, c, in.Cluster); err != nil {
				return err
			}
			if dryRun {
				return PreviewUpgrade(ctx, out, c, kube.NewClusters(c.cfg, kube.WithRelay(relay.To(lambda.New(c.cfg)))), in)
			}
			answer, err := UpgradeChecker(c).Answer(ctx, in)
			if err != nil {
				return err
			}
			switch answer.Outcome {
			case events.UpgradeRefused:
				return fmt.Errorf("the upgrade of %s is refused: %s", in.Cluster, answer.Message)
			case events.UpgradeNothing:
				fmt.Fprintf(out, "nothing to upgrade: %s; nothing was started%s\n", answer.Message, nameRelease(in))
				return nil
			}
			if err := PrintBusy(ctx, out, c, in.Cluster); err != nil {
				return err
			}
			execution, err := startUpgrade(ctx, c, in)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "started the upgrade of cluster %s: %s\n", in.Cluster, execution)
			if watch {
				return watchUpgrade(ctx, out, c, in.Cluster, execution)
			}
			fmt.Fprintf(out, "follow it: drover status %s\n", in.Cluster)
			return nil
		},
	}
	cmd.Flags().StringVar(&in.Release, "to", "", "release to upgrade to")
	completeFlagNames(cmd, "to", releaseNames)
	cmd.Flags().StringVar(&in.KubernetesVersion, "kubernetes-version", "", "Kubernetes version, if not the release's")
	cmd.Flags().BoolVar(&in.Rollback, "rollback", false, "return to the release before the last upgrade")
	cmd.Flags().BoolVar(&watch, "watch", false, "print what happens until the upgrade ends; fails unless it is done")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the checks and the steps; change nothing")
	return cmd
}

// nameRelease returns what to do after an upgrade that had nothing to do.
func nameRelease(in events.Upgrade) string {
	if in.Release != "" || in.Rollback {
		return ""
	}
	return fmt.Sprintf(". To upgrade to another release: drover upgrade %s --to RELEASE", in.Cluster)
}

// UpgradeChecker returns the checker that the upgrade function uses, with the caller's clients.
func UpgradeChecker(c *Cell) *checker.Checker {
	return &checker.Checker{
		Specs: c.Specs, State: c.State, EKS: eks.New(awseks.NewFromConfig(c.cfg)), Region: c.cfg.Region, Now: time.Now,
		Stacks:     cloudformation.New(awscloudformation.NewFromConfig(c.cfg), resourcegroupstaggingapi.NewFromConfig(c.cfg), ""),
		Executions: stepfunctions.New(sfn.NewFromConfig(c.cfg), ""),
	}
}

// startUpgrade starts an execution of the upgrade machine.
func startUpgrade(ctx context.Context, c *Cell, in events.Upgrade) (execution string, err error) {
	if execution, err = c.start(ctx, "upgrade", in); err != nil {
		return "", fmt.Errorf("starting the upgrade of %s: %w", in.Cluster, err)
	}
	return execution, nil
}

// watchUpgrade prints the progress of an upgrade until its execution ends.
func watchUpgrade(ctx context.Context, w io.Writer, c *Cell, cluster, execution string) error {
	show := view.NewProgress(w)
	defer show.End()
	printed := map[string]string{}
	say := func(key, text string) {
		if printed[key] != text {
			printed[key] = text
			show.Say("%s", text)
		}
	}
	machine := sfn.NewFromConfig(c.cfg)
	polls := polls{report: func(text string) { show.Say("%s", text) }}
	for {
		// The execution is read first, so that the status has its last write.
		x, err := machine.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &execution})
		var s *status.Cluster
		if err == nil {
			s, err = readStatus(ctx, c, cluster)
		}
		if ends := polls.next(ctx, err); ends != nil {
			return ends
		}
		if err != nil {
			if err := sleep(ctx, watchInterval); err != nil {
				return err
			}
			continue
		}
		u := s.Status.Upgrade
		if next := s.Status.NextUpgrade; next != nil && next.Execution == execution {
			u = next
		}
		mine := u != nil && u.Execution == execution
		if mine {
			sayUpgrade(say, *u)
			show.Wait(openStep(*u))
		}
		if x.Status != types.ExecutionStatusRunning {
			return upgradeVerdict(show, cluster, x, u, mine)
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return err
		}
	}
}

// sayUpgrade prints what is new in an upgrade.
func sayUpgrade(say func(key, text string), u status.Upgrade) {
	for _, line := range CheckLines(u.Checks) {
		say("check "+line, line)
	}
	for i, step := range u.Steps {
		if step.Started != nil {
			say(fmt.Sprint("step ", i), fmt.Sprintf("%s: %s", step.Name, stepTimes(step, u.Ended != nil, time.Time{})))
		}
	}
	say("phase", strings.TrimSuffix(fmt.Sprintf("upgrade to %s is %s: %s", ReleaseLabel(u.To, u.ToVersion), u.Phase,
		linesOf(u)(u.Message)), ": "))
}

// openStep returns the name of the step that runs, or "".
func openStep(u status.Upgrade) string {
	for _, step := range u.Steps {
		if step.Started != nil && step.Ended == nil {
			return step.Name
		}
	}
	return ""
}

// upgradeVerdict returns how an execution ended: from the status, or from the execution if it wrote no end there.
func upgradeVerdict(show *view.Progress, cluster string, x *sfn.DescribeExecutionOutput, u *status.Upgrade, mine bool) error {
	if x.Status == types.ExecutionStatusSucceeded {
		if message, refused := refusedBy(aws.ToString(x.Output)); refused { // the cluster changed after the command checked it
			return fmt.Errorf("the upgrade of %s is refused: %s", cluster, message)
		}
		if !mine || u.Phase != string(upgrade.Done) {
			show.Say("nothing to do: %s", outcomeOf(aws.ToString(x.Output)))
		}
		return nil
	}
	ended := strings.TrimRight(fmt.Sprintf("%s: %s: %s", x.Status, aws.ToString(x.Error), aws.ToString(x.Cause)), ": ")
	switch {
	case mine && (upgrade.State(u.Phase).Final() || u.Phase == status.UpgradeMissed):
		return fmt.Errorf("the upgrade is %s: %s", u.Phase, u.Message)
	case mine: // it ended before it could write the status
		return fmt.Errorf("the execution of the upgrade ended as %s. Within five minutes `drover status %s` shows what is done and how "+
			"to continue", ended, cluster)
	}
	return fmt.Errorf("the upgrade ended as %s", ended)
}

// refusedBy returns the reason in the output of an execution that was refused.
func refusedBy(output string) (message string, refused bool) {
	var result events.UpgradeResult
	if json.Unmarshal([]byte(output), &result) != nil || result.Outcome != events.UpgradeRefused {
		return "", false
	}
	return result.Message, true
}

// outcomeOf returns the message in an execution's output, or the whole output.
func outcomeOf(output string) string {
	var result events.UpgradeResult
	if err := json.Unmarshal([]byte(output), &result); err != nil || result.Message == "" {
		return output
	}
	return result.Message
}
