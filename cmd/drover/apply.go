package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func applyCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Check a spec, a release or the channels, and upload it",
		Example: `  drover apply clusters/demo.yaml
  drover apply clusters/demo.yaml --watch`,
		Annotations: exitCodes("the file was uploaded; with --watch, the cluster is Ready, or the release can be used",
			"an error; with --watch, the cluster is not Ready, or the release cannot be used"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, file := cmd.Context(), args[0]
			data, err := readFile(file)
			if err != nil {
				return err
			}
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			if kind := api.KindOf(data); kind == api.KindRelease || kind == api.KindChannels {
				return applyRelease(ctx, cmd.OutOrStdout(), c, file, data, watch)
			}
			cluster, _, err := readCluster(file)
			if err != nil {
				return err
			}
			name := cluster.Metadata.Name
			before, err := c.state.Status(ctx, name)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if _, err := c.specs.Put(ctx, names.ClusterSpec(name), data); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "uploaded %s to s3://%s/%s\n", file, c.specs.Name(), names.ClusterSpec(name))
			u := upload{before: before.Status.ObservedVersion}
			if watch { // who only uploads needs no permission to read
				uploaded, err := c.specs.Get(ctx, names.ClusterSpec(name), api.MaxFile)
				if err != nil {
					return err
				}
				u.version = uploaded.Version
			}
			return follow(ctx, cmd.OutOrStdout(), c, name, watch, u)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show what happens until the cluster is at rest, or the verdict on a release is there; fails unless it is Ready, or can be used")
	return cmd
}

// How long apply waits for a verdict: without --watch for one that comes at once, as it does unless an event was lost; with it until the
// audit has looked, too.
const verdictSoon, verdictLate = 20 * time.Second, 20 * time.Minute

// applyRelease uploads a release, or the channels, and prints what is found out about it.
func applyRelease(ctx context.Context, out io.Writer, c *cell, file string, data []byte, watch bool) error {
	if errs := validate(file, data); errs != nil {
		return errs
	}
	name := options(file).Name // which validation has found in it
	if _, err := c.specs.Put(ctx, names.ReleaseSpec(name), data); err != nil {
		return err
	}
	what := "release " + name
	if name == api.ChannelsName {
		what = "the channels"
		fmt.Fprintln(out, "uploaded the channels; clusters that follow one are upgraded as their windows allow: drover versions")
	} else {
		fmt.Fprintf(out, "uploaded release %s; it changes no cluster that is pinned to an earlier one\n", name)
	}
	patience := verdictSoon
	if watch {
		patience = verdictLate
	}
	verdict, err := awaitVerdict(ctx, c, name, data, patience)
	switch {
	case err != nil && watch:
		return err
	case err != nil: // who only uploads needs no permission to read
		fmt.Fprintf(out, "whether it can be used is not known here: %v\n", err)
		return nil
	case verdict == nil && watch:
		return fmt.Errorf("there is no verdict on %s after %s: see /aws/lambda/drover-publish", what, patience)
	case verdict == nil:
		fmt.Fprintf(out, "its verdict is not there yet: `drover apply %s --watch` waits for it; it comes to s3://%s/%s\n", file, c.state.Name(), names.ReleaseStatus(name))
		return nil
	}
	for _, line := range checkLines(verdict.Checks) {
		fmt.Fprintln(out, line)
	}
	if verdict.Usable {
		fmt.Fprintf(out, "%s can be used\n", what)
		return nil
	}
	if watch {
		return fmt.Errorf("%s cannot be used", what)
	}
	fmt.Fprintf(out, "%s cannot be used\n", what)
	return nil
}

// awaitVerdict waits for what is found out about a content of a release or the channels; nil is that nobody looked at it in time.
func awaitVerdict(ctx context.Context, c *cell, name string, data []byte, patience time.Duration) (*status.ReleaseStatus, error) {
	uploaded, err := c.specs.Get(ctx, names.ReleaseSpec(name), api.MaxFile)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(uploaded.Body, data) {
		return nil, fmt.Errorf("somebody else uploaded another %s meanwhile", names.ReleaseSpec(name))
	}
	for deadline := time.Now().Add(patience); ; {
		verdict, err := c.state.Verdict(ctx, name)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		case err == nil && verdict.Status.Version == uploaded.Version:
			return &verdict.Status, nil
		case !time.Now().Before(deadline):
			return nil, nil
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return nil, err
		}
	}
}
