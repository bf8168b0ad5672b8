package main

// A roll of a pool, compared with its unavoidable part: instances boot and turn into Ready nodes, and pods end.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/names"
)

const (
	// rollSpeed is lower than elsewhere. drover's share and the end of pods take their real time, so the simulated part must not be too
	// short. An instance boots in 55 seconds on AWS. At this speed a boot still takes longer than a drain, as on AWS.
	rollSpeed = 5
	// surge of the roll, and the time that its pods take to end.
	surge, grace = 2, 5 * time.Second
	// maxToMinimum limits the total time.
	maxToMinimum = 1.1
	podsOnNode   = 3
	rollPatience = 20 * time.Minute
)

// rollSpec is a cluster with one pool. The roll changes the label.
const rollSpec = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: rolled}
spec:
  release: {name: "1.36-1"}
  network: {cidr: 10.0.0.0/16, zones: [us-east-1a, us-east-1b], natGateways: None}
  pools:
    - name: workers
      instanceTypes: [m7i.large]
      minSize: %d
      maxSize: %d
      update: {maxSurge: %d}
      labels: {example.com/roll: "%s"}
  deletionProtection: false
`

// measureRoll rolls a pool with pods that end slowly, under a budget that allows evicting a batch at once.
func measureRoll(ctx context.Context, s *settings, r *report) error {
	a, err := s.openAt(ctx, rollSpeed)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rollPatience)
	defer cancel()
	const name = "rolled"
	spec := func(label string) []byte { return fmt.Appendf(nil, rollSpec, s.nodes, s.nodes, surge, label) }
	if err := a.putRelease(ctx, s); err != nil {
		return err
	}
	if err := a.converge(ctx, name, spec("before")); err != nil {
		return err
	}
	client, kubeconfig, err := a.EKS.Administrator(names.EKSCluster(name))
	if err != nil {
		return err
	}
	run, err := workload.Open(kubeconfig)
	if err != nil {
		return err
	}
	web := workload.Workload{
		Namespace: "bench", Name: "web", Kind: workload.Deployment, Replicas: podsOnNode * s.nodes,
		MaxUnavailable: fmt.Sprint(2 * podsOnNode * surge),
		ReadyAfter:     time.Second, EndsAfter: grace, Grace: 2 * grace,
	}
	pods, err := run.Watch(ctx)
	if err != nil {
		return err
	}
	defer pods.Close()
	if err := run.Run(ctx, pods, web); err != nil {
		return err
	}
	if err := a.quiet(ctx); err != nil {
		return err
	}
	seen, err := watchRoll(ctx, a, client, names.Group(name, "workers"))
	if err != nil {
		return err
	}
	defer seen.stop()
	uploaded := time.Now()
	if err := a.converge(ctx, name, spec("after")); err != nil {
		return err
	}
	ready := time.Now()
	// The last batch is still being drained after the stack is complete.
	if err := a.Settle(ctx); err != nil {
		return err
	}
	keep, err := web.MustKeep()
	if err != nil {
		return err
	}
	_, least := pods.Healthy(web.Namespace, web.Name)
	return seen.report(r, s.nodes, uploaded, ready, least, keep)
}

// rollSeen has the times of what happened to the instances of a group.
type rollSeen struct {
	stop func()

	mu sync.Mutex
	// By instance: when it was launched, in service, terminating and drained, and when its node joined and was Ready.
	launched, serving, leaving, drained, joined, ready map[string]time.Time
	err                                                error
}

func watchRoll(ctx context.Context, a *localAccount, client dynamic.Interface, group string) (*rollSeen, error) {
	w := &rollSeen{}
	for _, m := range []*map[string]time.Time{&w.launched, &w.serving, &w.leaving, &w.drained, &w.joined, &w.ready} {
		*m = map[string]time.Time{}
	}
	before, _ := a.AutoScaling.View(group)
	stopGroup := a.AutoScaling.Watch(group, func(v autoscaling.View) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, i := range v.Instances {
			old := slices.ContainsFunc(before.Instances, func(b autoscaling.InstanceView) bool { return b.ID == i.ID })
			switch i.State {
			case "Terminating", "Terminating:Wait":
				first(w.leaving, i.ID)
			case "Terminating:Proceed":
				first(w.drained, i.ID)
			case "InService":
				if !old {
					first(w.serving, i.ID)
				}
			default:
				first(w.launched, i.ID)
			}
		}
	})
	nodes, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		stopGroup()
		return nil, err
	}
	w.stop = func() { stopGroup(); nodes.Stop() }
	go func() {
		for event := range nodes.ResultChan() {
			if node, ok := event.Object.(*unstructured.Unstructured); ok {
				w.node(node)
			}
		}
	}()
	return w, nil
}

func first(times map[string]time.Time, id string) {
	if _, ok := times[id]; !ok {
		times[id] = time.Now()
	}
}

func (w *rollSeen) node(node *unstructured.Unstructured) {
	provider, _, _ := unstructured.NestedString(node.Object, "spec", "providerID")
	id := provider[strings.LastIndex(provider, "/")+1:]
	conditions, _, _ := unstructured.NestedSlice(node.Object, "status", "conditions")
	w.mu.Lock()
	defer w.mu.Unlock()
	first(w.joined, id)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == string(corev1.NodeReady) && c["status"] == string(corev1.ConditionTrue) {
			first(w.ready, id)
		}
	}
}

// batches groups the instances whose times are at most a second apart, in order.
func batches(times map[string]time.Time) (all [][]string) {
	ids := slices.SortedFunc(func(yield func(string) bool) {
		for id := range times {
			if !yield(id) {
				return
			}
		}
	}, func(x, y string) int { return times[x].Compare(times[y]) })
	for i, id := range ids {
		if i == 0 || times[id].Sub(times[ids[i-1]]) > time.Second {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], id)
	}
	return all
}

func last(times map[string]time.Time, ids []string) (t time.Time) {
	for _, id := range ids {
		if times[id].After(t) {
			t = times[id]
		}
	}
	return t
}

// report follows the critical path of the roll. Its parts are consecutive, so they add up to the total.
func (w *rollSeen) report(r *report, nodes int, uploaded, ready time.Time, least, keep int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	in, out := batches(w.launched), batches(w.leaving)
	if len(w.launched) != nodes || len(w.leaving) != nodes || len(w.drained) != nodes || len(w.ready) < nodes || len(in) != len(out) {
		return fmt.Errorf("%d instances were launched in %d batches, %d ended in %d, %d drained, %d Ready: not a roll of %d nodes",
			len(w.launched), len(in), len(w.leaving), len(out), len(w.drained), len(w.ready), nodes)
	}
	var minimum, start, boot, untilReady, join, drains, next time.Duration
	at := last(w.launched, in[0])
	plan := at.Sub(uploaded)
	for i, batch := range in {
		// A batch starts when the previous one terminates its instances. It terminates its own when it is in service and those have been drained.
		launched, joined, isReady, serving := last(w.launched, batch), last(w.joined, batch), last(w.ready, batch), last(w.serving, batch)
		start += launched.Sub(at)
		boot += joined.Sub(launched)
		untilReady += isReady.Sub(joined)
		join += serving.Sub(isReady)
		free := serving
		takes := isReady.Sub(launched)
		if i > 0 {
			takes = max(takes, grace)
			if drained := last(w.drained, out[i-1]); drained.After(free) {
				drains += drained.Sub(free)
				free = drained
			}
		}
		minimum += takes
		at = last(w.leaving, out[i])
		next += at.Sub(free)
	}
	end := last(w.drained, out[len(out)-1])
	final := end.Sub(at)
	minimum += grace
	total := end.Sub(uploaded)
	r.add(fmt.Sprintf("%d nodes, surge %d", nodes, surge), total.Seconds(), "s", nil, fmt.Sprintf(
		"from the upload until the last node has been drained; %d batches; simulated work %d × as fast as on AWS; least healthy %d, budget %d",
		len(in), rollSpeed, least, keep))
	for _, part := range []struct {
		name string
		took time.Duration
		what string
	}{
		{"— plan", plan, "admit, plan, change set, the pace of the update, until the first instances are launched"},
		{"— launch", start, "from the end of a batch to the launch of the next instances"},
		{"— boot", boot, "minimum: until the kubelet has registered"},
		{"— Ready", untilReady, "minimum: until the node is Ready"},
		{"— join", join, "from Ready to in service"},
		{"— drains", drains, fmt.Sprintf("that outlast the boot of their replacements; minimum: the grace of %s", grace)},
		{"— signal", next, "from in service and drained to the end of the next batch"},
		{"— the last drain", final, fmt.Sprintf("minimum: the grace of %s", grace)},
	} {
		r.add(part.name, part.took.Seconds(), "s", nil, part.what)
	}
	r.add("— Ready in the status", ready.Sub(uploaded).Seconds(), "s", nil, "the stack does not wait for the last drain")
	r.add("— the minimum: boot and grace periods", minimum.Seconds(), "s", nil,
		"the longer of boot and grace of each batch, and the last grace")
	r.add("— the total to that", total.Seconds()/minimum.Seconds(), "", atMost(maxToMinimum), "")
	r.add("— budgets broken", float64(max(0, keep-least)), "", atMost(0), "replicas below the budget, seen by a separate watcher")
	return nil
}
