package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// transitionPrice is Step Functions' list price of one state transition, in dollars (us-east-1).
// https://aws.amazon.com/step-functions/pricing/
const transitionPrice = 0.025 / 1000

// demoPatience bounds the demo.
const demoPatience = 10 * time.Minute

// runDemo uploads a release and a spec with the S3 API, waits until the status says Ready, and asks the cluster's own API
// server for its nodes.
func runDemo(ctx context.Context, out io.Writer, show *timeline, a *account.Account, o localOptions) error {
	d, err := readDemo(o)
	if err != nil {
		return err
	}
	name := d.cluster.Metadata.Name
	c := cli.NewCell(a.Config(), "aws", account.ID)
	before := a.Calls.Mark()
	if _, err := c.Specs.Put(ctx, names.ReleaseSpec(d.release.Metadata.Name), d.releaseBody); err != nil {
		return err
	}
	uploaded := time.Now()
	if _, err := c.Specs.Put(ctx, names.ClusterSpec(name), d.spec); err != nil {
		return err
	}
	show.line("uploaded", name, "%s to s3://%s/%s", o.demo, c.Specs.Name(), names.ClusterSpec(name))
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	s, err := awaitRest(ctx, c, name, cli.AnyUpload)
	if err != nil {
		return err
	}
	took := time.Since(uploaded)
	show.Wait("")
	show.line("status", name, "%s: %s", s.Phase, s.Message)
	if s.Phase != status.Ready {
		cli.PrintStatus(out, &status.Cluster{Metadata: status.Metadata{Name: name}, Status: *s})
		return fmt.Errorf("%s is not Ready", name)
	}
	if err := a.Settle(ctx); err != nil {
		return err
	}
	client, _, err := a.EKS.Administrator(names.EKSCluster(name))
	if err != nil {
		return err
	}
	if err := printNodes(ctx, out, client, s.Endpoint); err != nil {
		return err
	}
	printCost(out, a, before, took)
	var fleet *fleetDemo
	if o.fleet != "" {
		if fleet, err = readFleetDemo(o, d); err != nil {
			return err
		}
		fmt.Fprintln(out)
		if err := fleet.create(ctx, show, c); err != nil {
			return err
		}
	}
	if o.roll != "" || o.upgrade != "" {
		if err := loadDemo(ctx, out, show, a, c, d, o); err != nil {
			return err
		}
	}
	if fleet == nil {
		return nil
	}
	return fleet.run(ctx, out, show, a, c)
}

// demo is what is uploaded: a cluster and its release.
type demo struct {
	cluster     *api.Cluster
	spec        []byte
	release     *api.Release
	releaseBody []byte
}

// readDemo reads the files. A cluster for an upgrade begins at the given release, whichever its file names.
func readDemo(o localOptions) (d demo, err error) {
	if d.cluster, d.spec, err = cli.ReadCluster(o.demo); err != nil {
		return d, err
	}
	if d.release, d.releaseBody, err = cli.ReadRelease(o.release, o.demo, d.cluster); err != nil || o.upgrade == "" {
		return d, err
	}
	d.cluster, d.spec, err = withRelease(o.demo, d.cluster, d.spec, d.release.Metadata.Name)
	return d, err
}

// awaitRest waits until a cluster is Ready, Stopped or Failed, on an upload or a later one.
func awaitRest(ctx context.Context, c *cli.Cell, name string, u cli.Upload) (*status.Status, error) {
	for {
		cluster, err := c.State.Status(ctx, name)
		if err == nil && u.IsVerdict(cluster.Status) {
			switch cluster.Status.Phase {
			case status.Ready, status.Stopped, status.Failed:
				return &cluster.Status, nil
			}
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", name, ctx.Err())
		}
	}
}

// printNodes asks the cluster's API server.
func printNodes(ctx context.Context, out io.Writer, client dynamic.Interface, endpoint string) error {
	nodes, err := client.Resource(nodeResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("asking the API server for its nodes: %w", err)
	}
	fmt.Fprintf(out, "\nThe API server at %s lists %d nodes:\n\n", endpoint, len(nodes.Items))
	table := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  NAME\tREADY\tPOOL\tVERSION\tZONE\tTYPE\tPROVIDER ID")
	ready := 0
	for _, node := range nodes.Items {
		labels, state := node.GetLabels(), readiness(&node)
		if state == "True" {
			ready++
		}
		version, _, _ := unstructured.NestedString(node.Object, "status", "nodeInfo", "kubeletVersion")
		provider, _, _ := unstructured.NestedString(node.Object, "spec", "providerID")
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", node.GetName(), state, labels[names.LabelPool], version,
			labels["topology.kubernetes.io/zone"], labels["node.kubernetes.io/instance-type"], provider)
	}
	table.Flush()
	if ready == 0 || ready < len(nodes.Items) {
		return fmt.Errorf("%d of %d nodes are Ready", ready, len(nodes.Items))
	}
	return nil
}

func readiness(node *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(node.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Ready" {
			return fmt.Sprint(c["status"])
		}
	}
	return "Unknown"
}

// printCost prints what creating the cluster took.
func printCost(out io.Writer, a *account.Account, before int, took time.Duration) {
	transitions, by := 0, map[string]int{}
	for _, x := range a.StepFunctions.Executions() {
		transitions += x.Transitions
		by[strings.TrimPrefix(x.MachineName, "drover-")] += x.Transitions
	}
	var lines []string
	for _, machine := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, fmt.Sprintf("%s %d", machine, by[machine]))
	}
	calls, mutating := 0, 0
	for _, call := range a.Calls.Since(before) {
		if strings.Contains(call.Caller, ":assumed-role/"+names.Prefix) {
			calls++
			if call.Mutating {
				mutating++
			}
		}
	}
	fmt.Fprintf(out, "\nReady %.1f s after the upload: %d state transitions ($%.4f at list price; %s), %d AWS calls by drover, "+
		"%d of them mutating.\n",
		took.Seconds(), transitions, float64(transitions)*transitionPrice, strings.Join(lines, ", "), calls, mutating)
}
