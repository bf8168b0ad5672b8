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

func (g *testbed) limiterWait() time.Duration { return time.Duration(g.waited.Load()) }

// openGround starts a control plane. Its controllers have the default client limits of Kubernetes, or 500 calls a second if swift.
func openGround(ctx context.Context, s *settings, swift bool) (*testbed, error) {
	dir, err := os.MkdirTemp("", "drover-bench-drain-")
	if err != nil {
		return nil, err
	}
	g := &testbed{dir: dir, bin: kubernetes.BinDir(s.root), requests: &requests{evictions: map[int]int{}}}
	if err := g.open(ctx, swift); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func (g *testbed) open(ctx context.Context, swift bool) (err error) {
	clientmetrics.Register(clientmetrics.RegisterOpts{RateLimiterLatency: &g.waited})
	if g.control, err = kubernetes.Start(ctx, kubernetes.Options{
		Name: "bench", Dir: filepath.Join(g.dir, "control-plane"), BinDir: g.bin, ServiceCIDR: "172.20.0.0/16", DefaultLimits: !swift,
		Measured: true,
	}); err != nil {
		return err
	}
	grant := exec.CommandContext(ctx, filepath.Join(g.bin, "kubectl"), "--kubeconfig="+g.control.AdminKubeconfig, "--cache-dir="+
		filepath.Join(g.dir, "cache"),
		"create", "clusterrolebinding", drainers, "--clusterrole=cluster-admin", "--group="+drainers)
	if out, err := grant.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	g.admin = workload.Admin(g.control)
	if g.cluster, err = workload.Connect(g.admin); err != nil {
		return err
	}
	var nodes []workload.Node
	for i := range spares {
		g.spares = append(g.spares, fmt.Sprintf("spare-%d", i))
		nodes = append(nodes, workload.Node{Name: g.spares[i], Pods: spareRoom})
	}
	if err := g.cluster.AddNodes(ctx, nodes...); err != nil {
		return err
	}
	g.watcher, err = g.cluster.Watch(ctx)
	return err
}

// Close stops the watcher and the control plane.
func (g *testbed) Close() {
	if g.watcher != nil {
		_ = g.watcher.Close()
	}
	if g.control != nil {
		g.control.Stop()
	}
	_ = os.RemoveAll(g.dir)
}

func (c drainCase) nodeNames() []string {
	var names []string
	for i := range c.nodes {
		names = append(names, fmt.Sprintf("case-%d-node-%d", c.number, i))
	}
	return names
}

// prepare the nodes of a case. They have room for exactly their pods, so that all get the same number. Names are never reused, because KWOK
// and the node controllers may not have noticed the deletion of an earlier node yet.
func (g *testbed) prepare(ctx context.Context, c *drainCase) error {
	g.cases++
	c.number = g.cases
	var nodes []workload.Node
	for _, name := range c.nodeNames() {
		nodes = append(nodes, workload.Node{Name: name, Pods: c.pods})
	}
	return g.cluster.AddNodes(ctx, nodes...)
}

func (g *testbed) clear(ctx context.Context, c drainCase) error {
	if err := g.cluster.Remove(ctx, c.workload); err != nil {
		return err
	}
	return g.cluster.RemoveNodes(ctx, c.nodeNames()...)
}

// reset deploys a new workload to the nodes of a case. It retries once: a scheduler with a stale view may have put a pod on a spare.
func (g *testbed) reset(ctx context.Context, c drainCase) error {
	for again := false; ; again = true {
		err := g.lay(ctx, c)
		if err == nil || ctx.Err() != nil || again {
			return err
		}
		fmt.Fprintf(os.Stderr, "bench: %s: %v; recreating its pods\n", c.name, err)
	}
}

// lay is an attempt of reset. It cordons several nodes, as one does before replacing a group of nodes. Otherwise pods
// would move to the next drained node.
func (g *testbed) lay(ctx context.Context, c drainCase) error {
	nodes := c.nodeNames()
	if err := g.cluster.Remove(ctx, c.workload); err != nil {
		return err
	}
	if err := g.cluster.Reset(ctx, false, g.spares...); err != nil {
		return err
	}
	if err := g.cluster.Reset(ctx, true, nodes...); err != nil {
		return err
	}
	started := time.Now()
	if err := g.cluster.Deploy(ctx, c.workload); err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, layPatience)
	defer cancel()
	if err := g.watcher.Wait(patience, "the workload", func() bool {
		return g.watcher.Settled(c.workload) && g.podsLeft(nodes) == c.workload.Replicas
	}); err != nil {
		healthy, _ := g.watcher.Healthy("bench", "web")
		return fmt.Errorf("%w: of %d pods %d are healthy, %d on their nodes, %d on spares", err, c.workload.Replicas, healthy, g.podsLeft(nodes),
			g.podsLeft(g.spares))
	}
	g.made = time.Since(started)
	if err := g.cluster.Reset(ctx, true, g.spares...); err != nil {
		return err
	}
	if len(nodes) > 1 {
		if err := g.cluster.Reset(ctx, false, nodes...); err != nil {
			return err
		}
	}
	return g.cluster.Budgeted(ctx, c.workload)
}

// podsLeft is the number of the workload's pods on nodes.
func (g *testbed) podsLeft(nodes []string) int {
	left := 0
	for _, node := range nodes {
		left += len(g.watcher.On("bench", node))
	}
	return left
}

// try one drain.
func (g *testbed) try(ctx context.Context, c drainCase, who tool) (trial, error) {
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	if err := g.reset(ctx, c); err != nil {
		return trial{}, err
	}
	quiet, err := waitForQuiet(ctx)
	if err != nil {
		return trial{}, err
	}
	g.requests = &requests{evictions: map[int]int{}}
	g.watcher.Forget()
	nodes := c.nodeNames()
	started := time.Now()
	outcomes := who.drain(ctx, g, nodes)
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
	if t.failed == 0 && g.podsLeft(nodes) > 0 {
		t.failed, t.why = 1, fmt.Sprintf("%d pods were left", g.podsLeft(nodes))
	}
	// The watcher continues until all replicas are healthy again.
	if c.workload.Kind != workload.Pods {
		if err := g.watcher.Wait(ctx, "the replicas to be back", func() bool { return g.watcher.Settled(c.workload) }); err != nil {
			return trial{}, err
		}
	}
	_, t.least = g.watcher.Healthy("bench", "web")
	t.requests, t.answers = g.requests.totals()
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
