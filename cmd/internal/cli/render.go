package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/templates"
)

func renderCommand() *cobra.Command {
	var out, release, account, region, partition string
	cmd := &cobra.Command{
		Use:   "render FILE --out DIR",
		Short: "Render every template and user data file of a cluster, offline and without credentials",
		Example: `  drover render clusters/demo.yaml --out rendered
  drover render clusters/demo.yaml --release releases/1.36-1.yaml --region eu-west-1 --out rendered`,
		Annotations:       ExitCodes("every file was written", "an error"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			output, err := renderFile(args[0], release, account, region, partition)
			if err != nil {
				return err
			}
			files := map[string][]byte{}
			for _, stack := range output.Stacks {
				files[stack.StackName+".yaml"] = stack.Template
			}
			maps.Copy(files, output.UserData)
			for _, name := range slices.Sorted(maps.Keys(files)) {
				path := filepath.Join(out, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, files[name], 0o644); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s (%d bytes)\n", path, len(files[name]))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder to write to")
	cmd.Flags().StringVar(&release, "release", "", "the release's file (default: ../releases/<name>.yaml beside the spec's folder)")
	cmd.Flags().StringVar(&account, "account", "111122223333", "the account that the templates name")
	cmd.Flags().StringVar(&region, "region", "", "the region (default: that of the spec's zones)")
	cmd.Flags().StringVar(&partition, "partition", "aws", "aws, aws-cn or aws-us-gov")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// renderFile renders the cluster of a file.
func renderFile(file, releaseFile, account, region, partition string) (*render.Output, error) {
	cluster, data, err := ReadCluster(file)
	if err != nil {
		return nil, err
	}
	release, _, err := ReadRelease(releaseFile, file, cluster)
	if err != nil {
		return nil, err
	}
	if region == "" {
		if region = regionOf(cluster); region == "" {
			return nil, fmt.Errorf("%s names no zones: say which --region it is for", file)
		}
	}
	resolved, errs := api.Resolve(cluster, release.In(region))
	if errs == nil {
		errs = api.Validate(resolved, api.Options{TemplateVersions: templates.Versions()})
	}
	if errs != nil {
		return nil, errs.In(file, data)
	}
	return render.Render(render.Cluster{
		Cell: render.Cell{
			Partition: partition, Region: region, Account: account, StateBucket: names.StateBucket(account, region),
		},
		Resolved: resolved, Relay: render.UnknownRelay,
	})
}

// regionOf returns the region of a spec's zones, or "" if it names none.
func regionOf(cluster *api.Cluster) string {
	if len(cluster.Spec.Network.Zones) == 0 {
		return ""
	}
	return strings.TrimRight(cluster.Spec.Network.Zones[0], "abcdefghijklmnopqrstuvwxyz")
}
