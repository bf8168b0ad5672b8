package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/shared/names"
)

// localOptions are the flags of drover local.
type localOptions struct {
	dir, root     string
	port          uint16
	keyID, secret string
	speed         float64
	other         string
	demo, release string
	roll, upgrade string
	fleet         string
	once, empty   bool
	faults        []string
	seed          uint64
	address       string
}

func localCommand() *cobra.Command {
	var o localOptions
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Run an AWS account on this machine, with drover deployed in it",
		Long: `Runs an AWS account on this machine: S3, Lambda, Step Functions, EventBridge, CloudFormation, Auto Scaling, EKS with real
Kubernetes API servers, and the rest that drover needs, with IAM enforced. drover is deployed in it from the synthesized
CloudFormation templates. Simulated work, such as the boot of an instance, runs --speed times faster than on AWS.

An account lives as long as this process: its clusters, buckets and access keys end with it, and it cannot be started again. Logs
and data stay in --dir, but no later account can use them, so --dir must be an empty or a new folder each time. --port, --access-key-id and
--secret-access-key give the next account the same address and key, so that a shell's environment stays valid.`,
		Example: `  drover local
  drover local --port 4566 --access-key-id AKIALOCALACCOUNT0001 --secret-access-key local-secret
  eval "$(drover local env)"
  drover local --demo examples/clusters/demo.yaml --once`,
		Annotations:       cli.ExitCodes("the account ended without an error; with --demo, the cluster was Ready", "an error"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runLocal(cmd.Context(), cmd.OutOrStdout(), o) },
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "new or empty folder for the account's data and logs (default: a temporary folder, "+
		"removed at the end)")
	cmd.Flags().StringVar(&o.root, "build", "build", "where make local built Kubernetes and the cloud assembly")
	cmd.Flags().Uint16Var(&o.port, "port", 0, "port to listen on at 127.0.0.1 (default: a free one)")
	cmd.Flags().StringVar(&o.keyID, "access-key-id", "", "access key id of the account's administrator (default: a generated one)")
	cmd.Flags().StringVar(&o.secret, "secret-access-key", "", "secret of --access-key-id, which other processes of this machine can see")
	cmd.MarkFlagsRequiredTogether("access-key-id", "secret-access-key")
	cmd.Flags().StringVar(&o.address, "user-address", account.UserAddress.Addr().String(), "public address from which you call; it decides "+
		"which endpoints of clusters you reach")
	cmd.Flags().Float64Var(&o.speed, "speed", 60, "how many times faster than on AWS simulated work runs")
	cmd.Flags().StringVar(&o.other, "other-reading", "", "what AWS's documentation leaves open, and this account reads less strictly: all, "+
		"or some of "+questions.Names())
	cmd.Flags().StringVar(&o.demo, "demo", "", "the spec of a cluster to upload and follow until it is Ready")
	cmd.Flags().StringVar(&o.release, "release", "", "the release of that cluster")
	cmd.Flags().StringVar(&o.roll, "roll", "", "then replace the nodes of this pool of it, under workloads with disruption budgets")
	cmd.Flags().StringVar(&o.upgrade, "upgrade", "", "then upgrade it to this release, by a schedule, under the same workloads; it begins "+
		"at that of --release")
	cmd.Flags().StringVar(&o.fleet, "fleet", "", "then move clusters to newer node images: a folder with them, a release and a rollout; they "+
		"are created at the release of --upgrade")
	cmd.Flags().StringArrayVar(&o.faults, "fault", nil,
		`what goes wrong, such as 'throttle caller=plan p=0.2'; can be repeated (docs/faults.md)`)
	cmd.Flags().Uint64Var(&o.seed, "fault-seed", 1, "seed of the random choices of faults: the same rules with the same seed "+
		"affect the same calls")
	cmd.Flags().BoolVar(&o.once, "once", false, "end when the cluster is Ready, instead of staying up")
	cmd.Flags().BoolVar(&o.empty, "empty", false, "start the account without drover, to try make bootstrap and make deploy in it")
	cmd.MarkFlagsMutuallyExclusive("empty", "demo")
	cmd.AddCommand(localEnvCommand())
	return cmd
}

func runLocal(ctx context.Context, out io.Writer, o localOptions) (err error) {
	if o.roll != "" && o.demo == "" {
		return errors.New("--roll replaces nodes of the cluster of --demo: give both")
	}
	if o.upgrade != "" && (o.demo == "" || o.release == "") {
		return errors.New("--upgrade takes the cluster of --demo from --release to another: give all three")
	}
	if o.fleet != "" && o.upgrade == "" {
		return errors.New("--fleet creates its clusters at the release of --upgrade: give both")
	}
	readings, err := questions.Parse(o.other)
	if err != nil {
		return fmt.Errorf("reading --other-reading: %w", err)
	}
	var rules []faults.Rule
	for _, text := range o.faults {
		r, err := faults.Parse(text)
		if err != nil {
			return err
		}
		rules = append(rules, r)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "drover-local-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	// Absolute, because the S3 gateway changes the working directory of the process.
	for _, path := range []*string{&o.dir, &o.root, &o.demo, &o.release, &o.upgrade, &o.fleet} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := checkDir(ctx, o.dir); err != nil {
		return err
	}
	show := &timeline{Progress: view.NewProgress(out)}
	defer show.End()
	address, err := netip.ParseAddr(o.address)
	if err != nil {
		return fmt.Errorf("reading --user-address %q: %w; give an address such as %s", o.address, err, account.UserAddress.Addr())
	}
	a, err := account.Start(account.Options{
		Dir: o.dir, KubernetesBin: kubernetes.BinDir(filepath.Dir(o.root)), Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))),
		AccessKeyID: o.keyID, SecretAccessKey: o.secret, Speed: o.speed, Readings: readings,
		OnStackEvent: show.stack, OnExecution: show.execution, FaultSeed: o.seed,
		UserAddress: netip.PrefixFrom(address, address.BitLen()),
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d is in use: another local account may have it (see `drover local env`): end that one, or give another --port",
			o.port)
	}
	if err != nil {
		return err
	}
	defer a.Close()
	defer show.ended.Store(true)
	a.Lambda.Observe = show.function
	show.Say("local account %s in %s at %s", account.ID, a.Region(), a.URL())
	if !o.empty {
		if err := a.Deploy(ctx, filepath.Join(o.root, "cdk.out")); err != nil {
			return err
		}
		show.Say("deployed drover, as cdk deploy does: %d resources", show.resources())
	}
	unregister, err := register(a, o.dir)
	if err != nil {
		show.Say("`drover local env` does not find this account: %v", err)
	} else {
		defer unregister()
	}
	for _, r := range rules {
		if _, err := a.Faults.Add(time.Now(), r); err != nil {
			return err
		}
		show.Say("from now on: %s", r)
	}
	if o.demo != "" {
		if err := runDemo(ctx, out, show, a, o); err != nil {
			return err
		}
	}
	if o.once {
		fmt.Fprintf(out, "\nTo keep an account up: make up. It prints how to reach it with drover, kubectl and the aws command.\n")
		return nil
	}
	page, serve := openPage(a, o)
	printUsage(out, a, o, page)
	return serve(ctx)
}

// openPage returns the line about the page of drover ui, and what to do until the account ends: serve the page, if there is one.
func openPage(a *account.Account, o localOptions) (line string, serve func(context.Context) error) {
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	if o.empty {
		return "", wait
	}
	address, serve, err := cli.OpenPage(cli.NewCell(a.Config(), "aws", account.ID), 0)
	if err != nil {
		return fmt.Sprintf("\nThe page of drover ui is not served: %v\n", err), wait
	}
	return fmt.Sprintf("\nThe page of drover ui, with the clusters and rollouts of this account:\n\n  %s\n", address), serve
}

// checkDir rejects a folder that is not empty, before the account writes to it.
func checkDir(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--dir cannot be read: %w", err)
	}
	if running, err := runningAccounts(ctx); err == nil {
		if a, err := selectAccount(running, dir); err == nil {
			return fmt.Errorf("--dir %s is in use: a local account runs in it, at %s: use that one (drover local env), or give another folder",
				dir, a.Environment["AWS_ENDPOINT_URL"])
		}
	}
	return fmt.Errorf("--dir %s is not empty: "+
		"a local account lives as long as its process, so what an earlier one left cannot be used again: remove the folder, or give another", dir)
}

// printUsage prints how to use the account from a shell.
func printUsage(out io.Writer, a *account.Account, o localOptions, page string) {
	fmt.Fprint(out, page)
	fmt.Fprintf(out, "\nIn another shell, eval \"$(build/drover local env)\", or:\n\n")
	printEnvironment(out, "  ", a.Environment())
	if o.empty {
		fmt.Fprintf(out, `
  make bootstrap
  make deploy APP=%[1]s/cdk.out APPROVAL=never
  make destroy APP=%[1]s/cdk.out
  make destroy-all APP=%[1]s/cdk.out

APP names the cloud assembly of make local, whose functions run on this machine. Then:
`, o.root)
	}
	fmt.Fprintf(out, `
  build/drover apply examples/releases/1.36-1.yaml
  build/drover apply examples/releases/1.37-1.yaml
  (cat examples/clusters/demo.yaml; echo '%s') > build/demo.yaml
  build/drover apply build/demo.yaml --watch
  build/drover status
  build/drover roll demo workers --dry-run
  build/drover upgrade demo --to 1.37-1 --dry-run
  aws --endpoint-url $AWS_ENDPOINT_URL s3 ls s3://%s --recursive
  aws --endpoint-url $AWS_ENDPOINT_URL cloudformation describe-stacks
  aws --endpoint-url $AWS_ENDPOINT_URL stepfunctions start-execution --input '{"cluster":"demo"}' \
    --state-machine-arn arn:aws:states:%s:%s:stateMachine:drover-converge
  kubectl --kubeconfig %s get nodes

build/demo.yaml is the example with an access entry for you, so that the dry runs may look into the cluster. The kubeconfig `+
		`is its administrator's.
The clusters' logs are in %s.

Warning: give the aws command --endpoint-url each time. Version 1 ignores AWS_ENDPOINT_URL for sqs, and versions before 1.29.0 and
2.13.0 ignore it for every service: such a call goes to AWS itself. drover reads it always.

Ctrl-C ends the account and everything in it; it cannot be started again.
`, cli.AccessLine(a.Principal()), names.StateBucket(account.ID, a.Region()), a.Region(), account.ID,
		a.KubeconfigPattern("demo"), filepath.Join(o.dir, "clusters"))
}
