package main

// Who drains.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
)

// contestant drains nodes that it is told.
type contestant struct {
	name string
	// slow says that it is not tried again once it took longer than the patience that was asked for.
	slow  bool
	drain func(ctx context.Context, g *ground, nodes []string) []outcome
}

// outcome of the drain of a node.
type outcome struct {
	took time.Duration
	err  error
}

var (
	drover           = contestant{name: "drover", drain: droverDrains}
	kubectl          = contestant{name: "kubectl", slow: true, drain: kubectlDrains("kubectl", 1)}
	kubectlAtOnce    = contestant{name: "kubectl, 10 at once", slow: true, drain: kubectlDrains("kubectl", 10)}
	kubectlUnlimited = contestant{name: "kubectl, client without limit", slow: true, drain: kubectlDrains("kubectl-unlimited", 1)}
	bare             = contestant{name: "bare evictions", drain: evictAll}
)

// Whom the contestants act as: an administrator, but none of those whom the API server exempts from priority and fairness.
const drainUser, drainers = "drainer", "drainers"

// config is how contestants in this process reach the API server: counted, and each on a connection of its own, as a function's
// invocation has it.
func (g *ground) config() *rest.Config {
	config := rest.CopyConfig(g.admin)
	config.QPS = 0 // the client's own choice
	config.Impersonate = rest.ImpersonationConfig{UserName: drainUser, Groups: []string{drainers}}
	config.Wrap(g.requests.through)
	config.Dial = (&net.Dialer{}).DialContext // connections are shared by those who dial the same way
	return config
}

// droverDrains drains each node by itself and all at once, as the functions do.
func droverDrains(ctx context.Context, g *ground, nodes []string) []outcome {
	task := drain.Task{Policy: drain.Policy{OnTimeout: drain.Wait, DeleteEmptyDirData: true, UnmanagedPods: drain.EvictUnmanaged}}
	return atOnce(nodes, len(nodes), func(node string) error {
		cluster, err := kube.Connect(g.config())
		if err != nil {
			return err
		}
		if report := drainer.New(cluster).Drain(ctx, node, task, func(string) {}, func(context.Context, drain.Report) {}); report.Outcome !=
			drain.Done {
			return fmt.Errorf("%s: %s", report.Outcome, report.Summary())
		}
		return nil
	})
}

// kubectlDrains runs a program like kubectl for each node.
func kubectlDrains(program string, limit int) func(context.Context, *ground, []string) []outcome {
	return func(ctx context.Context, g *ground, nodes []string) []outcome {
		return atOnce(nodes, limit, func(node string) error {
			cmd := exec.CommandContext(ctx, filepath.Join(g.bin, program), "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force",
				"--kubeconfig="+g.control.AdminKubeconfig, "--as="+drainUser, "--v="+verbosity, "--as-group="+drainers, "--cache-dir="+
					filepath.Join(g.dir, "cache"))
			cmd.Env = append(os.Environ(), "KUBERC=off")
			var said bytes.Buffer
			cmd.Stderr = &said
			err := cmd.Run()
			if last := g.requests.read(said.String()); err != nil {
				return fmt.Errorf("%w: %s", err, last)
			}
			return nil
		})
	}
}

// evictAll cordons the nodes, evicts pods that are known from before, all at once, and no more.
func evictAll(ctx context.Context, g *ground, nodes []string) []outcome {
	if err := g.cluster.Reset(ctx, false, nodes...); err != nil {
		return []outcome{{0, err}}
	}
	started := time.Now()
	client, err := policyClient(g.config())
	if err != nil {
		return []outcome{{0, err}}
	}
	var pods []string
	for _, node := range nodes {
		pods = append(pods, g.watcher.On("bench", node)...)
	}
	var failed []error
	for _, o := range atOnce(pods, bareAtOnce, func(pod string) error { return evict(ctx, client, "bench", pod) }) {
		failed = append(failed, o.err)
	}
	failed = append(failed, g.watcher.Wait(ctx, "the pods to be gone", func() bool { return g.left(nodes) == 0 }))
	return []outcome{{time.Since(started), errors.Join(failed...)}}
}

// bareAtOnce is with how many requests in flight the API server evicts fastest here.
const bareAtOnce = 32

// evict a pod. Conflicts with other evictions under the same budget are tried again.
func evict(ctx context.Context, client rest.Interface, namespace, pod string) error {
	for {
		err := client.Post().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(pod).SubResource("eviction").MaxRetries(0).
			Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}}).Do(ctx).Error()
		if !apierrors.IsConflict(err) && !apierrors.IsTooManyRequests(err) {
			return err
		}
	}
}

// atOnce does something about each, at most limit at once.
func atOnce(each []string, limit int, do func(string) error) []outcome {
	outcomes := make([]outcome, len(each))
	slots := make(chan struct{}, limit)
	var wg sync.WaitGroup
	for i, one := range each {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			started := time.Now()
			err := do(one)
			outcomes[i] = outcome{time.Since(started), err}
		})
	}
	wg.Wait()
	return outcomes
}
