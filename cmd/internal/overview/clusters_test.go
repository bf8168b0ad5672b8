package overview

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func condition(kind, value, reason, message string) status.Condition {
	return status.Condition{Type: kind, Status: value, Reason: reason, Message: message}
}

// drover fleet sends its reader to the runbook for each reason.
func TestRunbookHasEveryReasonOfRows(t *testing.T) {
	page, err := os.ReadFile("../../../docs/runbook.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, heading := range regexp.MustCompile("(?m)^### (.*)$").FindAllStringSubmatch(string(page), -1) {
		for _, word := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(heading[1], -1) {
			documented[word[1]] = true
		}
	}
	reasons := append(status.Reasons(), ReasonUnreadable, status.ReasonUpToDate, status.UpgradeScheduled, status.UpgradeDelayed,
		status.UpgradeMissed, string(status.NodeBlocked), string(status.NodeUnreachable))
	for _, f := range fault.All() { // a failed converge has the name of its fault
		reasons = append(reasons, fault.Name(f))
	}
	for _, reason := range reasons {
		require.True(t, documented[reason], "docs/runbook.md has no entry for %s", reason)
	}
}

func TestSummarize(t *testing.T) {
	converged := condition(status.Converged, "True", status.ReasonUpToDate, "")
	ready := func(also ...status.Condition) status.Status {
		return status.Status{Phase: status.Ready, Conditions: append([]status.Condition{converged}, also...)}
	}
	with := func(u status.Upgrade) status.Status {
		s := ready()
		s.Upgrade = &u
		return s
	}
	blocked := events.BlockedPod{Pod: "shop/a", Why: "no disruption is allowed", Budgets: []string{"shop/pdb"}}
	later := noon.Add(time.Hour)
	for name, test := range map[string]struct {
		status status.Status
		want   Row
	}{
		"a cluster as specified": {
			status.Status{Phase: status.Ready, Message: status.AsSpecified, Conditions: []status.Condition{converged}},
			Row{Health: Healthy, Reason: status.ReasonUpToDate},
		},
		"a drifted cluster": {
			ready(condition(status.InSync, "False", "Drifted", "one\ntwo")),
			Row{Health: Degraded, Reason: "Drifted", WaitsFor: "one"},
		},
		"a condition that only some clusters have": {
			ready(condition(status.RelayCurrent, "False", "RelayOutdated", "old")),
			Row{Health: Degraded, Reason: "RelayOutdated", WaitsFor: "old"},
		},
		"a scheduled upgrade": {
			with(status.Upgrade{Phase: "Scheduled", To: "r2", At: &later}),
			Row{Health: Healthy, Reason: "Scheduled", WaitsFor: "the upgrade to r2", Until: &later, Target: "r2"},
		},
		"a missed upgrade": {
			with(status.Upgrade{Phase: "Missed", To: "r2", Message: "late"}),
			Row{Health: Degraded, Reason: "Missed", WaitsFor: "late", Target: "r2"},
		},
		"a failed cluster that is retried": {
			status.Status{
				Phase: status.Failed, Message: "no capacity", RetryAt: &later,
				Conditions: []status.Condition{condition(status.Converged, "False", "ChangeFailed", "no capacity")},
			},
			Row{Health: Failing, Reason: "ChangeFailed", WaitsFor: "no capacity", Until: &later},
		},
		"a blocked drain, with its budget": {
			status.Status{Phase: status.Converging, Nodes: []status.Node{
				{Instance: "i-1", State: status.NodeDraining},
				{Name: "n2", Instance: "i-2", State: status.NodeBlocked, Blocked: []events.BlockedPod{blocked}},
			}},
			Row{Health: Changing, Reason: "Blocked", WaitsFor: "node n2: pod shop/a: no disruption is allowed (shop/pdb)"},
		},
		"a delayed stack": {
			status.Status{Phase: status.Upgrading, Stacks: []status.Stack{{Name: "pool-a", Delay: &status.Delay{Message: "drains", Until: later}}}},
			Row{Health: Changing, WaitsFor: "pool-a: drains", Until: &later},
		},
		"a deleted cluster": {status.Status{Phase: status.Deleted, Message: "deleted"}, Row{Health: Deleted}},
	} {
		t.Run(name, func(t *testing.T) {
			c := status.New("demo")
			c.Status = test.status
			test.want.Name, test.want.Phase = "demo", test.status.Phase
			require.Equal(t, test.want, Summarize(c))
		})
	}
}

func TestFilter(t *testing.T) {
	rows := []Row{
		{Name: "a", Health: Healthy, KubernetesVersion: "1.35", Labels: map[string]string{"env": "prod"}},
		{Name: "b", Health: Failing, KubernetesVersion: "1.36", Reason: "ChangeFailed", Release: "r1"},
		{Name: "c", Health: Deleted},
	}
	selector := func(text string) labels.Selector {
		parsed, err := labels.Parse(text)
		require.NoError(t, err)
		return parsed
	}
	for want, f := range map[string]Filter{
		"[a b]":   {},
		"[a b c]": {Deleted: true},
		"[c]":     {Healths: []string{"Deleted"}},
		"[a]":     {Labels: selector("env in (prod, staging)")},
		"[b]":     {Labels: selector("!env"), Releases: []string{"r1"}},
		"[]":      {Versions: []string{"1.35"}, Reasons: []string{"ChangeFailed"}},
	} {
		t.Run(want, func(t *testing.T) {
			got := []string{}
			for _, r := range f.Apply(rows) {
				got = append(got, r.Name)
			}
			require.Equal(t, want, fmt.Sprint(got))
		})
	}
}

func TestReader(t *testing.T) {
	bucket := storetest.NewBucket("state")
	put := func(t *testing.T, name string, body []byte) {
		t.Helper()
		_, err := bucket.Put(t.Context(), names.Status(name), body)
		require.NoError(t, err)
	}
	document := func(name string, phase status.Phase) []byte {
		c := status.New(name)
		c.Status.Phase = phase
		body, err := json.Marshal(c)
		require.NoError(t, err)
		return body
	}
	for i := range 100 {
		put(t, fmt.Sprintf("c%02d", i), document(fmt.Sprintf("c%02d", i), status.Ready))
	}
	put(t, "broken", []byte("{"))
	reads := atomic.Int64{}
	bucket.OnCall = func(c storetest.Call) error {
		if c.Operation == "Get" {
			reads.Add(1)
		}
		return nil
	}
	r := &Reader{Objects: bucket}
	first, err := r.Read(t.Context())
	require.NoError(t, err)
	require.Len(t, first, 101)
	require.EqualValues(t, 101, reads.Swap(0))
	require.Equal(t, "broken", first[0].Name)
	require.Equal(t, Unknown, first[0].Health)

	t.Run("reads only what changed", func(t *testing.T) {
		put(t, "c07", document("c07", status.Failed))
		second, err := r.Read(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, reads.Swap(0))
		require.Equal(t, Failing, second[8].Health)
		second[8] = first[8]
		require.Equal(t, first, second)
	})
	t.Run("gives equal bytes for equal statuses", func(t *testing.T) {
		one, err := r.Read(t.Context())
		require.NoError(t, err)
		two, err := (&Reader{Objects: bucket}).Read(t.Context())
		require.NoError(t, err)
		a, err := NewDocument(one).JSON()
		require.NoError(t, err)
		b, err := NewDocument(two).JSON()
		require.NoError(t, err)
		require.Equal(t, string(a), string(b))
	})
	t.Run("omits a status that was deleted since the listing", func(t *testing.T) {
		bucket.OnCall = func(c storetest.Call) error {
			if c.Operation == "Get" && c.Key == names.Status("c03") {
				return store.ErrNotFound
			}
			return nil
		}
		rows, err := (&Reader{Objects: bucket}).Read(t.Context())
		require.NoError(t, err)
		require.Len(t, rows, 100)
	})
	t.Run("fails when a read fails", func(t *testing.T) {
		bucket.OnCall = func(c storetest.Call) error {
			if c.Operation == "Get" && c.Key == names.Status("c50") {
				return storetest.Refusal("AccessDenied")
			}
			return nil
		}
		_, err := (&Reader{Objects: bucket}).Read(t.Context())
		require.ErrorContains(t, err, "AccessDenied")
		require.ErrorContains(t, err, "reading the status of cluster c50: ")
	})
}

func BenchmarkRead(b *testing.B) {
	bucket := storetest.NewBucket("state")
	for i := range 10_000 {
		name := fmt.Sprintf("c%05d", i)
		c := status.New(name)
		body, _ := json.Marshal(c)
		_, _ = bucket.Put(b.Context(), names.Status(name), body)
	}
	for b.Loop() {
		if _, err := (&Reader{Objects: bucket}).Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
