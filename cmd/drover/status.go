package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func statusCommand() *cobra.Command {
	var output string
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show a cluster, or a table of all",
		Example: `  drover status
  drover status demo
  drover status demo --watch
  drover status demo -o json`,
		Annotations: exitCodes("the status is printed; with --watch, the cluster is Ready or Deleted",
			"an error; with --watch, the cluster is Stopped or Failed"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s: must be json", output)
			}
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			if watch {
				if len(args) != 1 || output != "" {
					return errors.New("--watch shows one cluster, as lines: give its NAME and no -o")
				}
				return watchStatus(ctx, out, c, args[0], anyUpload)
			}
			var clusters []*status.Cluster
			if len(args) == 1 {
				cluster, err := readStatus(ctx, c, args[0])
				if err != nil {
					return err
				}
				clusters = append(clusters, cluster)
			} else if clusters, err = allStatuses(ctx, c); err != nil {
				return err
			}
			switch {
			case output == "json" && len(args) == 1:
				return printJSON(out, clusters[0])
			case output == "json":
				return printJSON(out, clusters)
			case len(args) == 1:
				printStatus(out, clusters[0])
			default:
				printTable(out, clusters)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json for machines")
	cmd.Flags().BoolVar(&watch, "watch", false, "print what changes until the cluster is at rest; fails unless it is Ready")
	return cmd
}

func readStatus(ctx context.Context, c *cell, name string) (*status.Cluster, error) {
	cluster, err := c.state.Status(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown(name)
	}
	return cluster, err
}

func unknown(name string) error {
	return fmt.Errorf("no cluster %s is known in this account and region: check its name, AWS_REGION and your credentials; `drover status` lists those that are, and `drover apply %[1]s.yaml` makes a new one", name)
}

func allStatuses(ctx context.Context, c *cell) ([]*status.Cluster, error) {
	entries, err := c.state.List(ctx, names.Statuses)
	if err != nil {
		return nil, err
	}
	clusters := []*status.Cluster{}
	for _, entry := range entries {
		cluster, err := c.state.Status(ctx, strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Statuses), ".json"))
		if errors.Is(err, store.ErrNotFound) {
			continue // it went after it was listed
		} else if err != nil {
			return nil, err
		}
		clusters = append(clusters, cluster)
	}
	return clusters, nil
}

func printTable(w io.Writer, clusters []*status.Cluster) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tPHASE\tKUBERNETES\tRELEASE\tUPDATED\tMESSAGE")
	for _, c := range clusters {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Metadata.Name, c.Status.Phase, c.Status.KubernetesVersion, c.Status.Release,
			c.Status.UpdatedAt.Format(time.RFC3339), inTable(c.Status))
	}
	table.Flush()
}

// inTable is what is to be known of a cluster in one line: also that it is not what was uploaded last.
func inTable(s status.Status) string {
	message, accepted := firstLine(s.Message), s.Condition(status.SpecAccepted)
	if accepted == nil || accepted.Status == "True" || s.Phase == status.Deleted || strings.Contains(s.Message, accepted.Message) {
		return message
	}
	return strings.TrimPrefix(fmt.Sprintf("%s; %s: %s", message, accepted.Reason, firstLine(accepted.Message)), "; ")
}

func printStatus(w io.Writer, c *status.Cluster) {
	s := c.Status
	fmt.Fprintf(w, "%s is %s", c.Metadata.Name, s.Phase)
	if s.Message != "" {
		fmt.Fprintf(w, ": %s", s.Message)
	}
	fmt.Fprintln(w)
	if s.RetryAt != nil {
		fmt.Fprintf(w, "failed tries: %d; drover tries again at %s\n", s.Failures, s.RetryAt.Format(time.RFC3339))
	}
	if s.KubernetesVersion != "" {
		fmt.Fprintf(w, "Kubernetes %s, release %s, templates %s, spec version %s\n", s.KubernetesVersion, s.Release, s.TemplateVersion, s.SpecVersion)
	}
	if s.Endpoint != "" {
		fmt.Fprintf(w, "endpoint %s\n", s.Endpoint)
	}
	if s.Execution != "" {
		fmt.Fprintf(w, "execution %s\n", s.Execution)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nCONDITION\tSTATUS\tREASON\tSINCE\tMESSAGE")
	for _, condition := range s.Conditions {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", condition.Type, condition.Status, condition.Reason,
			condition.LastTransitionTime.Format(time.RFC3339), firstLine(condition.Message))
	}
	fmt.Fprintln(table, "\nSTACK\tSTATUS\tSINCE\tREASON")
	for _, stack := range s.Stacks {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", stack.Name, stack.Status, stack.Since.Format(time.RFC3339), about(stack))
	}
	table.Flush()
	printUpgrades(w, s)
	printSlowNodes(w, s.Nodes)
	printDeletion(w, s.Deletion)
	for _, change := range s.Plan {
		fmt.Fprintf(w, "\n%s %s%s\n", change.Operation, change.Stack, change.Effect.Words())
		for _, reason := range change.Reasons {
			fmt.Fprintf(w, "  %s: %s → %s\n", reason.Field, quote(reason.Old), quote(reason.New))
		}
	}
}

// about a stack: why it failed, and what its change waits for.
func about(stack status.Stack) string {
	text := strings.TrimPrefix(stack.Resource+": "+stack.Reason, ": ")
	if stack.Waits == nil {
		return text
	}
	waits := stack.Waits.Message
	if !stack.Waits.Until.IsZero() {
		waits += ", until " + stack.Waits.Until.Format(time.RFC3339) + " at the latest"
	}
	return strings.TrimPrefix(text+"; "+waits, "; ")
}

// printSlowNodes shows the nodes that keep people waiting, and under each the pods that cannot leave.
func printSlowNodes(w io.Writer, nodes []status.Node) {
	if len(nodes) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nNODE\tPOOL\tSTATE\tSINCE\tLEFT\tMESSAGE")
	for _, n := range nodes {
		left := "-"
		if n.EstimateSeconds != nil {
			left = (time.Duration(*n.EstimateSeconds) * time.Second).String()
		}
		message, _, _ := strings.Cut(n.Message, "; blocked: ") // which is told below
		if n.More > 0 {
			fmt.Fprintf(table, "(%d more)\t%s\t%s\t\t\tbefore this one\n", n.More, n.Pool, n.State)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(n.Name, n.Instance), n.Pool, n.State, n.Since.Format(time.RFC3339), left, firstLine(message))
	}
	table.Flush()
	for _, n := range nodes {
		for _, b := range n.Blocked {
			fmt.Fprintf(w, "  %s: pod %s waits: %s\n", cmp.Or(n.Name, n.Instance), b.Pod, strings.TrimSuffix(b.Why+" ("+strings.Join(b.Budgets, ", ")+")", " ()"))
		}
	}
}

// printDeletion shows what became of what Kubernetes made in the account.
func printDeletion(w io.Writer, d *status.Deletion) {
	if d == nil {
		return
	}
	for _, part := range []struct {
		what string
		list []string
	}{{"removed", d.Removed}, {"kept", d.Kept}, {"still there", d.Remaining}} {
		for _, resource := range part.list {
			fmt.Fprintf(w, "%s: %s\n", part.what, resource)
		}
	}
}

func firstLine(text string) string {
	line, rest, more := strings.Cut(text, "\n")
	if more {
		line += fmt.Sprintf(" … (%d more)", strings.Count(rest, "\n")+1)
	}
	return line
}

// allLines of a text, the others under the first: what is to be done next comes last.
func allLines(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// watchInterval between two readings of a status, for a person who looks.
const watchInterval = time.Second

// upload is what a watch waits for the verdict on.
type upload struct {
	// version of the spec, empty when it was deleted, and the version that drover had last looked at before.
	version, before string
}

// anyUpload is for those who only look.
var anyUpload upload

// follow watches what comes of an upload, or says how to.
func follow(ctx context.Context, out io.Writer, c *cell, name string, watch bool, u upload) error {
	if watch {
		return watchStatus(ctx, out, c, name, u)
	}
	fmt.Fprintf(out, "follow it: drover status %s --watch\n", name)
	return nil
}

// deletion says whether it was none: the spec was deleted.
func (u upload) deletion() bool { return u.version == "" && u != anyUpload }

// awaited says that nobody has looked at the upload yet: what the status tells is of the one before.
func (u upload) awaited(s status.Status) bool {
	return u.version != "" && u.version != u.before && s.ObservedVersion == u.before
}

// verdict says whether a cluster's phase is about the upload, or about one that came after it.
func (u upload) verdict(s status.Status) bool {
	return u == anyUpload || s.SpecVersion == u.version || u.superseded(s) && s.SpecVersion == s.ObservedVersion
}

func (u upload) superseded(s status.Status) bool {
	return u != anyUpload && s.ObservedVersion != u.version && s.ObservedVersion != u.before
}

// watchStatus prints what changes in a cluster's status until it is at rest on an upload or a later one.
func watchStatus(ctx context.Context, w io.Writer, c *cell, name string, u upload) error {
	show := newProgress(w)
	defer show.end()
	said := map[string]string{}
	say := func(key, text string) {
		if said[key] != text {
			said[key] = text
			show.say("%s", text)
		}
	}
	for {
		cluster, err := c.state.Status(ctx, name)
		if absent := errors.Is(err, store.ErrNotFound); absent && u == anyUpload {
			return unknown(name)
		} else if err != nil && ctx.Err() != nil {
			return errUnwatched
		} else if err != nil && !absent {
			return err
		}
		s := cluster.Status
		if u.awaited(s) {
			say("phase", "drover has not looked at the upload yet")
			if time.Since(show.started) > verdictSoon {
				say("lost", "its event seems to be lost: the next sweep or audit finds it, within 20 minutes")
			}
			if err := sleep(ctx, watchInterval); err != nil {
				return err
			}
			continue
		}
		for _, condition := range s.Conditions {
			if condition.Status != "True" || said[condition.Type] != "" {
				say(condition.Type, strings.TrimSuffix(fmt.Sprintf("%s is %s: %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message), ": "))
			}
		}
		for _, change := range s.Plan {
			say("plan "+change.Stack, fmt.Sprintf("will %s %s: %s", strings.ToLower(change.Operation), change.Stack, change.Reasons[0].Field))
		}
		for _, stack := range s.Stacks {
			say("stack "+stack.Name, strings.TrimSuffix(fmt.Sprintf("stack %s is %s: %s", stack.Name, stack.Status, about(stack)), ": "))
		}
		for _, n := range s.Nodes {
			message, _, _ := strings.Cut(n.Message, "; blocked: ")
			say("node "+n.Instance, fmt.Sprintf("node %s of pool %s is %s: %s", cmp.Or(n.Name, n.Instance), n.Pool, n.State, firstLine(message)))
			for _, b := range n.Blocked {
				say("pod "+n.Instance+b.Pod, strings.TrimSuffix(fmt.Sprintf("  pod %s waits: %s (%s)", b.Pod, b.Why, strings.Join(b.Budgets, ", ")), " ()"))
			}
		}
		say("phase", phaseLine(name, s))
		show.wait(strings.Join(underWay(s), ", "))
		rejected := s.Condition(status.SpecAccepted)
		if u.version != "" && s.ObservedVersion == u.version && rejected != nil && rejected.Status == "False" {
			return fmt.Errorf("the spec of %s was rejected: %s", name, rejected.Message)
		}
		if u.superseded(s) {
			say("superseded", "a newer spec was uploaded meanwhile: this is about that one now")
		}
		if u.verdict(s) {
			switch s.Phase {
			case status.Ready:
				if u.deletion() {
					return fmt.Errorf("%s was not deleted: its spec was uploaded again meanwhile", name)
				}
				return nil
			case status.Deleted:
				return nil
			case status.Failed, status.Stopped:
				return fmt.Errorf("%s is %s: %s", name, s.Phase, s.Message)
			}
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return err
		}
	}
}

// errUnwatched is what a person who stops watching is told, who may have asked for what goes on.
var errUnwatched = errors.New("you stopped watching; nothing was cancelled, and `drover status` says how it goes on")

// sleep between two looks of a watch.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errUnwatched
	}
}

func phaseLine(name string, s status.Status) string {
	return strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", name, s.Phase, allLines(s.Message)), ": ")
}

// underWay lists the stacks that a converge has still to finish.
func underWay(s status.Status) []string {
	var left []string
	if !s.Converges() {
		return nil
	}
	for _, change := range s.Plan {
		i := slices.IndexFunc(s.Stacks, func(stack status.Stack) bool { return stack.Name == change.Stack })
		if i < 0 || s.Condition(status.Converged) != nil && s.Stacks[i].Since.Before(s.Condition(status.Converged).LastTransitionTime) {
			left = append(left, strings.ToLower(change.Operation)+" "+change.Stack)
		}
	}
	return left
}
