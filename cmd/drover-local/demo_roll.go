package main

// The second part of the demo rolls a pool of the cluster to another image, under workloads with disruption budgets. A watcher
// that is independent of the roll counts their ready replicas.

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// shop has the workloads of the demo.
var shop = []workload.Workload{
	{Namespace: "shop", Name: "web", Kind: workload.Deployment, Replicas: 12, MaxUnavailable: "25%", ReadyAfter: time.Second,
		EndsAfter: time.Second, Grace: 10 * time.Second},
	{Namespace: "shop", Name: "cart", Kind: workload.Deployment, Replicas: 4, MinAvailable: "3", ReadyAfter: time.Second,
		EndsAfter: time.Second, Grace: 10 * time.Second},
	{Namespace: "shop", Name: "search", Kind: workload.Deployment, Replicas: 6, MaxUnavailable: "50%",
		ReadyAfter: 500 * time.Millisecond, EndsAfter: 500 * time.Millisecond, Grace: 5 * time.Second, EmptyDir: true},
	{Namespace: "shop", Name: "database", Kind: workload.StatefulSet, Replicas: 3, MaxUnavailable: "1", ReadyAfter: time.Second,
		EndsAfter: time.Second, Grace: 10 * time.Second},
	{Namespace: "shop", Name: "log-agent", Kind: workload.DaemonSet},
}

var nodeResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// load is a client of the cluster and the watcher of its workloads.
type load struct {
	client  dynamic.Interface
	watcher *workload.Watcher
}

// loadDemo deploys the workloads, and then rolls or upgrades the cluster. It fails if a disruption budget was broken.
func loadDemo(ctx context.Context, out io.Writer, show *timeline, a *account.Account, c *cli.Cell, d demo, o localOptions) (err error) {
	client, kubeconfig, err := a.EKS.Administrator(names.EKSCluster(d.cluster.Metadata.Name))
	if err != nil {
		return err
	}
	run, err := workload.Open(kubeconfig)
	if err != nil {
		return err
	}
	watcher, err := run.WatchOverRestarts(ctx) // an upgrade starts the API server again
	if err != nil {
		return err
	}
	defer func() {
		if missed := watcher.Close(); err == nil {
			err = missed
		}
	}()
	fmt.Fprintln(out)
	if err := deployShop(ctx, show, d.cluster.Metadata.Name, run, watcher); err != nil {
		return err
	}
	l := load{client, watcher}
	if o.roll != "" {
		if err := l.roll(ctx, out, show, a, c, d, o); err != nil || o.upgrade == "" {
			return err
		}
		watcher.Forget()
	}
	return l.upgrade(ctx, out, show, a, c, d, o)
}

// roll uploads the spec with another image for a pool, and waits until the cluster is Ready again. It fails if an old node is left.
func (l load) roll(ctx context.Context, out io.Writer, show *timeline, a *account.Account, c *cli.Cell, d demo, o localOptions) error {
	name := d.cluster.Metadata.Name
	old, err := account.PoolNodes(ctx, l.client, o.roll)
	if err != nil {
		return err
	}
	image, spec, err := withImage(o.demo, d.cluster, d.release.Spec.KubernetesVersion, d.spec, o.roll)
	if err != nil {
		return err
	}
	uploaded := time.Now()
	s, err := uploadAndWait(ctx, show, c, name, spec, fmt.Sprintf("image %s for pool %s", image, o.roll))
	if err != nil {
		return err
	}
	show.line("status", name, "%s: %s", s.Phase, s.Message)
	if s.Phase != status.Ready {
		cli.PrintStatus(out, &status.Cluster{Metadata: status.Metadata{Name: name}, Status: *s})
		return fmt.Errorf("%s is not Ready after the roll", name)
	}
	// The stack does not wait for drains: the last of them continue after it is complete.
	show.Wait("the last drains")
	if err := a.Settle(ctx); err != nil {
		return err
	}
	if err := a.AwaitRolled(ctx, l.client, o.roll, image, old); err != nil {
		return err
	}
	took := time.Since(uploaded)
	if err := l.healthy(ctx); err != nil {
		return err
	}
	show.line("rolled", name, "all nodes of pool %s are on image %s", o.roll, image)
	show.Wait("")
	if err := printNodes(ctx, out, l.client, s.Endpoint); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d nodes of pool %s were replaced %.1f s after the upload. What an independent watcher saw:\n\n",
		len(old), o.roll, took.Seconds())
	return printDisruption(out, l.watcher.Healthy)
}

// healthy waits until all replicas are healthy.
func (l load) healthy(ctx context.Context) error {
	return l.watcher.Wait(ctx, "all replicas to be healthy again", func() bool { return l.watcher.Settled(shop...) })
}

// deployShop deploys the workloads. It waits until their pods run and the disruption budgets count them.
func deployShop(ctx context.Context, show *timeline, name string, run *workload.Cluster, watcher *workload.Watcher) error {
	show.Wait("the workloads")
	if err := run.Run(ctx, watcher, shop...); err != nil {
		return err
	}
	replicas, budgets := 0, 0
	for _, w := range shop {
		replicas += w.Replicas
		if w.MaxUnavailable != "" || w.MinAvailable != "" {
			budgets++
		}
	}
	show.line("workloads", name, "%d with %d replicas, a pod on each node and %d disruption budgets: all Ready", len(shop),
		replicas, budgets)
	return nil
}

// withImage is the spec with another image of the Kubernetes version for a pool.
func withImage(file string, cluster *api.Cluster, version string, spec []byte, pool string) (image string, changed []byte, err error) {
	i := slices.IndexFunc(cluster.Spec.Pools, func(p api.Pool) bool { return p.Name == pool })
	if i < 0 {
		return "", nil, fmt.Errorf("%s has no pool %s to be rolled", file, pool)
	}
	image = ec2.RebuiltImageID(version, string(cmp.Or(cluster.Spec.Pools[i].Architecture, api.AMD64)))
	// The line is added below the pool's name, so that the rest of the file stays as its author wrote it.
	var lines [][]byte
	for line := range bytes.Lines(spec) {
		lines = append(lines, line)
		if dash, ok := bytes.CutSuffix(bytes.TrimRight(line, "\n"), []byte("- name: "+pool)); ok {
			lines = append(lines, fmt.Appendf(nil, "%s  imageID: %s\n", dash, image))
		}
	}
	changed = bytes.Join(lines, nil)
	read, err := cli.ParseCluster(file, changed)
	if err != nil {
		return "", nil, err
	}
	if read.Spec.Pools[i].ImageID != image {
		return "", nil, fmt.Errorf("%s: pool %s is not written as - name: %s", file, pool, pool)
	}
	return image, changed, nil
}

// uploadAndWait uploads a spec and waits until the cluster is idle.
func uploadAndWait(ctx context.Context, show *timeline, c *cli.Cell, name string, spec []byte, what string) (*status.Status, error) {
	before, err := c.State.Status(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := c.Specs.Put(ctx, names.ClusterSpec(name), spec); err != nil {
		return nil, err
	}
	uploaded, err := c.Specs.Get(ctx, names.ClusterSpec(name), api.MaxFile)
	if err != nil {
		return nil, err
	}
	show.line("uploaded", name, "%s to s3://%s/%s", what, c.Specs.Name(), names.ClusterSpec(name))
	s, err := awaitRest(ctx, c, name, cli.Upload{Version: uploaded.Version, Before: before.Status.ObservedVersion})
	show.Wait("")
	return s, err
}

// printDisruption prints the least ready replicas of each workload and what its budget keeps. It fails on a broken budget.
func printDisruption(out io.Writer, healthy func(namespace, name string) (now, least int)) error {
	table := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  WORKLOAD\tKIND\tREPLICAS\tBUDGET\tMUST KEEP\tLEAST READY")
	var broken []string
	for _, w := range shop {
		keep, err := w.MustKeep()
		if err != nil {
			return err
		}
		_, least := healthy(w.Namespace, w.Name)
		replicas, budget, kept := strconv.Itoa(w.Replicas), "none", "—"
		switch {
		case w.Kind == workload.DaemonSet:
			replicas = "each node"
		case w.MinAvailable != "":
			budget, kept = "minAvailable "+w.MinAvailable, strconv.Itoa(keep)
		case w.MaxUnavailable != "":
			budget, kept = "maxUnavailable "+w.MaxUnavailable, strconv.Itoa(keep)
		}
		fmt.Fprintf(table, "  %s/%s\t%s\t%s\t%s\t%s\t%d\n", w.Namespace, w.Name, w.Kind, replicas, budget, kept, least)
		if least < keep {
			broken = append(broken, w.Namespace+"/"+w.Name)
		}
	}
	table.Flush()
	if broken != nil {
		return fmt.Errorf("broken disruption budgets: %s", strings.Join(broken, ", "))
	}
	return nil
}
