package handler

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// logs collects the errors in the log.
func logs(t *testing.T) *bytes.Buffer {
	logger := slog.Default()
	t.Cleanup(func() { slog.SetDefault(logger) })
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})))
	return &log
}

var drainedNode = node{pool: events.HookMetadata{Cluster: "demo", Pool: "workers"}, name: "n1", instance: "i-1"}

// The state of a node at the end of a slice. It is Blocked if no pod leaves.
func TestNodeStatus(t *testing.T) {
	blocked := []events.BlockedPod{{Pod: "shop/web", Why: drain.BudgetEmpty.String(), Budgets: []string{"shop/web"}}}
	estimate := int64(60)
	for name, c := range map[string]struct {
		report drain.Report
		want   status.NodeState
	}{
		"the cluster is unreachable":                {drain.Report{Message: "no route to host"}, status.NodeUnreachable},
		"volumes are left":                          {drain.Report{Volumes: 1}, status.NodeDraining},
		"a pod is blocked":                          {drain.Report{Left: 2, Blocked: blocked}, status.NodeBlocked},
		"a pod is blocked, with an estimate":        {drain.Report{Left: 2, Blocked: blocked, EstimateSeconds: &estimate}, status.NodeBlocked},
		"a pod is blocked, and others were evicted": {drain.Report{Left: 2, Blocked: blocked, Evicted: 1}, status.NodeDraining},
		"a pod is blocked, and others terminate":    {drain.Report{Left: 2, Blocked: blocked, Terminating: 1}, status.NodeDraining},
		"pods are queued":                           {drain.Report{Left: 2}, status.NodeDraining},
		"pods leave in order":                       {drain.Report{Left: 2, Evicted: 2, Terminating: 2}, status.NodeDraining},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, status.Node{
				Name: "n1", Instance: "i-1", Pool: "workers", State: c.want, Message: c.report.Summary(), Blocked: c.report.Blocked,
				EstimateSeconds: c.report.EstimateSeconds,
			}, nodeStatus(drainedNode, events.DrainResult{DrainReport: c.report}))
		})
	}
}

func TestStatusOfASlice(t *testing.T) {
	result := func(outcome drain.Outcome) events.DrainResult {
		return events.DrainResult{DrainReport: drain.Report{Outcome: outcome, Left: 1}}
	}
	t.Run("shows what is left", func(t *testing.T) {
		w := newWorld(t)
		w.handler().recordProgress(t.Context(), drainedNode, result(drain.Remaining))
		require.Len(t, w.recordedNodes(t), 1)
		require.Equal(t, noon, w.recordedNodes(t)[0].Since)
		require.Equal(t, status.NodeDraining, w.recordedNodes(t)[0].State)
	})
	t.Run("forgets a finished drain", func(t *testing.T) {
		w := newWorld(t)
		w.handler().recordProgress(t.Context(), drainedNode, result(drain.Remaining))
		w.handler().recordProgress(t.Context(), drainedNode, result(drain.Done))
		require.Empty(t, w.recordedNodes(t))
	})
	t.Run("is not written for a drain of one slice", func(t *testing.T) {
		w := newWorld(t)
		before := w.objects.Written()
		count := w.objects.Refuse("Put", "AccessDenied")
		w.handler().recordProgress(t.Context(), drainedNode, result(drain.Done))
		require.Zero(t, *count)
		require.Equal(t, before, w.objects.Written())
	})
	t.Run("keeps the entry of an instance that did not join", func(t *testing.T) {
		w := newWorld(t)
		w.set(t, func(s *status.Status) { s.SetNode(status.Node{Instance: "i-1", State: status.NodeNotJoined}, noon) })
		w.handler().recordProgress(t.Context(), drainedNode, result(drain.Done))
		require.Len(t, w.recordedNodes(t), 1)
	})
	t.Run("needs an instance", func(t *testing.T) {
		w := newWorld(t)
		w.handler().recordProgress(t.Context(), node{pool: drainedNode.pool}, result(drain.Remaining))
		require.Empty(t, w.recordedNodes(t))
	})
	t.Run("is not created", func(t *testing.T) {
		w := newWorld(t)
		w.objects.Delete(names.Status("demo"))
		log := logs(t)
		w.handler().recordProgress(t.Context(), drainedNode, result(drain.Remaining))
		w.handler().recordBlocked(t.Context(), drainedNode, drain.Report{Left: 1})
		require.Empty(t, w.objects.Keys())
		require.Empty(t, log.String(), "a cluster without a status is no error")
	})
}

func TestStatusDuringASlice(t *testing.T) {
	minute := int64(60)
	blocked := []events.BlockedPod{{Pod: "shop/web", Why: drain.BudgetEmpty.String(), Budgets: []string{"shop/web"}}}
	never := drain.Report{Left: 2, Blocked: blocked, Lasting: true}
	inTurn, stalled := never, never
	inTurn.EstimateSeconds, stalled.Stalled = &minute, true
	failing := []events.BlockedPod{
		{Pod: "shop/web", Why: drain.Reason{Code: drain.Failed, Detail: "etcdserver: leader changed"}.String()},
		{Pod: "shop/cart", Why: drain.Overload.String()},
	}
	outage, both := drain.Report{Left: 2, Blocked: failing}, drain.Report{Left: 3, Blocked: append(blocked, failing...), Lasting: true}
	for name, c := range map[string]struct {
		before status.NodeState
		report drain.Report
		want   status.NodeState
	}{
		"a block of unknown length is Blocked":         {"", never, status.NodeBlocked},
		"a block after other evictions is Blocked":     {status.NodeDraining, never, status.NodeBlocked},
		"a block with an estimate is Draining":         {"", inTurn, status.NodeDraining},
		"a block by a pod on another node is Draining": {"", stalled, status.NodeDraining},
		"a block while pods leave is Draining": {
			"", drain.Report{Left: 2, Terminating: 1, Blocked: blocked, Lasting: true}, status.NodeDraining,
		},
		"a failure of the API server is Draining": {"", outage, status.NodeDraining},
		"a failure and another block is Blocked":  {"", both, status.NodeBlocked},
		"a node that was Blocked stays Blocked":   {status.NodeBlocked, inTurn, status.NodeBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.before != "" {
				w.set(t, func(s *status.Status) {
					s.SetNode(status.Node{Instance: "i-1", State: c.before}, noon.Add(-time.Minute))
				})
			}
			before := w.objects.Written()
			for range 2 {
				w.handler().recordBlocked(t.Context(), drainedNode, c.report)
				nodes := w.recordedNodes(t)
				require.Len(t, nodes, 1)
				require.Equal(t, c.want, nodes[0].State)
				require.Equal(t, c.report.Blocked, nodes[0].Blocked)
				require.Equal(t, before+1, w.objects.Written(), "the second report is the same")
			}
		})
	}
	t.Run("ignores the state of another node", func(t *testing.T) {
		w := newWorld(t)
		w.set(t, func(s *status.Status) { s.SetNode(status.Node{Instance: "i-2", State: status.NodeBlocked}, noon) })
		w.handler().recordBlocked(t.Context(), drainedNode, inTurn)
		nodes := w.recordedNodes(t)
		at := slices.IndexFunc(nodes, func(n status.Node) bool { return n.Instance == "i-1" })
		require.Equal(t, status.NodeDraining, nodes[at].State)
	})
	t.Run("is written by the drain", func(t *testing.T) {
		w := newWorld(t)
		w.during = &never
		w.report = drain.Report{Outcome: drain.Remaining, Left: 2, Blocked: blocked}
		_, err := w.handle(t, hookSample, nil)
		require.NoError(t, err)
		require.Equal(t, status.NodeBlocked, w.recordedNodes(t)[0].State)
	})
}

// A drain continues if the status cannot be written. The log has the error.
func TestStatusThatCannotBeWritten(t *testing.T) {
	for _, operation := range []string{"Get", "Put"} {
		w := newWorld(t)
		w.refuse(operation)
		log := logs(t)
		w.report = drain.Report{Outcome: drain.Remaining, Left: 1}
		got, err := w.handle(t, hookSample, nil)
		require.NoError(t, err)
		require.Equal(t, drain.Remaining, got.Outcome)
		require.Contains(t, log.String(), `level=ERROR msg="writing the status failed" cluster=demo instance=i-1 error=`)
		require.Contains(t, log.String(), "AccessDenied")
		log.Reset()
		w.handler().recordBlocked(t.Context(), drainedNode, drain.Report{Left: 1})
		require.Contains(t, log.String(), `level=ERROR msg="writing the status failed" cluster=demo instance=i-1 error=`)
	}
}
