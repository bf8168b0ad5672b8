package storm

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
)

// The role of a function is recreated a minute before nodes are replaced. Nodes stay, and the status names the command that restores the
// access. After it ran, the cluster converges without further help.
func TestRecreatedRoles(t *testing.T) {
	for role, restored := range map[string]time.Duration{"join": 30 * time.Minute, "drain": 10 * time.Minute, "sweep": time.Hour} {
		t.Run(role, func(t *testing.T) {
			p := replaceNode()
			p.calmFor = 2 * time.Hour
			p.acts = append(p.acts,
				act{at: changeTime - time.Minute, cluster: "c0", what: "recreate the role of " + role, do: func(w *world) { w.RecreateRole(role) }},
				act{at: changeTime + restored, cluster: "c0", what: "restore the access of " + role, do: func(w *world) {
					body, err := json.Marshal(w.Status("c0"))
					require.NoError(w.t, err)
					command := fmt.Sprintf("aws eks delete-access-entry --cluster-name %s --principal-arn %s", names.EKSCluster("c0"),
						harness.RoleARN(role))
					require.Contains(w.t, string(body), command)
					w.restoreAccess(role)
				}},
			)
			p.sortActs()
			o := run(t, 1, p, false)
			require.Empty(t, o.Violations, story(o))
			require.Zero(t, o.Acts["nudge"], "no operator had to act:\n%s", story(o))
		})
	}
}

// IAM denies a call that has a session of a deleted role. The check excuses such a call, and no later one.
func TestCallOfADeletedRole(t *testing.T) {
	deleted := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for began, wrong := range map[time.Time]int{deleted.Add(-time.Second): 0, deleted: 0, deleted.Add(time.Second): 1} {
		w := &world{turns: newTurns(nil), observed: newObserved(), out: &Outcome{Checks: map[int]int{}}}
		w.observed.recreatedRoles["drain"] = deleted
		w.seeAnswer(endpoint.Call{
			Time: began, Caller: "arn:aws:sts::1:assumed-role/r/drain", Service: "lambda", Action: "InvokeFunction", ErrorCode: "AccessDenied",
		})
		require.Len(t, w.observed.violations, wrong)
	}
}
