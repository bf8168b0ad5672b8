package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func statusCommand() *cobra.Command {
	var watch, isLive, all, verbose bool
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show a cluster, or a table of all",
		Long: `Shows what drover last wrote about a cluster: its conditions, stacks, nodes and upgrades, and the changes that it plans. Without
a name, a table of all clusters; it hides deleted ones unless --all is given.

With --live it also asks CloudFormation, Auto Scaling and, for one cluster, the cluster's own API, with your credentials. On a
terminal it refreshes in place until Ctrl-C; elsewhere it prints once. A source that does not answer is named in the output.

Text fits the terminal and is colored there; set NO_COLOR to any value for no colors. Documents (-o) hold every cluster and every field.`,
		Example: `  drover status
  drover status demo
  drover status demo --live
  drover status demo --watch
  drover status demo -o json`,
		Annotations: ExitCodes("the status is printed; with --watch, the cluster is Ready or Deleted",
			"an error; with --watch, the cluster is Stopped or Failed"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			switch {
			case watch && isLive:
				return errors.New("--watch and --live exclude each other: --watch prints lines until the work is done, --live a picture until Ctrl-C")
			case watch && (len(args) != 1 || output.forMachines()):
				return errors.New("--watch shows one cluster, as lines: give its NAME and no -o")
			case isLive && output.forMachines():
				return errors.New("--live shows text: give no -o")
			}
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			name := strings.Join(args, "")
			switch {
			case watch:
				return watchStatus(ctx, out, c, name, AnyUpload)
			case isLive:
				return showLive(ctx, out, c, name, all, verbose)
			case name != "":
				cluster, err := readStatus(ctx, c, name)
				if err != nil {
					return err
				}
				if output.forMachines() {
					return output.print(out, cluster)
				}
				newDisplay(out, verbose).cluster(cluster, nil)
				return nil
			}
			clusters, err := ReadStatuses(ctx, c)
			if err != nil {
				return err
			}
			if output.forMachines() {
				return output.print(out, clusters)
			}
			newDisplay(out, verbose).statuses(clusters, nil, all)
			return reportIgnored(ctx, out, c)
		},
	}
	output = addOutputFlag(cmd)
	cmd.Flags().BoolVar(&watch, "watch", false, "print what changes until drover is done with the cluster; "+
		"fails unless it is Ready or Deleted")
	cmd.Flags().BoolVar(&isLive, "live", false, "also ask AWS and the cluster, and refresh until Ctrl-C")
	cmd.Flags().BoolVar(&all, "all", false, "include deleted clusters in the table")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show S3 versions, executions and request tokens, too")
	return cmd
}

func readStatus(ctx context.Context, c *Cell, name string) (*status.Cluster, error) {
	cluster, err := c.State.Status(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown(name)
	}
	return cluster, err
}

func unknown(name string) error {
	return fmt.Errorf("cluster %s does not exist in this account and region: check its name, AWS_REGION and your credentials; "+
		"`drover status` lists the clusters, and `drover apply %[1]s.yaml` creates one", name)
}

// ReadStatuses reads the status of every cluster. A document that cannot be read hides no other cluster: its own row says so.
func ReadStatuses(ctx context.Context, c *Cell) ([]*status.Cluster, error) {
	entries, err := c.State.List(ctx, names.Statuses)
	if err != nil {
		return nil, err
	}
	clusters := []*status.Cluster{}
	for _, entry := range entries {
		name := strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Statuses), ".json")
		cluster, err := c.State.Status(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			continue // deleted since it was listed
		} else if unreadable(err) {
			cluster = status.New(name)
			cluster.Status.Phase, cluster.Status.Message = unknownPhase, "its status cannot be read: "+err.Error()
		} else if err != nil {
			return nil, err
		}
		clusters = append(clusters, cluster)
	}
	return clusters, nil
}

// unknownPhase is shown of a cluster whose status document cannot be read.
const unknownPhase status.Phase = "Unknown"

// unreadable reports whether an error is about the content of one object, and not about the account.
func unreadable(err error) bool {
	var large *store.TooLarge
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &large) || errors.As(err, &syntax) || errors.As(err, &kind)
}
