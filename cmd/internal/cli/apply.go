package cli

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
	var files []string
	cmd := &cobra.Command{
		Use:   "apply [FILE...]",
		Short: "Check specs, releases, the channels and the files of fleets, and upload them",
		Long: `Checks every file first. If all of them are valid, uploads freezes, then releases, the channels, ` +
			`the specs of clusters, rollouts and decisions. It
prints the plan of a rollout, and the answer to a decision. -f takes a file, a folder
(every .yaml file directly in it) or - for standard input, and may be repeated; FILE is the same without -f.`,
		Example: `  drover apply clusters/demo.yaml
  drover apply clusters/demo.yaml --watch
  drover apply releases/1.37-1.yaml clusters/demo.yaml
  drover apply -f clusters
  drover apply rollouts/kubernetes-1.37.yaml
  drover apply -f -`,
		Annotations: ExitCodes("every file was uploaded; with --watch, each cluster is Ready, each release can be used, each rollout is planned",
			"an error; a rollout cannot be planned, or a decision was refused; with --watch, a cluster is not Ready, or a release cannot be used"),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			manifests, err := readManifests(append(args, files...))
			if err != nil {
				return err
			}
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			for _, m := range manifests {
				printWarnings(cmd.ErrOrStderr(), m.file, warnings(m, manifests))
			}
			return applyAll(ctx, out, c, manifests, watch)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file, folder or - to upload; may be repeated")
	completeFlag(cmd, "filename", completeSpecFiles)
	cmd.Flags().BoolVar(&watch, "watch", false,
		"print progress until each cluster is idle, each release is checked and each rollout is planned; fail unless all are Ready or usable")
	return cmd
}

// applyAll uploads manifests in order, and then watches the clusters one after the other. A cluster that fails does
// not end the watch of the others.
func applyAll(ctx context.Context, out io.Writer, c *Cell, manifests []manifest, watch bool) error {
	uploads := map[string]Upload{}
	var failed []error
	for _, m := range manifests {
		if m.ofFleet() {
			if err := applyFleet(ctx, out, c, m, watch); errors.Is(err, errUnwatched) {
				return err
			} else if err != nil {
				failed = append(failed, err)
			}
			continue
		}
		if m.cluster == nil {
			if err := applyRelease(ctx, out, c, m, watch); err != nil {
				return err
			}
			continue
		}
		u, err := applyCluster(ctx, out, c, m, watch)
		if err != nil {
			return err
		}
		uploads[m.name] = u
	}
	for _, m := range manifests {
		if m.cluster == nil {
			continue
		}
		if err := follow(ctx, out, c, m.name, watch, uploads[m.name]); errors.Is(err, errUnwatched) {
			return err
		} else if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// applyCluster uploads the spec of a cluster.
func applyCluster(ctx context.Context, out io.Writer, c *Cell, m manifest, watch bool) (u Upload, err error) {
	before, err := c.State.Status(ctx, m.name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return u, err
	}
	if err := c.upload(ctx, out, m); err != nil {
		return u, err
	}
	u.Before = before.Status.ObservedVersion
	if !watch { // an upload alone needs no permission to read
		return u, nil
	}
	uploaded, err := c.Specs.Get(ctx, m.key, api.MaxFile)
	u.Version = uploaded.Version
	return u, err
}

// How long apply waits for a verdict. A verdict takes seconds, unless the event was missed. With --watch, apply waits until the
// audit has handled a missed event.
const verdictTimeout, verdictWatchTimeout = 20 * time.Second, 20 * time.Minute

// applyRelease uploads a release, or the channels, and prints its verdict.
func applyRelease(ctx context.Context, out io.Writer, c *Cell, m manifest, watch bool) error {
	if _, err := c.Specs.Put(ctx, m.key, m.data); err != nil {
		return err
	}
	if m.name == api.ChannelsName {
		fmt.Fprintln(out, "uploaded the channels; clusters that follow one are upgraded as their windows allow: drover versions")
	} else {
		fmt.Fprintf(out, "uploaded release %s; it changes no cluster that is pinned to an earlier one\n", m.name)
	}
	return printVerdict(ctx, out, c, m, watch)
}

// printVerdict prints the verdict on an uploaded release, or on the channels. It fails unless the file can be used, if watch is set.
func printVerdict(ctx context.Context, out io.Writer, c *Cell, m manifest, watch bool) error {
	what := "release " + m.name
	if m.name == api.ChannelsName {
		what = "the channels"
	}
	timeout := verdictTimeout
	if watch {
		timeout = verdictWatchTimeout
	}
	polls := polls{report: func(text string) { fmt.Fprintln(out, text) }, strict: !watch}
	verdict, err := awaitVerdict(ctx, &polls, c.Specs, c.State, m, timeout)
	switch {
	case err != nil && watch:
		return err
	case err != nil: // an upload alone needs no permission to read
		fmt.Fprintf(out, "drover could not check whether the release can be used: %v\n", err)
		return nil
	case verdict == nil && watch:
		return fmt.Errorf("there is no verdict on %s after %s: see /aws/lambda/drover-publish", what, timeout)
	case verdict == nil:
		fmt.Fprintf(out, "its verdict is pending: `drover apply %s --watch` waits for it; drover writes it to s3://%s/%s\n", m.file,
			c.State.Name(), names.ReleaseStatus(m.name))
		return nil
	}
	for _, line := range CheckLines(verdict.Checks) {
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

// errReplaced ends a wait for a verdict.
var errReplaced = errors.New("was replaced by another upload: yours gets no verdict; compare the two, and upload again")

// uploads reads uploaded files, and verdicts the results of their checks.
type (
	uploads interface {
		Get(ctx context.Context, key string, limit int64) (store.Object, error)
	}
	verdicts interface {
		ReleaseStatus(ctx context.Context, release string) (*status.Release, error)
	}
)

// awaitVerdict waits for the verdict on an uploaded release or on the channels. It returns nil if there is none in time.
func awaitVerdict(ctx context.Context, polls *polls, specs uploads, state verdicts, m manifest, timeout time.Duration) (
	*status.ReleaseStatus, error) {
	version := ""
	for deadline := time.Now().Add(timeout); ; {
		verdict, err := pollVerdict(ctx, specs, state, m, &version)
		if errors.Is(err, errReplaced) {
			return nil, err
		}
		if ends := polls.next(ctx, err); ends != nil {
			return nil, ends
		}
		if verdict != nil || !time.Now().Before(deadline) {
			return verdict, nil
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return nil, err
		}
	}
}

// pollVerdict reads the verdict on an upload. It is nil if there is none yet. version is the upload's, once a poll has read it.
func pollVerdict(ctx context.Context, specs uploads, state verdicts, m manifest, version *string) (*status.ReleaseStatus, error) {
	if *version == "" {
		uploaded, err := specs.Get(ctx, m.key, api.MaxFile)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(uploaded.Body, m.data) {
			return nil, fmt.Errorf("%s %w", m.key, errReplaced)
		}
		*version = uploaded.Version
	}
	verdict, err := state.ReleaseStatus(ctx, m.name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil || verdict.Status.Version != *version {
		return nil, err
	}
	return &verdict.Status, nil
}
