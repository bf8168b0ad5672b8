package workload

// A watcher of all pods. It sees each change in the order of the API server and misses none. It shares nothing with the
// causes of the changes.

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
)

// Watcher watches all pods of a cluster.
type Watcher struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	restart func(ctx context.Context) (*watchtools.RetryWatcher, error) // restarts the watch after a gap; nil: a gap is an error
	gaps    int
	pods    map[types.UID]pod
	healthy map[id]int
	least   map[id]int
	// strays counts the pods of a workload that were lost with their nodes since Forget. No budget prevents that.
	strays  map[id]int
	err     error
	changed chan struct{} // closed and replaced at each change
}

// id of a workload.
type id struct{ namespace, name string }

// pod is the last observed state of a pod.
type pod struct {
	workload   id
	name, node string
	healthy    bool
	ending     bool
}

// Watch starts a watcher of all namespaces. A missed change is an error.
func (c *Cluster) Watch(ctx context.Context) (*Watcher, error) { return c.watch(ctx, false) }

// WatchOverRestarts is Watch, but it restarts when a restarted API server no longer has the last observed version. It
// does not see the changes in between. Gaps counts the restarts.
func (c *Cluster) WatchOverRestarts(ctx context.Context) (*Watcher, error) { return c.watch(ctx, true) }

func (c *Cluster) watch(ctx context.Context, overRestarts bool) (*Watcher, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{
		cancel: cancel, done: make(chan struct{}), changed: make(chan struct{}),
		pods: map[types.UID]pod{}, healthy: map[id]int{}, least: map[id]int{}, strays: map[id]int{},
	}
	begin := func(ctx context.Context) (*watchtools.RetryWatcher, error) { return c.begin(ctx, w) }
	source, err := begin(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if w.Forget(); overRestarts {
		w.restart = begin
	}
	go func() {
		defer close(w.done)
		w.run(ctx, source)
	}()
	return w, nil
}

// begin lists all pods and watches from there. The watch continues when the server closes it.
func (c *Cluster) begin(ctx context.Context, w *Watcher) (*watchtools.RetryWatcher, error) {
	pods := c.core.Pods(metav1.NamespaceAll)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	w.seeAll(list.Items)
	return watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion,
		watchPods(func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, o)
		}))
}

// seeAll observes the listed pods, and the end of all others.
func (w *Watcher) seeAll(pods []corev1.Pod) {
	listed := map[types.UID]bool{}
	for i := range pods {
		listed[pods[i].UID] = true
		w.see(&pods[i], false)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, p := range w.pods {
		if !listed[uid] {
			w.become(p, pod{workload: p.workload})
			delete(w.pods, uid)
		}
	}
}

// Gaps returns how often the watcher restarted.
func (w *Watcher) Gaps() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gaps
}

// watchPods is a function that implements client-go's watcher interface.
type watchPods func(context.Context, metav1.ListOptions) (watch.Interface, error)

func (f watchPods) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, o)
}

func (w *Watcher) run(ctx context.Context, source *watchtools.RetryWatcher) {
	for event := range source.ResultChan() {
		switch p, ok := event.Object.(*corev1.Pod); {
		case ok && event.Type != watch.Bookmark:
			w.see(p, event.Type == watch.Deleted)
		case event.Type == watch.Error:
			err := apierrors.FromObject(event.Object)
			if w.restart == nil || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
				w.recordLoss(err)
				continue
			}
			w.mu.Lock()
			w.gaps++
			w.mu.Unlock()
			if next, err := w.restart(ctx); err != nil {
				w.recordLoss(err)
			} else {
				w.run(ctx, next)
				return
			}
		}
	}
	if ctx.Err() == nil {
		w.recordLoss(fmt.Errorf("the watch of pods ended"))
	}
}

func (w *Watcher) recordLoss(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = fmt.Errorf("the watcher missed changes: %w", err)
	}
	w.countEvent()
}

// see observes the current state of a pod.
func (w *Watcher) see(p *corev1.Pod, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := pod{
		workload: id{p.Namespace, p.Labels[nameLabel]}, name: p.Name, node: p.Spec.NodeName,
		ending: p.DeletionTimestamp != nil,
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			// The disruption controller does not count a pod that is being deleted as healthy.
			now.healthy = condition.Status == corev1.ConditionTrue && !now.ending && !ended
		}
	}
	w.become(w.pods[p.UID], now)
	if w.pods[p.UID] = now; ended {
		delete(w.pods, p.UID)
	}
	w.countEvent()
}

// become updates the counts for the change of a pod.
func (w *Watcher) become(before, now pod) {
	switch {
	case now.healthy && !before.healthy:
		w.healthy[now.workload]++
	case before.healthy && !now.healthy:
		w.healthy[now.workload]--
		w.least[now.workload] = min(w.least[now.workload], w.healthy[now.workload]+w.strays[now.workload])
	}
}

func (w *Watcher) countEvent() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Forget resets the least counts.
func (w *Watcher) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.least)
	clear(w.strays)
	for id, healthy := range w.healthy {
		w.least[id] = healthy
	}
}

// Healthy returns the number of healthy replicas of a workload, and its least value since Forget.
func (w *Watcher) Healthy(namespace, name string) (now, least int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.healthy[id{namespace, name}], w.least[id{namespace, name}]
}

// Lose ignores the pods on a node from now on: their end lowers no least count.
func (w *Watcher) Lose(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.node == node && p.healthy {
			w.strays[p.workload]++
		}
	}
}

// On returns the pods of a namespace on a node.
func (w *Watcher) On(namespace, node string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, p := range w.pods {
		if p.workload.namespace == namespace && p.node == node {
			names = append(names, p.name)
		}
	}
	return names
}

// Settled reports whether exactly the workloads' replicas exist and all are healthy.
func (w *Watcher) Settled(workloads ...Workload) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	pods := map[id]int{}
	for _, p := range w.pods {
		pods[p.workload]++
	}
	for _, wanted := range workloads {
		key := id{wanted.Namespace, wanted.Name}
		if wanted.Kind != DaemonSet && (w.healthy[key] != wanted.Replicas || pods[key] != wanted.Replicas) {
			return false
		}
	}
	return true
}

// Wait waits until yes returns true. yes may call the other methods. An error names what was awaited. Wait fails if the
// watcher missed changes.
func (w *Watcher) Wait(ctx context.Context, what string, yes func() bool) error {
	for {
		w.mu.Lock()
		changed, err := w.changed, w.err
		w.mu.Unlock()
		if err != nil {
			return err
		}
		if yes() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

// Close ends the watcher. It returns an error if the watcher missed a change.
func (w *Watcher) Close() error {
	w.cancel()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
