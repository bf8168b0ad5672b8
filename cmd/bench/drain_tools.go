package main

// The tools of the drains.

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

// tool drains the given nodes.
type tool struct {
	name string
	// A slow tool is not measured again after -patience.
	slow  bool
	drain func(ctx context.Context, b *testbed, nodes []string) []outcome
}

// outcome of the drain of a node.
type outcome struct {
	took time.Duration
	err  error
}

var (
	drover           = tool{name: "drover", drain: droverDrains}
	kubectl          = tool{name: "kubectl", slow: true, drain: kubectlDrains("kubectl", 1)}
	kubectlAtOnce    = tool{name: "kubectl, 10 at once", slow: true, drain: kubectlDrains("kubectl", 10)}
	kubectlUnlimited = tool{name: "kubectl, client without limit", slow: true, drain: kubectlDrains("kubectl-unlimited", 1)}
	bare             = tool{name: "bare evictions", drain: evictAll}
)

// The tools' user and group: an administrator that the API server does not exempt from priority and fairness.
const drainUser, drainers = "drainer", "drainers"

// config counts requests and opens a separate connection for each tool in this process, like an invocation of a function.
func (b *testbed) config() *rest.Config {
	config := rest.CopyConfig(b.admin)
	config.QPS = 0 // the client's own choice
	config.Impersonate = rest.ImpersonationConfig{UserName: drainUser, Groups: []string{drainers}}
	config.Wrap(b.requests.through)
	config.Dial = (&net.Dialer{}).DialContext // client-go shares connections between configs with the same dialer
	return config
}

// droverDrains drains each node separately and all in parallel, like the functions.
func droverDrains(ctx context.Context, b *testbed, nodes []string) []outcome {
	return drains(ctx, nodes, func() (*rest.Config, error) { return b.config(), nil })
}

// drains drains each node over a connection of its own.
func drains(ctx context.Context, nodes []string, open func() (*rest.Config, error)) []outcome {
	task := drain.Task{Policy: drain.Policy{OnTimeout: drain.Wait, DeleteEmptyDirData: true, UnmanagedPods: drain.EvictUnmanaged}}
	return atOnce(nodes, len(nodes), func(node string) error {
		config, err := open()
		if err != nil {
			return err
		}
		cluster, err := kube.Connect(config)
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
func kubectlDrains(program string, limit int) func(context.Context, *testbed, []string) []outcome {
	return func(ctx context.Context, b *testbed, nodes []string) []outcome {
		return atOnce(nodes, limit, func(node string) error {
			cmd := exec.CommandContext(ctx, filepath.Join(b.bin, program), "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force",
				"--kubeconfig="+b.control.AdminKubeconfig, "--as="+drainUser, "--v="+verbosity, "--as-group="+drainers, "--cache-dir="+
					filepath.Join(b.dir, "cache"))
			cmd.Env = append(os.Environ(), "KUBERC=off")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			if last := b.requests.read(stderr.String()); err != nil {
				return fmt.Errorf("%w: %s", err, last)
			}
			return nil
		})
	}
}

// evictAll cordons the nodes and evicts all known pods in parallel.
func evictAll(ctx context.Context, b *testbed, nodes []string) []outcome {
	if err := b.cluster.Reset(ctx, false, nodes...); err != nil {
		return []outcome{{0, err}}
	}
	started := time.Now()
	client, err := policyClient(b.config())
	if err != nil {
		return []outcome{{0, err}}
	}
	var pods []string
	for _, node := range nodes {
		pods = append(pods, b.watcher.On("bench", node)...)
	}
	var failed []error
	for _, o := range atOnce(pods, bareAtOnce, func(pod string) error { return evict(ctx, client, "bench", pod) }) {
		failed = append(failed, o.err)
	}
	failed = append(failed, b.watcher.Wait(ctx, "the pods to end", func() bool { return b.podsLeft(nodes) == 0 }))
	return []outcome{{time.Since(started), errors.Join(failed...)}}
}

// bareAtOnce is the number of parallel requests at which the API server evicts fastest.
const bareAtOnce = 32

// evict evicts a pod. It retries conflicts with other evictions under the same budget.
func evict(ctx context.Context, client rest.Interface, namespace, pod string) error {
	for {
		err := client.Post().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(pod).SubResource("eviction").MaxRetries(0).
			Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}}).Do(ctx).Error()
		if !apierrors.IsConflict(err) && !apierrors.IsTooManyRequests(err) {
			return err
		}
	}
}

// atOnce calls do for each, at most limit in parallel.
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
