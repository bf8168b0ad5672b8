package storm

// Checks of a settled world.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/drover-run/drover/local/testkit/harness"
	s3adapter "github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func (w *world) final(clusters []string) {
	ctx := context.Background()
	waiters, err := w.State().List(ctx, names.Waiters)
	w.check(9, err == nil && len(waiters) == 0, "waiters are left: %v %v", waiters, err)
	w.nodesNow()
	w.addresses(ctx)
	for _, cluster := range clusters {
		lease, err := w.State().Lease(ctx, cluster)
		w.check(4, err == nil && lease.Execution == "", "%s: the lease is still held: %+v %v", cluster, lease, err)
		s := w.Status(cluster)
		w.check(9, readable(s) || s.UpdatedAt.IsZero(), "the status of %s has no readable verdict: %s %q", cluster, s.Phase, s.Message)
		if w.desired[cluster] != nil {
			accepted := s.Condition(status.SpecAccepted)
			w.check(9, accepted != nil && accepted.Status == "True", "%s is what its spec says, and that counts as refused: %+v", cluster, accepted)
			w.opensNext(cluster)
			w.requireUnchanged(ctx, cluster)
		}
	}
	for group, v := range w.observed.groupViews {
		for _, i := range v.Instances {
			w.check(9, !strings.HasSuffix(i.State, ":Wait"), "instance %s of %s is still %s", i.ID, group, i.State)
		}
	}
	for group, n := range w.observed.autoscalerDesired {
		v, found := w.AutoScaling.View(group)
		w.check(5, !found || v.Desired >= n, "an autoscaler chose %d for %s, and it has %d", n, group, v.Desired)
	}
	w.answers()
	w.checkLeftovers()
	w.checkAlarmActions()
	if !w.converge(unknownCluster) {
		return
	}
	w.checkUnknownCluster()
	unjudged := w.unjudgedRelease()
	w.check(9, unjudged == "", "%s", unjudged)
	w.after("final")
}

// unjudgedRelease returns a release without a verdict on its current content, or "".
func (w *world) unjudgedRelease() string {
	for _, name := range slices.Sorted(maps.Keys(w.released)) {
		verdict, err := w.State().ReleaseStatus(context.Background(), name)
		if err != nil || !verdict.Status.Usable || verdict.Status.Version != w.released[name] {
			return fmt.Sprintf("the verdict on release %s is not about what is there: %+v %v", name, verdict.Status, err)
		}
	}
	return ""
}

// maxWaiting limits the upgrades of a settled cluster that wait for one another.
const maxWaiting = 5

// requireUnchanged checks that a cluster in its desired state costs nothing and has the same plan every time.
func (w *world) requireUnchanged(ctx context.Context, cluster string) {
	p, reason, message, err := w.Functions.Planner.Preview(ctx, cluster)
	w.check(2, err == nil && reason == "" && len(p.Changes) == 0, "%s is Ready and would be changed: %+v %s %s %v", cluster, p.Changes,
		reason, message, err)
	// The reason why an upgrade waits was recorded earlier: an exclusion may have begun or ended since. The record of an
	// instance that did not join is removed.
	pending := w.hasPendingUpgrade(cluster) || slices.ContainsFunc(w.Status(cluster).Nodes, func(n status.Node) bool {
		return n.State == status.NodeNotJoined
	})
	for i := 0; pending && i < maxWaiting; i++ {
		before := lastEnded(w.Status(cluster))
		if !w.converge(cluster) {
			return
		}
		// The upgrade that waited may begin and end now, because a freeze was deleted. The one that waited for it stays in the status until
		// the next plan, even if its start was withdrawn.
		s := w.Status(cluster)
		pending = s.NextUpgrade != nil && lastEnded(s) != before
	}
	mark := w.Calls.Mark()
	if !w.converge(cluster) {
		return
	}
	for _, call := range w.Calls.Since(mark) {
		if by := harness.CalledBy(call); by == "plan" || by == "report" || by == "change" || by == "prepare" {
			w.check(2, !call.Mutating, "%s: nothing has changed, and %s called %s %s", cluster, by, call.Action, call.Resource)
		}
	}
}

// lastEnded identifies the newest upgrade that ended.
func lastEnded(s *status.Status) string {
	if len(s.Upgrades) == 0 {
		return ""
	}
	return s.Upgrades[0].Execution
}

// converge starts converge for a cluster and waits until the world is idle. It returns false if the world ends before.
func (w *world) converge(cluster string) bool {
	w.Converge(cluster)
	for w.running() {
		if w.wait(time.Since(w.began) + time.Second); w.over() {
			return false
		}
	}
	return true
}

// addresses checks that content addresses are correct and that no content was written twice.
func (w *world) addresses(ctx context.Context) {
	client := s3adapter.NewClient(w.Config())
	bucket := harness.StateBucket
	for _, prefix := range []string{"templates/", "userdata/", "releases/", "plans/"} {
		out, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket, Prefix: &prefix})
		if err != nil {
			w.violate(1, "listing %s: %v", prefix, err)
			return
		}
		w.check(1, len(out.DeleteMarkers) == 0, "something of %s was deleted", prefix)
		seen := map[string]bool{}
		for _, v := range out.Versions {
			w.check(1, !seen[*v.Key], "%s was written twice", *v.Key)
			seen[*v.Key] = true
			object, err := w.State().Get(ctx, *v.Key, 4<<20)
			w.check(1, err == nil && strings.Contains(*v.Key, names.SHA256(object.Body)), "%s is not what its address says: %v", *v.Key, err)
		}
	}
}
