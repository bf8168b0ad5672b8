package cli

// The events command: a timeline of a cluster.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/store"
)

// followInterval is the pause between two reads of a command with --follow. Each read is a few calls to each service.
const followInterval = 3 * time.Second

// timeFormat is the format of times in lines: UTC, as in AWS's consoles.
const timeFormat = "2006-01-02T15:04:05Z"

const (
	defaultSince = "1h"
	sinceUsage   = "begin so long ago, such as 90m, 24h or 3d, or at a time such as 2026-11-26T08:00:00Z"
)

func eventsCommand() *cobra.Command {
	var since string
	var followed bool
	cmd := &cobra.Command{
		Use:   "events CLUSTER",
		Short: "Show what happened to a cluster, as one timeline",
		Long: `Shows one timeline of a cluster: uploads of its spec, executions of drover's machines and their states, ` +
			`events of its stacks, joins and
drains of its nodes, and errors of drover's functions. An execution that began before --since is shown from there on.`,
		Example: `  drover events demo
  drover events demo --since 24h
  drover events demo --follow
  drover events demo --since 2026-11-26T08:00:00Z -o json`,
		Annotations:       ExitCodes("the events are printed, if there are any", "an error"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
	}
	output := addOutputFlag(cmd)
	cmd.Flags().StringVar(&since, "since", defaultSince, sinceUsage)
	cmd.Flags().BoolVarP(&followed, "follow", "f", false, "continue with new events until you interrupt it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, out := cmd.Context(), cmd.OutOrStdout()
		if followed && output.forMachines() {
			return errors.New("--follow prints lines as they come: give it without -o")
		}
		from, err := sinceTime(since, time.Now())
		if err != nil {
			return err
		}
		c, err := openCell(ctx)
		if err != nil {
			return err
		}
		if err := verifyKnown(ctx, c, args[0]); err != nil {
			return err
		}
		h := NewHistory(c, args[0], from)
		if !output.forMachines() {
			return showEvents(ctx, out, h, followed)
		}
		found, err := h.Read(ctx)
		if err != nil {
			return err
		}
		return output.print(out, append([]Entry{}, found...))
	}
	return cmd
}

// showEvents prints a cluster's history. When followed, it prints new entries until ctx ends.
func showEvents(ctx context.Context, out io.Writer, h eventSource, followed bool) error {
	polls := followPolls(out)
	for {
		found, err := h.Read(ctx)
		if followed && ctx.Err() != nil {
			return nil
		}
		if err := polls.next(ctx, err); err != nil {
			return err
		}
		for _, e := range found {
			fmt.Fprintf(out, "%s  %s\n", e.Time.UTC().Format(timeFormat), strings.ReplaceAll(e.String(), "\n", "\n  "))
		}
		if !followed || sleep(ctx, followInterval) != nil {
			return nil
		}
	}
}

// followPolls reports failed polls as lines with a time, like those of --follow.
func followPolls(out io.Writer) *polls {
	return &polls{strict: true, report: func(text string) {
		fmt.Fprintf(out, "%s  %-10s  %s\n", time.Now().UTC().Format(timeFormat), "drover", text)
	}}
}

// sinceTime reads --since: a duration before now, in days too, or a time.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	var days float64
	if n, err := fmt.Sscanf(text, "%fd", &days); n == 1 && err == nil && fmt.Sprintf("%gd", days) == text && days >= 0 {
		return now.Add(-time.Duration(days * float64(24*time.Hour))), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return time.Time{}, fmt.Errorf("--since %s is neither a duration nor a time: write 90m, 24h, 3d or 2026-11-26T08:00:00Z", text)
	}
	return now.Add(-d), nil
}

// verifyKnown returns an error when a cluster has neither a status nor a spec.
func verifyKnown(ctx context.Context, c *Cell, cluster string) error {
	_, err := c.State.Status(ctx, cluster)
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	exists, err := specs.Exists(ctx, c.Specs, names.ClusterSpec(cluster))
	if err == nil && !exists {
		return unknown(cluster)
	}
	return err
}
