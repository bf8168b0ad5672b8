package main

// The test bed of the drains: one control plane, nodes, and a watcher.

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	clientmetrics "k8s.io/client-go/tools/metrics"

	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/local/kubernetes/workload"
)

const (
	// spares is the number of nodes for replacements. spareRoom is the number of pods on each.
	spares, spareRoom = 4, 250
)

type testbed struct {
	dir, bin string
	control  *kubernetes.ControlPlane
	admin    *rest.Config
	cluster  *workload.Cluster
	watcher  *workload.Watcher
	spares   []string
	requests *requests // of the current trial
	waited   waitTotal
	cases    int
	made     time.Duration // from the creation of the last workload until all of it was Ready
	rate     float64       // evictions a second without a budget; 0 until it is measured
}

// waitTotal is the time that clients waited for their own limits, in nanoseconds.
type waitTotal struct{ atomic.Int64 }

// Observe implements client-go's metric.
func (w *waitTotal) Observe(_ context.Context, _ string, _ url.URL, latency time.Duration) {
	w.Add(int64(latency))
}

func (b *testbed) limiterWait() time.Duration { return time.Duration(b.waited.Load()) }

// openTestbed starts a control plane. Its controllers have the default client limits of Kubernetes, or 500 calls a second if swift.
func openTestbed(ctx context.Context, s *settings, swift bool) (*testbed, error) {
	dir, err := os.MkdirTemp("", "drover-bench-drain-")
	if err != nil {
		return nil, err
	}
	b := &testbed{dir: dir, bin: kubernetes.BinDir(s.root), requests: &requests{evictions: map[int]int{}}}
	if err := b.open(ctx, swift); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *testbed) open(ctx context.Context, swift bool) (err error) {
	clientmetrics.Register(clientmetrics.RegisterOpts{RateLimiterLatency: &b.waited})
	if b.control, err = kubernetes.Start(ctx, kubernetes.Options{
		Name: "bench", Dir: filepath.Join(b.dir, "control-plane"), BinDir: b.bin, ServiceCIDR: "172.20.0.0/16", DefaultLimits: !swift,
		Measured: true,
	}); err != nil {
		return err
	}
	grant := exec.CommandContext(ctx, filepath.Join(b.bin, "kubectl"), "--kubeconfig="+b.control.AdminKubeconfig, "--cache-dir="+
		filepath.Join(b.dir, "cache"),
		"create", "clusterrolebinding", drainers, "--clusterrole=cluster-admin", "--group="+drainers)
	if out, err := grant.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	b.admin = workload.Admin(b.control)
	if b.cluster, err = workload.Connect(b.admin); err != nil {
		return err
	}
	var nodes []workload.Node
	for i := range spares {
		b.spares = append(b.spares, fmt.Sprintf("spare-%d", i))
		nodes = append(nodes, workload.Node{Name: b.spares[i], Pods: spareRoom})
	}
	if err := b.cluster.AddNodes(ctx, nodes...); err != nil {
		return err
	}
	b.watcher, err = b.cluster.Watch(ctx)
	return err
}

// Close stops the watcher and the control plane.
func (b *testbed) Close() {
	if b.watcher != nil {
		_ = b.watcher.Close()
	}
	if b.control != nil {
		b.control.Stop()
	}
	_ = os.RemoveAll(b.dir)
}

func (c drainCase) nodeNames() []string {
	var names []string
	for i := range c.nodes {
		names = append(names, fmt.Sprintf("case-%d-node-%d", c.number, i))
	}
	return names
}

// prepare creates the nodes of a case. They have room for exactly their pods, so that all get the same number. Names are never reused,
// because KWOK and the node controllers may not have noticed the deletion of an earlier node yet.
func (b *testbed) prepare(ctx context.Context, c *drainCase) error {
	b.cases++
	c.number = b.cases
	var nodes []workload.Node
	for _, name := range c.nodeNames() {
		nodes = append(nodes, workload.Node{Name: name, Pods: c.pods})
	}
	return b.cluster.AddNodes(ctx, nodes...)
}

func (b *testbed) clear(ctx context.Context, c drainCase) error {
	if err := b.cluster.Remove(ctx, c.workload); err != nil {
		return err
	}
	return b.cluster.RemoveNodes(ctx, c.nodeNames()...)
}

// reset deploys a new workload to the nodes of a case. It retries once: a scheduler with a stale view may have put a pod on a spare.
func (b *testbed) reset(ctx context.Context, c drainCase) error {
	for again := false; ; again = true {
		err := b.deploy(ctx, c)
		if err == nil || ctx.Err() != nil || again {
			return err
		}
		fmt.Fprintf(os.Stderr, "bench: %s: %v; recreating its pods\n", c.name, err)
	}
}

// deploy is one attempt of reset. It cordons several nodes, as one does before replacing a group of nodes. Otherwise pods
// would move to the next drained node.
func (b *testbed) deploy(ctx context.Context, c drainCase) error {
	nodes := c.nodeNames()
	if err := b.cluster.Remove(ctx, c.workload); err != nil {
		return err
	}
	if err := b.cluster.Reset(ctx, false, b.spares...); err != nil {
		return err
	}
	if err := b.cluster.Reset(ctx, true, nodes...); err != nil {
		return err
	}
	started := time.Now()
	if err := b.cluster.Deploy(ctx, c.workload); err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, createPatience)
	defer cancel()
	if err := b.watcher.Wait(patience, "the workload", func() bool {
		return b.watcher.Settled(c.workload) && b.podsLeft(nodes) == c.workload.Replicas
	}); err != nil {
		healthy, _ := b.watcher.Healthy("bench", "web")
		return fmt.Errorf("%w: of %d pods %d are healthy, %d on their nodes, %d on spares", err, c.workload.Replicas, healthy, b.podsLeft(nodes),
			b.podsLeft(b.spares))
	}
	b.made = time.Since(started)
	if err := b.cluster.Reset(ctx, true, b.spares...); err != nil {
		return err
	}
	if len(nodes) > 1 {
		if err := b.cluster.Reset(ctx, false, nodes...); err != nil {
			return err
		}
	}
	return b.cluster.Budgeted(ctx, c.workload)
}

// podsLeft is the number of the workload's pods on nodes.
func (b *testbed) podsLeft(nodes []string) int {
	left := 0
	for _, node := range nodes {
		left += len(b.watcher.On("bench", node))
	}
	return left
}

// try one drain.
func (b *testbed) try(ctx context.Context, c drainCase, who tool) (trial, error) {
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	if err := b.reset(ctx, c); err != nil {
		return trial{}, err
	}
	quiet, err := waitForQuiet(ctx)
	if err != nil {
		return trial{}, err
	}
	b.requests = &requests{evictions: map[int]int{}}
	b.watcher.Forget()
	nodes := c.nodeNames()
	started := time.Now()
	outcomes := who.drain(ctx, b, nodes)
	t := trial{took: time.Since(started).Seconds(), busy: !quiet}
	if len(outcomes) == 1 {
		t.took = outcomes[0].took.Seconds()
	}
	for _, o := range outcomes {
		t.nodes = append(t.nodes, o.took.Seconds())
		if o.err != nil {
			t.failed++
			if t.why == "" {
				t.why = o.err.Error()
			}
		}
	}
	if t.failed == 0 && b.podsLeft(nodes) > 0 {
		t.failed, t.why = 1, fmt.Sprintf("%d pods were left", b.podsLeft(nodes))
	}
	// The watcher continues until all replicas are healthy again.
	if c.workload.Kind != workload.Pods {
		if err := b.watcher.Wait(ctx, "the replicas to be back", func() bool { return b.watcher.Settled(c.workload) }); err != nil {
			return trial{}, err
		}
	}
	_, t.least = b.watcher.Healthy("bench", "web")
	t.requests, t.answers = b.requests.totals()
	return t, nil
}

func policyClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := policyv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, policyv1.SchemeGroupVersion)
	config.QPS, config.APIPath, config.GroupVersion = -1, "/apis", &policyv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	return rest.RESTClientFor(config)
}
