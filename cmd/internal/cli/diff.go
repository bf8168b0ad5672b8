package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/store"
)

func diffCommand() *cobra.Command {
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Show what uploading a file would change, and why; changes nothing",
		Long: `Compares a cluster's spec with what is deployed, and shows the changes of stacks, the upgrade that follows and when it begins, and
warnings. It reads the account and changes nothing. The file - is standard input.

It checks the images of pools and the settings of the cell with your credentials. If you may not read one of them, a note says so. It does
not check zones, endpoints, addresses, subnets, security groups, local disks and KMS keys: drover does, after an upload and before it
changes a stack.

A paused spec is compared as if it were not paused.

For a rollout it shows the plan over the clusters that drover observed, and how it differs from the newest plan. For a freeze, it shows
which clusters would be held; for a decision, whether it would apply now.`,
		Example: `  drover diff clusters/demo.yaml
  drover diff clusters/demo.yaml -o json
  drover diff rollouts/kubernetes-1.37.yaml`,
		Annotations: ExitCodes("no change", "an error, also when the spec would be rejected or a change refused",
			"changes, an upgrade, another plan, or a decision that would apply"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := diffFile(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if output.forMachines() {
				err = output.print(cmd.OutOrStdout(), d)
			} else {
				d.print(cmd.OutOrStdout())
			}
			if err == nil && d.differs() {
				err = errFindings
			}
			return err
		},
	}
	output = addOutputFlag(cmd)
	return cmd
}

// diffFile compares a file with what is deployed.
func diffFile(ctx context.Context, file string) (comparison, error) {
	m, err := readManifest(file)
	if err != nil {
		return nil, err
	}
	if m.cluster == nil && !m.ofFleet() {
		return nil, fmt.Errorf("%s is of kind %s: diff compares the specs of clusters and the files of fleets; check this file with "+
			"`drover validate %[1]s`", file, api.KindOf(m.data))
	}
	c, err := openCell(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case m.rollout != nil:
		d, err := c.diffRollout(ctx, m)
		return fileDifference{d}, err
	case m.freeze != nil:
		return c.diffFreeze(ctx, m)
	case m.decision != nil:
		return diffDecision(ctx, c.State, m)
	}
	return c.diff(ctx, m.name, m.data)
}

// diff compares a cluster's spec with what is deployed.
func (c *Cell) diff(ctx context.Context, cluster string, spec []byte) (*difference, error) {
	specs := overlay{c.Specs, names.ClusterSpec(cluster), spec}
	p := c.planner(specs)
	p.IgnorePaused = true
	var unknown error
	if p.Settings, unknown = c.settings(ctx); unknown != nil {
		p.Settings = nil
	}
	f, err := p.Forecast(ctx, cluster)
	switch {
	case err != nil:
		return nil, err
	case f.Reason != "":
		return nil, fmt.Errorf("nothing would be changed: %s: %s", f.Reason, f.Message)
	case f.Unused != nil:
		return nil, fmt.Errorf("nothing would be changed: %s: %s", f.Unused.Reason, f.Unused.Message)
	}
	d := newDifference(cluster, f, time.Now())
	if unknown != nil && f.Spec != nil && f.Spec.NamesWorkloadRoles() {
		d.Notes = append(d.Notes, fmt.Sprintf("the settings of the cell were not checked, which say what roles and policies specs may give to "+
			"pods: %v", unknown))
	}
	if u := f.Upgrade; u != nil && u.To.KubernetesVersion != "" && !u.Queued {
		upgrades := UpgradeChecker(c)
		upgrades.Specs, upgrades.IgnorePaused = specs, true
		if p, err := upgrades.Preview(ctx, u.Request); err == nil {
			d.Upgrade.Steps = stepsInShort(p)
		} else if answer, failed := upgrades.Answer(ctx, u.Request); failed == nil && answer.Outcome == events.UpgradeRefused {
			d.Upgrade.Blocked = answer.Message
		} else {
			d.Notes = append(d.Notes, fmt.Sprintf("the steps of the upgrade are not known now: %v", err))
		}
	}
	return d, nil
}

// overlay is the specs bucket with one spec in it that is not uploaded yet.
type overlay struct {
	*s3.Bucket
	key  string
	body []byte
}

var _ planner.Specs = overlay{}

func (o overlay) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	if key == o.key {
		return store.Object{Body: o.body, Version: "not-uploaded"}, nil
	}
	return o.Bucket.Get(ctx, key, limit)
}
