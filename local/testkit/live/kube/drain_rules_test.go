package kube_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube/drainer"
)

// bare creates a pod without a controller on a node.
func (w *world) bare(name, node, extra string) {
	w.t.Helper()
	w.slow(name, node, 1, extra)
}

// slow creates a pod with a grace period in seconds.
func (w *world) slow(name, node string, grace int, extra string) {
	w.t.Helper()
	w.create(pods, w.name, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, labels: {app: %[1]s}},
		spec: {nodeName: %[2]s, terminationGracePeriodSeconds: %[4]d, containers: [{name: c, image: c}]%[3]s}}`, name, node, extra, grace))
	w.eventually(func() bool {
		var p corev1.Pod
		w.read(pods, w.name, name, &p)
		return podReady(&p)
	}, name+" does not run")
}

// heldPod creates a pod with a finalizer.
func (w *world) heldPod(name, node string) {
	w.bare(name, node, "")
	require.NoError(w.t, w.patch(pods, w.name, name, `{"metadata":{"finalizers":["example.com/hold"]}}`))
	w.t.Cleanup(func() { _ = w.patch(pods, w.name, name, `{"metadata":{"finalizers":null}}`) })
}

func TestOnePatchHoldsTheNode(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	node := w.node("a")
	w.bare("p", node, "")
	p := policy()
	p.LoadBalancerWait = 3600
	between := w.through(t)
	var patched []string
	between.behave(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			patched = append(patched, string(body))
		}
		return false
	})
	w.slices(node, p, func(report drain.Report) bool {
		require.Zero(t, report.Requests, "load balancers come first")
		return report.Left == 1
	})
	require.Contains(t, patched[0], `"unschedulable":true`)
	for _, patch := range patched[1:] {
		require.NotContains(t, patch, "spec", "one patch does all")
	}
	require.Contains(t, patched[len(patched)-1], "load balancers have until", "the last patch has what the drain waits for")
	many := len(patched)
	n := w.readNode(node)
	require.True(t, n.Spec.Unschedulable)
	require.Contains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
	require.Equal(t, "true", n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"])
	require.Contains(t, n.Annotations["drover.run/drain-waits-for"], "1 pod is left")
	since := n.Annotations["drover.run/draining-since"]

	w.slices(node, p, func(report drain.Report) bool { return report.Left == 1 })
	require.Equal(t, since, w.readNode(node).Annotations["drover.run/draining-since"], "the wait continues")
	for _, patch := range patched[many:] {
		require.NotContains(t, patch, "spec", "the settings are not written again")
	}

	require.NoError(t, drainer.New(w.cluster).Restore(context.Background(), node, true))
	n = w.readNode(node)
	require.True(t, n.Spec.Unschedulable, "a drained node stays cordoned")
	for key := range n.Annotations {
		require.False(t, strings.HasPrefix(key, "drover.run/") || strings.HasPrefix(key, "cluster-autoscaler"), key)
	}
	require.NoError(t, drainer.New(w.cluster).Restore(context.Background(), node, true), "a repeated release is no error")
}

func TestOperatorsAutoscalerHoldStays(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	node := w.node("a")
	require.NoError(t,
		w.patch(nodes, "", node, `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`))
	require.Equal(t, drain.Done, w.drain(node, policy(), patience).Outcome)
	require.NoError(t, drainer.New(w.cluster).Restore(context.Background(), node, true))
	require.Contains(t, w.readNode(node).Annotations, "cluster-autoscaler.kubernetes.io/scale-down-disabled")
}

func TestMissingNode(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, drain.Gone, w.drain("nowhere", policy(), patience).Outcome)
}

func TestPodsThatStayAndPodsThatLeave(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	from := w.node("a")
	w.create(daemonSets, w.name,
		fmt.Sprintf(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}},
		template: {metadata: {labels: {app: agent}}, spec: {nodeSelector: {world: %s}, containers: [{name: c, image: c}]}}}}`, w.name))
	w.bare("static", from, "")
	require.NoError(t, w.patch(pods, w.name, "static", `{"metadata":{"annotations":{"local":"x"}}}`))
	w.create(pods, w.name,
		fmt.Sprintf(
			`{apiVersion: v1, kind: Pod, metadata: {name: mirror, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: %s, `+
				`containers: [{name: c, image: c}]}}`, from))
	w.bare("finished", from, "")
	_, err := w.api.Resource(pods).Namespace(w.name).Patch(context.Background(), "finished", "application/merge-patch+json",
		[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	w.bare("scratch", from, ", volumes: [{name: v, emptyDir: {}}]")
	w.bare("alone", from, "")
	w.eventually(func() bool { return len(w.podsOn(from)) == 6 }, "the daemon does not run")

	careful := policy()
	careful.UnmanagedPods, careful.DeleteEmptyDirData = drain.WaitForUnmanaged, false
	report := w.slices(from, careful, func(report drain.Report) bool {
		require.Zero(t, report.Requests)
		return len(report.Blocked) > 0
	})
	require.Len(t, report.Blocked, 3, "%+v", report.Blocked)

	report = w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	var left []string
	for _, p := range w.podsOn(from) {
		left = append(left, strings.SplitN(p.Name, "-", 2)[0])
	}
	require.ElementsMatch(t, []string{"agent", "mirror", "finished"}, left)
}

func TestBlockedPodsAreReported(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 2)
	w.budget("none", "{minAvailable: 2, selector: {matchLabels: {app: web}}}", 0)
	report := w.slices(from, policy(), func(report drain.Report) bool {
		require.Zero(t, report.Requests, "an eviction that the budget does not allow is not sent")
		return len(report.Blocked) > 0
	})
	require.Len(t, report.Blocked, 2)
	require.Equal(t, []string{w.name + "/none"}, report.Blocked[0].Budgets)
	require.Contains(t, w.readNode(from).Annotations["drover.run/drain-waits-for"], w.name+"/none")

	t.Run("during the drain, by one patch", func(t *testing.T) {
		require.NoError(t, drainer.New(w.cluster).Restore(context.Background(), from, false))
		p := w.through(t)
		var patches atomic.Int32
		p.behave(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPatch {
				patches.Add(1)
			}
			return false
		})
		began := time.Now()
		var reports []drain.Report
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan drain.Report, 1)
		go func() {
			ended <- drainer.New(w.cluster).Drain(ctx, from, task(policy()), func(string) {}, func(_ context.Context, report drain.Report) {
				reports = append(reports, report)
			})
		}()
		w.eventually(func() bool {
			return strings.Contains(w.readNode(from).Annotations["drover.run/drain-waits-for"], w.name+"/none")
		}, "the node has no annotation about the blockers")
		require.GreaterOrEqual(t, time.Since(began), 5*time.Second, "short blocks are not reported")
		cancel()
		require.Equal(t, drain.Remaining, (<-ended).Outcome)
		require.Len(t, reports, 1)
		require.Len(t, reports[0].Blocked, 2)
		require.EqualValues(t, 2, patches.Load(), "the cordon and the report; the end has the same blockers")
	})
	t.Run("leave as soon as the budget allows", func(t *testing.T) {
		w.node("b")
		p := w.through(t)
		ended := make(chan drain.Report, 1)
		go func() { ended <- w.drain(from, policy(), patience) }()
		w.eventually(func() bool { return p.watching() == 2 }, "pods and budgets are not watched")
		require.NoError(t, w.patch(budgets, w.name, "none", `{"spec":{"minAvailable":1}}`))
		report := <-ended
		require.Equal(t, drain.Done, report.Outcome, "%+v", report)
		require.LessOrEqual(t, report.Requests, 4)
	})
}

func TestTwoBudgetsBlock(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 2)
	w.deploy("free", 2, "a", "")
	w.budget("one", "{maxUnavailable: 1, selector: {matchLabels: {app: web}}}", 1)
	w.budget("two", "{maxUnavailable: 1, selector: {matchLabels: {app: web}}}", 1)
	w.node("b")
	evicted := 0
	report := w.slices(from, policy(), func(report drain.Report) bool {
		evicted += report.Evicted
		return report.Left == 2 && report.Terminating == 0 && len(report.Blocked) > 0
	})
	require.Equal(t, []string{w.name + "/one", w.name + "/two"}, report.Blocked[0].Budgets)
	require.Equal(t, 2, evicted, "the other pods are evicted")
	require.NoError(t, w.api.Resource(budgets).Namespace(w.name).Delete(context.Background(), "two", metav1.DeleteOptions{}))
	require.Equal(t, drain.Done, w.drain(from, policy(), patience).Outcome)
}

func TestBudgetOfAnotherNamespace(t *testing.T) {
	t.Parallel() // it waits most of the time
	other := newWorld(t)
	other.create(budgets, other.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: all}, spec: {minAvailable: "+
		"99, selector: {}}}")
	w, from := web(t, 3)
	require.Equal(t, drain.Done, w.drain(from, policy(), patience).Outcome)
}

func TestForceAfterTheDeadline(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 3)
	w.budget("none", "{minAvailable: 3, selector: {matchLabels: {app: web}}}", 0)
	p := policy()
	p.Timeout, p.OnTimeout = 3, drain.Force
	began := time.Now()
	var forced []string
	slice := func(within time.Duration) drain.Report {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		return drainer.New(w.cluster).Drain(ctx, from, drain.Task{Policy: p}, func(pod string) {
			require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
			forced = append(forced, pod)
		}, ignoreReports)
	}
	early := slice(2 * time.Second)
	require.Equal(t, drain.Remaining, early.Outcome)
	report := slice(patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Len(t, forced, 3, "each pod is reported")
	require.Equal(t, forced, append(early.Forced, report.Forced...))
	require.Zero(t, early.Evicted+report.Evicted)
}

// A later call continues with the time of the drain, also if the node was uncordoned in between.
func TestDrainTimeContinues(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 2)
	w.budget("none", "{minAvailable: 2, selector: {matchLabels: {app: web}}}", 0)
	began := time.Now().Add(-2 * time.Hour)
	first, cancel := context.WithCancel(context.Background())
	ended := make(chan drain.Report, 1)
	go func() {
		ended <- drainer.New(w.cluster).Drain(first, from, drain.Task{Policy: policy()}, func(string) {}, ignoreReports)
	}()
	w.eventually(func() bool { return w.readNode(from).Spec.Unschedulable }, "the drain does not begin")
	cancel()
	require.Equal(t, drain.Remaining, (<-ended).Outcome)
	require.NoError(t,
		w.patch(nodes, "", from,
			fmt.Sprintf(`{"spec":{"unschedulable":null},"metadata":{"annotations":{"drover.run/drain-began":%q,"drover.run/drain-contact":%q}}}`,
				began.UTC().Format(time.RFC3339Nano), time.Now().UTC().Format(time.RFC3339Nano))))
	p := policy()
	p.Timeout, p.OnTimeout = 3600, drain.Continue
	report := w.drain(from, p, patience)
	require.Equal(t, drain.TimedOut, report.Outcome, "%+v", report)
	require.Equal(t, began.UTC().Format(time.RFC3339Nano), w.readNode(from).Annotations["drover.run/drain-began"])
}

func TestContinueReportsRemainingPods(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 1)
	w.budget("none", "{minAvailable: 1, selector: {matchLabels: {app: web}}}", 0)
	p := policy()
	p.Timeout, p.OnTimeout = 1, drain.Continue
	report := w.drain(from, p, patience)
	require.Equal(t, drain.TimedOut, report.Outcome)
	require.Len(t, report.Pods, 1)
	require.Len(t, w.podsOn(from), 1)
}

func TestStuckPodDelaysTheDrainBriefly(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	from := w.node("a")
	w.heldPod("stuck", from)
	w.slices(from, policy(), func(report drain.Report) bool { return report.Terminating == 1 })
	if testing.Short() {
		t.Skip("a minute must pass")
	}
	report := w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome)
	require.Equal(t, []string{w.name + "/stuck"}, report.Stuck)
}

func TestReplacementWithTheSameName(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	from := w.node("a")
	w.node("b")
	w.create(statefuls, w.name,
		fmt.Sprintf(
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: db, replicas: 3, podManagementPolicy: Parallel,
		selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {terminationGracePeriodSeconds: 1, `+
				`nodeSelector: {world: %s}, containers: [{name: c, image: c}]}}}}`, w.name))
	w.eventually(func() bool { return len(w.podsOn(from))+len(w.podsOn(w.name+"-b")) == 3 }, "the pods do not run")
	report := w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome)
	w.eventually(func() bool {
		n := 0
		for _, p := range w.podsOn(w.name + "-b") {
			if podReady(&p) {
				n++
			}
		}
		return n == 3
	}, "the pods are not back")
}

func TestDrainWaitsForVolumes(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWorld(t)
	from := w.node("a")
	name := w.name + "-volume"
	w.create(attachments, "", fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s}, spec: {attacher: "+
		"example.com, nodeName: %s, source: {persistentVolumeName: pv}}}", name, from))
	w.create(attachments, "", fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s-other}, spec: "+
		"{attacher: example.com, nodeName: other, source: {persistentVolumeName: pv}}}", name))
	t.Cleanup(func() {
		_ = w.api.Resource(attachments).Delete(context.Background(), name+"-other", metav1.DeleteOptions{})
	})
	began := time.Now()
	w.slices(from, policy(), func(report drain.Report) bool { return report.Volumes == 1 })
	emptied, err := time.Parse(time.RFC3339Nano, w.readNode(from).Annotations["drover.run/pods-gone-since"])
	require.NoError(t, err)
	require.False(t, emptied.Before(began), "the time for volumes starts with this drain")
	p := w.through(t)
	ended := make(chan drain.Report, 1)
	go func() { ended <- w.drain(from, policy(), patience) }()
	w.eventually(func() bool { return p.watching() == 2 }, "the budgets and the attachments are not watched") // there are no pods to watch
	require.NoError(t, w.api.Resource(attachments).Delete(context.Background(), name, metav1.DeleteOptions{}))
	report := <-ended
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)

	t.Run("for a limited time", func(t *testing.T) {
		w.create(attachments, "", fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s}, spec: {attacher: "+
			"example.com, nodeName: %s, source: {persistentVolumeName: pv}}}", name, from))
		t.Cleanup(func() { _ = w.api.Resource(attachments).Delete(context.Background(), name, metav1.DeleteOptions{}) })
		require.NoError(t, w.patch(nodes, "", from, `{"metadata":{"annotations":{"drover.run/pods-gone-since":"`+time.Now().
			Add(-11*time.Minute).UTC().Format(time.RFC3339)+`"}}}`))
		report := w.drain(from, policy(), patience)
		require.Equal(t, drain.Done, report.Outcome)
		require.Contains(t, report.Message, "1 volume is still attached")
	})
}
