package cli

// The command release: a new release from what AWS recommends, and the checks of a release before its upload.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/ssm"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/releases"
	"github.com/drover-run/drover/shared/store"
)

func releaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Make a release from what AWS recommends, and check releases",
		Example: `  drover release new --kubernetes 1.37
  drover release check releases/1.37-20261201.yaml`,
		Annotations: ExitCodes("done", "an error"),
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(releaseNewCommand(), releaseCheckCommand())
	return cmd
}

func releaseNewCommand() *cobra.Command {
	var kubernetes, from, name string
	var images, regions []string
	var apply bool
	cmd := &cobra.Command{
		Use:   "new --kubernetes VERSION",
		Short: "Print a release of the images and add-on versions that AWS recommends now",
		Long: `Reads the recommended images from the public parameters of SSM, and the default versions of add-ons from EKS, with your credentials
and in your region. Prints a release that pins them. --images chooses the kinds of images: AL2023 for amd64 and arm64, with -nvidia or
-neuron for accelerators, and Bottlerocket as bottlerocket-amd64, with -nvidia, -fips or -nvidia-fips. --regions makes a release for
several regions: spec.images has the images of the first, spec.regions those of the others. --from takes the add-ons with their
configuration, and the template version, from a release: a FILE, or the NAME of one in the account. The name of the new release is its
Kubernetes version with today's date.

It calls AWS only to read, unless --apply uploads the release. An upload changes no cluster.`,
		Example: `  drover release new --kubernetes 1.37
  drover release new --kubernetes 1.37 --from 1.36-4 --images amd64
  drover release new --kubernetes 1.37 --images amd64,amd64-nvidia,bottlerocket-arm64 --regions us-east-1,eu-west-1
  drover release new --kubernetes 1.37 --from releases/1.36-4.yaml --name 1.37-1 --apply`,
		Annotations: ExitCodes("the release is printed; with --apply, it was uploaded",
			"an error: AWS recommends no image or add-on version, or another release has that name"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			o := releases.DraftOptions{Name: name, KubernetesVersion: kubernetes}
			if name == "" {
				o.Name = kubernetes + "-" + time.Now().UTC().Format("20060102")
			}
			var err error
			if o.Images, err = imageKeys(images); err != nil {
				return err
			}
			cfg, err := regionConfig(ctx)
			if err != nil {
				return err
			}
			if o.From, err = readReleaseFrom(ctx, from); err != nil {
				return err
			}
			draft, err := newDrafter(cfg, regions).Draft(ctx, o)
			if err != nil {
				return err
			}
			if apply {
				return applyDraft(ctx, out, draft)
			}
			_, err = out.Write(draft.YAML())
			return err
		},
	}
	cmd.Flags().StringVar(&kubernetes, "kubernetes", "", "the minor version of Kubernetes, such as 1.37")
	cmd.Flags().StringSliceVar(&images, "images", []string{string(api.AMD64), string(api.ARM64)}, "the kinds of images")
	cmd.Flags().StringSliceVar(&regions, "regions", nil, "the regions of the images (default: yours)")
	cmd.Flags().StringVar(&from, "from", "", "the release whose add-ons and template version to keep: a file, or a name")
	cmd.Flags().StringVar(&name, "name", "", "the name of the release (default: the Kubernetes version with today's date)")
	cmd.Flags().BoolVar(&apply, "apply", false, "upload the release instead of printing it; fails if another one has its name")
	if err := cmd.MarkFlagRequired("kubernetes"); err != nil {
		panic(err) // the flag exists
	}
	completeFlag(cmd, "kubernetes", cobra.NoFileCompletions)
	completeFlag(cmd, "images", cobra.FixedCompletions(allImageKeys(), cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "regions", cobra.NoFileCompletions)
	completeFlag(cmd, "from", completeSpecFiles)
	completeFlag(cmd, "name", cobra.NoFileCompletions)
	return cmd
}

// newDrafter returns a drafter for regions. Without regions, it is for the configuration's.
func newDrafter(cfg aws.Config, regions []string) *releases.Drafter {
	if len(regions) == 0 {
		regions = []string{cfg.Region}
	}
	d := &releases.Drafter{}
	for i, region := range regions {
		if slices.Contains(regions[:i], region) {
			continue
		}
		here := cfg.Copy()
		here.Region = region
		d.Catalogs = append(d.Catalogs, releases.Catalog{Region: region, Parameters: ssm.New(here), Images: ec2.New(here)})
		if i == 0 {
			d.Defaults = eks.New(awseks.NewFromConfig(here))
		}
	}
	return d
}

// allImageKeys returns the keys of all kinds of images.
func allImageKeys() (keys []string) {
	for _, kind := range api.ImageKinds() {
		keys = append(keys, kind.Key)
	}
	return keys
}

// imageKeys returns the kinds of images of a flag, each once.
func imageKeys(images []string) (keys []string, err error) {
	for _, image := range images {
		if _, found := api.ImageKindOf(image); !found {
			return nil, fmt.Errorf("--images has %q: must be one of %s", image, strings.Join(allImageKeys(), ", "))
		}
		if !slices.Contains(keys, image) {
			keys = append(keys, image)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("--images is empty: give kinds of images, such as amd64,arm64")
	}
	return keys, nil
}

// readReleaseFrom reads the release of --from: a file, or the name of an uploaded release. It returns nil without one.
func readReleaseFrom(ctx context.Context, from string) (*api.Release, error) {
	if from == "" {
		return nil, nil
	}
	isFile := from == standardInput || strings.ContainsRune(from, filepath.Separator) || slices.Contains([]string{".yaml", ".yml"},
		filepath.Ext(from))
	if isFile {
		return readReleaseFile(from)
	}
	c, err := openCell(ctx)
	if err != nil {
		return nil, err
	}
	object, err := c.Specs.Get(ctx, names.ReleaseSpec(from), api.MaxFile)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("there is no release %s in the account: upload it, or give --from a file that ends in .yaml", from)
	}
	if err != nil {
		return nil, err
	}
	release, errs := api.ReadRelease(names.ReleaseSpec(from), object.Body, options(names.ReleaseSpec(from)))
	return release, errs.Err()
}

func readReleaseFile(file string) (*api.Release, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, err
	}
	release, errs := api.ReadRelease(file, data, options(file))
	return release, errs.Err()
}

// applyDraft uploads a new release, and prints its verdict. It never replaces a release with other content.
func applyDraft(ctx context.Context, out io.Writer, draft *releases.Draft) error {
	c, err := openCell(ctx)
	if err != nil {
		return err
	}
	name, data := draft.Release.Metadata.Name, draft.YAML()
	m := manifest{file: names.ReleaseSpec(name), data: data, name: name, key: names.ReleaseSpec(name), release: draft.Release}
	_, err = c.Specs.Replace(ctx, m.key, data, "")
	if errors.Is(err, store.ErrConflict) {
		existing, failed := c.Specs.Get(ctx, m.key, api.MaxFile)
		if failed != nil {
			return failed
		}
		if !bytes.Equal(existing.Body, data) {
			return fmt.Errorf("release %s exists with other content: choose another name with --name", name)
		}
		err = nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "uploaded release %s; it changes no cluster that is pinned to an earlier one\n", name)
	return printVerdict(ctx, out, c, m, false)
}

func releaseCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a release as drover does after its upload; changes nothing",
		Long: `Makes the checks that drover makes of an uploaded release, with your credentials and in your region: EKS offers the Kubernetes
version, the add-ons are compatible with it, and the images exist.`,
		Example:           `  drover release check releases/1.37-20261201.yaml`,
		Annotations:       ExitCodes("the release can be used", "an error, for example an invalid file", "the release cannot be used"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			release, err := readReleaseFile(args[0])
			if err != nil {
				return err
			}
			cfg, err := regionConfig(ctx)
			if err != nil {
				return err
			}
			printWarnings(cmd.ErrOrStderr(), args[0], warnings(manifest{release: release}, nil))
			return checkRelease(ctx, out, cfg, release)
		},
	}
}

func checkRelease(ctx context.Context, out io.Writer, cfg aws.Config, release *api.Release) error {
	checker := releases.Checker{EKS: eks.New(awseks.NewFromConfig(cfg)), Images: ec2.New(cfg), Now: time.Now}
	checks, err := checker.CheckRelease(ctx, release.In(cfg.Region))
	if err != nil {
		return err
	}
	for _, line := range CheckLines(checks) {
		fmt.Fprintln(out, line)
	}
	if preflight.Blocks(checks) {
		fmt.Fprintf(out, "release %s cannot be used in %s\n", release.Metadata.Name, cfg.Region)
		return errFindings
	}
	fmt.Fprintf(out, "release %s can be used in %s\n", release.Metadata.Name, cfg.Region)
	return nil
}
