package cli

// init: a first spec, from answers and from what the account has.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

func initCommand() *cobra.Command {
	var s starter
	var out string
	cmd := &cobra.Command{
		Use:   "init [CLUSTER]",
		Short: "Write a first spec of a cluster, which validates as written",
		Long: `Writes a commented spec of about 30 lines, and changes nothing in AWS. On a terminal it asks every question that no flag
answers, and proposes an answer: the release that was uploaded last, zones that EKS accepts, and a network of its own. Without a
terminal it takes what it would propose. --vpc puts the cluster into an existing VPC, by default into its private subnets.

The spec gives you access to the cluster: the IAM user or role of your credentials.`,
		Example: `  drover init demo
  drover init demo --release 1.36-1 --zones us-east-1a,us-east-1b --instance-types m7g.large
  drover init demo --vpc vpc-0a1b2c3d4e5f60718 --out clusters/demo.yaml`,
		Annotations: ExitCodes("the spec is written", "an error; no file is written"),
		Args:        cobra.MaximumNArgs(1),
		// The name is new.
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				s.Name = args[0]
			}
			in, _ := cmd.InOrStdin().(*os.File)
			q := &questions{out: cmd.ErrOrStderr()}
			if in != nil && term.IsTerminal(int(in.Fd())) {
				q.in = bufio.NewReader(in)
			}
			if err := s.complete(cmd.Context(), q, cmd.Flags().Changed); err != nil {
				return err
			}
			if out == "" {
				out = s.Name + ".yaml"
			}
			return writeStarter(cmd.OutOrStdout(), out, &s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Release, "release", "", "the release (default the one that was uploaded last)")
	flags.StringVar(&s.CIDR, "cidr", defaultCIDR, "the addresses of a new VPC")
	flags.StringSliceVar(&s.Zones, "zones", nil, "the availability zones of a new VPC (default three that EKS accepts)")
	flags.StringVar(&s.VPC, "vpc", "", "the id of an existing VPC")
	flags.StringSliceVar(&s.Subnets, "subnets", nil, "the ids of subnets of --vpc (default its private ones)")
	flags.StringSliceVar(&s.InstanceTypes, "instance-types", []string{"m7i.large"}, "the instance types of the nodes, in order of preference")
	flags.IntVar(&s.MinSize, "min", 2, "the minimum number of nodes")
	flags.IntVar(&s.MaxSize, "max", 4, "the maximum number of nodes")
	flags.StringVar(&s.Access, "access", "", "the ARN of the IAM user or role that administers the cluster (default yours)")
	flags.StringVar(&out, "out", "", "the file to write, or - for standard output (default CLUSTER.yaml)")
	completeFlagNames(cmd, "release", releaseNames)
	for _, name := range []string{"cidr", "zones", "vpc", "subnets", "instance-types", "min", "max", "access"} {
		completeFlag(cmd, name, cobra.NoFileCompletions)
	}
	completeFlag(cmd, "out", completeSpecFiles)
	return cmd
}

const (
	defaultCIDR = "10.0.0.0/16"
	// proposedZones is how many zones a new network has.
	proposedZones = 3
)

// questions asks on a terminal. Without one (in is nil), the proposed answers apply.
type questions struct {
	in  *bufio.Reader
	out io.Writer
}

// ask returns the answer to a question, or what is proposed.
func (q *questions) ask(question, proposed string) (string, error) {
	if q.in == nil {
		return proposed, nil
	}
	fmt.Fprintf(q.out, "%s [%s]: ", question, proposed)
	line, err := q.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		line = proposed
	}
	return line, nil
}

// askList is ask where the answer is values, separated by commas or spaces.
func (q *questions) askList(question string, proposed []string) ([]string, error) {
	answer, err := q.ask(question, strings.Join(proposed, ","))
	return strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' }), err
}

// askNumber is ask where the answer is a number.
func (q *questions) askNumber(question string, proposed int) (int, error) {
	answer, err := q.ask(question, strconv.Itoa(proposed))
	if err != nil {
		return 0, err
	}
	number, err := strconv.Atoi(answer)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is no number", question, answer)
	}
	return number, nil
}

// complete asks every question that no flag answers. given reports whether a flag was given.
func (s *starter) complete(ctx context.Context, q *questions, given func(flag string) bool) (err error) {
	if s.Name == "" {
		if s.Name, err = q.ask("Name of the cluster", ""); err != nil {
			return err
		}
		if s.Name == "" {
			return errors.New("the name of the cluster is missing: drover init CLUSTER")
		}
	}
	cfg, err := regionConfig(ctx)
	if err != nil {
		return err
	}
	if !given("release") {
		if err := s.askRelease(ctx, q); err != nil {
			return err
		}
	}
	if err := s.askNetwork(ctx, q, cfg, given); err != nil {
		return err
	}
	if !given("instance-types") {
		if s.InstanceTypes, err = q.askList("Instance types, in order of preference", s.InstanceTypes); err != nil {
			return err
		}
	}
	if len(s.InstanceTypes) > 0 {
		s.Architecture = api.ArchitectureOf(s.InstanceTypes[0])
	}
	if !given("min") {
		if s.MinSize, err = q.askNumber("Minimum number of nodes", s.MinSize); err != nil {
			return err
		}
	}
	if !given("max") {
		if s.MaxSize, err = q.askNumber("Maximum number of nodes", max(s.MaxSize, s.MinSize)); err != nil {
			return err
		}
	}
	if given("access") {
		return nil
	}
	principal, hint, _, err := callerPrincipal(ctx, cfg)
	if hint != "" {
		fmt.Fprintf(q.out, "warning: spec.controlPlane.access: %s\n", strings.TrimSpace(hint))
	}
	s.Access = principal
	return err
}

// askRelease proposes the release that was uploaded last.
func (s *starter) askRelease(ctx context.Context, q *questions) error {
	c, err := openCell(ctx)
	if err != nil {
		return err
	}
	entries, err := c.Specs.List(ctx, names.ReleaseSpecs)
	if err != nil {
		return fmt.Errorf("--release is missing, and the uploaded releases cannot be listed: %w", err)
	}
	slices.SortStableFunc(entries, func(a, b store.Entry) int { return b.Modified.Compare(a.Modified) })
	var all []string
	for _, entry := range entries {
		if name, ok := names.ReleaseOfKey(entry.Key); ok && name != api.ChannelsName {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return errors.New("there is no release yet, from which a cluster takes its Kubernetes version, images and add-ons: upload one, " +
			"for example with `drover release new --kubernetes 1.36 --apply`, or name one that you will upload with --release")
	}
	s.Release, err = q.ask("Release: "+strings.Join(all, ", "), all[0])
	return err
}

// askNetwork proposes a new VPC in zones that EKS accepts. In an existing VPC, it proposes the private subnets in such zones.
func (s *starter) askNetwork(ctx context.Context, q *questions, cfg aws.Config, given func(flag string) bool) error {
	var err error
	if !given("vpc") && !given("cidr") && !given("zones") {
		if s.VPC, err = q.ask("Id of an existing VPC (empty: a new VPC)", ""); err != nil {
			return err
		}
	}
	networks := ec2.NewNetworks(cfg, "")
	zones, err := networks.Zones(ctx)
	if err != nil {
		return err
	}
	if s.VPC != "" {
		if len(s.Subnets) == 0 {
			return s.askSubnets(ctx, q, networks)
		}
		return nil
	}
	if len(s.Subnets) > 0 {
		return errors.New("--subnets needs --vpc: the id of the VPC that has them")
	}
	if !given("cidr") {
		if s.CIDR, err = q.ask("Addresses of the VPC", s.CIDR); err != nil {
			return err
		}
	}
	if given("zones") {
		return nil
	}
	var accepted []string
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		if !doctor.RefusedZone(zones[zone]) {
			accepted = append(accepted, zone)
		}
	}
	s.Zones, err = q.askList("Zones: "+strings.Join(accepted, ", "), accepted[:min(len(accepted), proposedZones)])
	return err
}

// askSubnets proposes the private subnets of the VPC.
func (s *starter) askSubnets(ctx context.Context, q *questions, networks *ec2.Networks) error {
	subnets, err := networks.Subnets(ctx, []string{s.VPC})
	if err != nil {
		return err
	}
	public, err := networks.PublicSubnets(ctx, subnets)
	if err != nil {
		return err
	}
	var private []string
	for _, id := range slices.Sorted(maps.Keys(subnets)) {
		if !public[id] && !doctor.RefusedZone(subnets[id].ZoneID) {
			private = append(private, id)
		}
	}
	if len(private) < 2 && q.in == nil {
		return fmt.Errorf("VPC %s has %d private subnets in zones that EKS accepts, and a cluster needs two, in two zones: "+
			"name subnets with --subnets", s.VPC, len(private))
	}
	s.Subnets, err = q.askList("Subnets of "+s.VPC, private)
	return err
}

// writeStarter validates and writes the spec. It replaces no file.
func writeStarter(stdout io.Writer, file string, s *starter) error {
	text := s.yaml()
	checked := file
	if file == standardInput {
		checked = s.Name + ".yaml"
	}
	if _, err := ParseCluster(checked, text); err != nil {
		return fmt.Errorf("%w\nnothing was written: repeat the command with other answers", err)
	}
	if file == standardInput {
		_, err := stdout.Write(text)
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and is unchanged: choose another file with --out", file)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	fmt.Fprintf(stdout, "wrote %[1]s. Next:\n  drover diff %[1]s            # what it creates\n  drover apply %[1]s --watch\n", file)
	return nil
}
