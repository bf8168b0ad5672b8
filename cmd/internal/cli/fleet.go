package cli

// The fleet command: a row for each cluster of the cell.

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/cmd/internal/overview"
)

func fleetCommand() *cobra.Command {
	var output *outputFlag
	var selector string
	var filter overview.Filter
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show every cluster: version, release, health and what it waits for",
		Long: `Shows a row for each cluster of this account and region: its health, Kubernetes version and release, the reason of its state, ` +
			`what it waits for,
and how long ago drover changed its status. It reads the statuses in the state bucket, and asks no cluster.

Labels are those of the newest accepted spec. A selector has the syntax of kubectl, with sets. Each other filter takes several values,
separated by commas. Deleted clusters are hidden unless --all or --health Deleted is given.

Health is Healthy, Changing, Degraded (Ready, but a condition is False or an upgrade is late), Failing (Failed or Stopped), Deleted, ` +
			`or Unknown
(the status cannot be read). The runbook explains each reason.`,
		Example: `  drover fleet
  drover fleet -l env=prod,tier!=canary
  drover fleet --health Failing,Degraded -o wide
  drover fleet --kubernetes 1.35 -o json
  drover fleet why shop-eu-7`,
		Annotations:       ExitCodes("the clusters are printed, if there are any", "an error"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := parseFleetFilter(&filter, selector); err != nil {
				return err
			}
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			rows, err := (&overview.Reader{Objects: c.State}).Read(cmd.Context())
			if err != nil {
				return err
			}
			selected := filter.Apply(rows)
			if output.forMachines() {
				return output.print(cmd.OutOrStdout(), overview.NewDocument(selected))
			}
			newDisplay(cmd.OutOrStdout(), false).rows(selected, output.format == formatWide)
			return nil
		},
	}
	cmd.AddCommand(fleetWhyCommand())
	output = addOutputFlag(cmd, formatWide)
	flags := cmd.Flags()
	flags.StringVarP(&selector, "selector", "l", "", "only clusters with these labels, such as 'env=prod,tier notin (canary)'")
	flags.StringSliceVar(&filter.Healths, "health", nil, "only clusters of this health: "+healthChoices())
	flags.StringSliceVar(&filter.Versions, "kubernetes", nil, "only clusters with this Kubernetes version, such as 1.36")
	flags.StringSliceVar(&filter.Releases, "release", nil, "only clusters with this release")
	flags.StringSliceVar(&filter.Reasons, "reason", nil, "only clusters with this reason, such as Blocked")
	flags.BoolVar(&filter.Deleted, "all", false, "include deleted clusters")
	completeFlag(cmd, "health", cobra.FixedCompletions(strings.Split(healthChoices(), ", "), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func healthChoices() string {
	var all []string
	for _, h := range overview.Healths() {
		all = append(all, string(h))
	}
	return strings.Join(all, ", ")
}

// parseFleetFilter parses the selector, and rejects a health that does not exist.
func parseFleetFilter(filter *overview.Filter, selector string) (err error) {
	if filter.Labels, err = labels.Parse(selector); err != nil {
		return fmt.Errorf("--selector %q is invalid: %w", selector, err)
	}
	for _, h := range filter.Healths {
		if !slices.Contains(overview.Healths(), overview.Health(h)) {
			return fmt.Errorf("--health %q is invalid: use %s", h, healthChoices())
		}
	}
	return nil
}

// PrintFleet prints clusters in the format of drover fleet.
func PrintFleet(w io.Writer, rows []overview.Row) { newDisplay(w, false).rows(rows, false) }

// healthTones has the color of each health.
var healthTones = map[overview.Health]view.Tone{
	overview.Healthy: view.Good, overview.Changing: view.Moving, overview.Degraded: view.Bad, overview.Failing: view.Bad,
	overview.Unknown: view.Moving, overview.Deleted: view.Quiet,
}

// rows shows a row for each cluster.
func (d *display) rows(rows []overview.Row, wide bool) {
	table := &view.Table{Columns: []view.Column{
		{Title: "NAME"}, {Title: "HEALTH"}, {Title: "KUBERNETES"}, {Title: "RELEASE"}, {Title: "REASON"}, {Title: "CHANGED"},
	}}
	if wide {
		table.Columns = append(table.Columns, view.Column{Title: "PHASE"}, view.Column{Title: "LABELS", Min: 12})
	}
	table.Columns = append(table.Columns, view.Column{Title: "WAITS FOR", Min: 20})
	for _, r := range rows {
		release, changed, waits := cmp.Or(r.Release, "-"), "-", d.words(r.WaitsFor)
		if r.Target != "" {
			release += " → " + r.Target
		}
		if !r.UpdatedAt.IsZero() {
			changed = view.Age(d.now, r.UpdatedAt)
		}
		if r.Until != nil {
			waits = strings.TrimPrefix(waits+", until "+view.Relative(d.now, *r.Until), ", ")
		}
		cells := []view.Cell{
			view.Text(r.Name), {Text: string(r.Health), Tone: healthTones[r.Health]}, view.Text(cmp.Or(r.KubernetesVersion, "-")),
			view.Text(release), view.Text(cmp.Or(r.Reason, "-")), view.Text(changed),
		}
		if wide {
			cells = append(cells, view.Text(string(r.Phase)), view.Text(cmp.Or(labels.Set(r.Labels).String(), "-")))
		}
		table.Add(append(cells, view.Text(cmp.Or(waits, "-")))...)
	}
	table.Write(d.out, d.width, d.color)
}
