package storm

// The delay that each kind of fault causes: a pool's only node is replaced half an hour into a cluster's life, with one
// fault only. docs/reliability.md has the table.

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

const changeTime = 30 * time.Minute

// replaceNode returns a cluster of one pool whose node is replaced at changed.
func replaceNode(faultRules ...string) plot {
	first := wish{
		name: "c0", minor: firstMinor, pools: []wishedPool{{name: "a", min: 1, max: 3, timeout: time.Hour, onTimeout: "Wait", surge: 1}},
	}
	second := first
	second.pools = []wishedPool{first.pools[0]}
	second.pools[0].motd = 1
	return plot{
		acts: []act{{cluster: "c0", what: "create", spec: &first}, {at: changeTime, cluster: "c0", what: "replace", spec: &second}},
		last: map[string]*wish{"c0": &second}, faultRules: faultRules, calmFor: time.Hour,
		apps: map[string][]apiserver.App{
			"c0": {{Name: "web", Replicas: 3, MaxUnavailable: 1, Start: 20 * time.Second, Stop: 5 * time.Second, Grace: 30 * time.Second}},
		},
	}
}

// deletedStack is the stack that an operator deletes.
const deletedStack = "drover-c0-addons"

// quick is how long a recovery may take after the end of its fault.
const quick = 5 * time.Minute

func TestRecovery(t *testing.T) {
	// end returns the limit of a fault that begins half a minute before the change and lasts for a time.
	end := func(lasts time.Duration) time.Duration { return lasts - 30*time.Second + quick }
	tests := []struct {
		fault   string
		rule    string // begins half a minute before the change
		failure *failure
		// byHand means that an operator must act, as the runbook describes. lost means that an instance is lost a quarter of
		// an hour later. befalls is another event at that time.
		byHand, lost bool
		befalls      func(*world)
		// later is when the rule applies after the change, instead of before it.
		later, within time.Duration
	}{
		{fault: "none", within: quick},
		{fault: "every event is lost for 10 minutes, including those of schedules", rule: "drop for=10m", within: end(10 * time.Minute)},
		{fault: "every event comes twice for 10 minutes", rule: "duplicate for=10m", within: end(10 * time.Minute)},
		{fault: "every event is 5 minutes late for 10 minutes", rule: "reorder=5m for=10m", within: end(10 * time.Minute)},
		{fault: "every call is throttled for 5 minutes", rule: "throttle for=5m", within: end(5 * time.Minute)},
		{fault: "every call fails with 500 for 5 minutes", rule: "error for=5m", within: end(5 * time.Minute)},
		{fault: "every call takes 3 seconds longer for 10 minutes", rule: "latency=3s for=10m", within: end(10 * time.Minute)},
		{fault: "every conditional write meets a race (409) for 2 minutes", rule: "conflict=409 for=2m", within: end(2 * time.Minute)},
		{fault: "the answers to all conditional writes are lost for 2 minutes", rule: "conflict=412 for=2m", within: end(2 * time.Minute)},
		{fault: "plan dies before its third call", rule: "crash-before=3 caller=plan count=1", within: quick},
		{fault: "change dies after its third call", rule: "crash-after=3 caller=change count=1", within: quick},
		{fault: "every function dies at any call, one time in ten, for 10 minutes", rule: "crash-after p=0.1 for=10m",
			within: end(10 * time.Minute)},
		{fault: "converge is stopped", rule: "kill machine=converge count=1", within: quick},
		{fault: "converge is stopped while the nodes are replaced",
			rule: `kill machine=converge state="Change pool stack" count=1`, within: quick},
		{fault: "join-node is stopped", rule: "kill machine=join-node count=1", within: quick},
		{fault: "drain-node is stopped", rule: "kill machine=drain-node count=1", within: quick},
		{fault: "the API server is down for 10 minutes", rule: "api-server-down=10m count=1", within: 10*time.Minute + quick},
		{fault: "the account is at its Lambda limit for an hour", rule: "lambda-limit for=1h", within: end(time.Hour)},
		{fault: "the account is at its Lambda limit for 45 minutes, while a node boots", rule: "lambda-limit for=45m", later: 50 * time.Second,
			within: 50*time.Second + 45*time.Minute + quick},
		// CloudFormation waits for signals for an hour, and then rolls the update back. drover repeats it.
		{fault: "the account is at its Lambda limit for an hour, while a node boots", rule: "lambda-limit for=1h", later: 50 * time.Second,
			within: 50*time.Second + time.Hour + quick},
		{fault: "the new launch template fails", failure: &failure{"update", "AWS::EC2::LaunchTemplate", 1}, within: quick},
		{fault: "the group's update fails", failure: &failure{"update", "AWS::AutoScaling::AutoScalingGroup", 1}, within: quick},
		// After failed launches Auto Scaling pauses for up to eight minutes.
		{fault: "EC2 launches no instances for 20 minutes", rule: "launch-fails for=20m", within: 28 * time.Minute},
		{fault: "the new node's kubelet is newer than the control plane", rule: "kubelet-version=v1.39.1-eks-1 count=1",
			within: quick},
		{fault: "an instance is lost, until another is in service", rule: "instance-lost count=1", lost: true, within: quick},
		{fault: "the add-ons' stack is deleted outside drover, until it is there again",
			befalls: func(w *world) { w.deleteStack(deletedStack) }, within: quick},
		{fault: "a Node is deleted outside drover, until another instance is in service",
			befalls: func(w *world) { w.deleteNode("c0", "a", 0) }, within: quick},
		{fault: "a node is not Ready for 20 minutes, until another is in service",
			befalls: func(w *world) { w.setSilent("c0", "a", 0, true) }, within: 20*time.Minute + quick},
	}
	shown := map[faults.Kind]bool{faults.UpdateFails: true} // of upgrades, below
	for _, test := range tests {
		kind, _, _ := strings.Cut(strings.ReplaceAll(test.rule, "=", " "), " ")
		shown[faults.Kind(kind)] = true
	}
	for _, kind := range faults.Kinds() {
		require.True(t, shown[kind], "how long does %s hold a change up?", kind)
	}
	var table strings.Builder
	for _, test := range tests {
		t.Run(test.fault, func(t *testing.T) {
			var p plot
			if p = replaceNode(); test.rule != "" {
				after := changeTime - 30*time.Second
				if test.later > 0 {
					after = changeTime + test.later
				}
				if test.lost {
					after = changeTime + 15*time.Minute
				}
				p = replaceNode(test.rule + " after=" + after.String())
			}
			if strings.HasPrefix(test.rule, string(faults.LambdaLimit)) {
				p.calmFor = 2 * time.Hour
			}
			if test.failure != nil {
				p.failures = []failure{*test.failure}
			}
			struck := 0
			if test.befalls != nil {
				p.acts = append(p.acts, act{at: changeTime + 15*time.Minute, cluster: "c0", what: "something happens", do: func(w *world) {
					w.observed.lastInstanceLost = w.now()
					test.befalls(w)
					struck++
				}})
			}
			var took time.Duration
			p.breakAtEnd = func(w *world) {
				c := w.Status("c0").Condition(status.Converged)
				require.NotNil(t, c)
				if took = c.LastTransitionTime.Sub(w.began) - changeTime; test.lost || test.befalls != nil {
					took = w.observed.lastGroupFull.Sub(w.observed.lastInstanceLost)
				}
				if back, ok := w.observed.operatorChangeEnded[deletedStack]; ok {
					took = back.Sub(w.observed.lastInstanceLost)
				}
				for _, n := range w.engine.Struck() {
					struck += n
				}
				struck += w.out.Failures
			}
			o := run(t, 1, p, false)
			require.Empty(t, o.Violations, story(o))
			require.Equal(t, test.fault == "none", struck == 0, "it struck")
			if test.byHand {
				require.Equal(t, 1, o.Acts["nudge"])
				fmt.Fprintf(&table, "| %s | when an operator starts it again |\n", test.fault)
				return
			}
			require.Zero(t, o.Acts["nudge"], "no operator had to act:\n%s", strings.Join(o.Story, "\n"))
			require.LessOrEqual(t, took, test.within)
			fmt.Fprintf(&table, "| %s | %s |\n", test.fault, took.Round(time.Second))
		})
	}
	t.Log("\n" + table.String())
	requireRows(t, "Ready", len(tests), table.String())
}

// requireRows requires that docs/reliability.md has a row for each test, with the same need of an operator and the same
// duration, less the random pauses of retries.
func requireRows(t *testing.T, what string, tests int, table string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/reliability.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "\n| fault | "+what+" after |\n|---|---|\n")
	require.True(t, found)
	rest, _, _ = strings.Cut(rest, "\n\n")
	rows := map[string]string{}
	for row := range strings.Lines(rest + "\n") {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		rows[cells[0]] = cells[1]
	}
	require.Len(t, rows, tests)
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		documented, byItself := time.ParseDuration(cells[1])
		was, rows := time.ParseDuration(rows[cells[0]])
		require.Equal(t, byItself == nil, rows == nil, "docs/reliability.md: %s", row)
		require.InDelta(t, documented.Seconds(), was.Seconds(), max(10, documented.Seconds()/10), "docs/reliability.md: %s", row)
	}
}

// The delay that faults cause to an upgrade by one minor version. The pool has one node, whose drain may take half an
// hour.
func TestRecoveryOfUpgrades(t *testing.T) {
	// planned limits an upgrade without faults: EKS takes eight minutes, its insights one, and a node boots and another drains.
	const planned = 12 * time.Minute
	tests := []struct {
		fault string
		rule  string // begins half a minute before the upgrade
		// at schedules the upgrade. blocked adds a budget that allows no disruption for hours after the checks passed.
		at, blocked bool
		onTimeout   string
		// byHand means that an operator must act, as the runbook describes.
		byHand bool
		within time.Duration
	}{
		{fault: "none", within: planned},
		{fault: "EKS fails the control plane's update", rule: "update-fails count=1", byHand: true},
		{fault: "the upgrade machine is stopped in the middle", rule: `kill machine=upgrade state="Verify the step" count=1`, byHand: true},
		{fault: "none; the upgrade has a time", at: true, within: planned},
		{fault: "the event of the sweep's schedule at that time is lost", at: true,
			rule: `drop event="Scheduled Event" count=1`, within: planned + quick},
		{fault: "a budget allows nothing, and the pool says Force", blocked: true, onTimeout: "Force", within: 80 * time.Minute},
		{fault: "a budget allows nothing, and the pool says Continue", blocked: true, onTimeout: "Continue", within: 80 * time.Minute},
		{fault: "a budget allows nothing, and the pool says Wait", blocked: true, byHand: true},
	}
	var table strings.Builder
	for _, test := range tests {
		t.Run(test.fault, func(t *testing.T) {
			p := replaceNode()
			if test.rule != "" {
				p.faultRules = []string{fmt.Sprintf("%s after=%s", test.rule, changeTime-30*time.Second)}
			}
			first := p.acts[0].spec
			if first.pools[0].timeout = 30 * time.Minute; test.onTimeout != "" {
				first.pools[0].onTimeout = test.onTimeout
			}
			second := *first
			if test.at {
				first.atRelease, first.at = release(firstMinor+1, 0), changeTime
				p.acts, p.last["c0"] = p.acts[:1], first
				p.calmFor += changeTime
			} else {
				second.minor = firstMinor + 1
				p.acts[1].spec, p.last["c0"] = &second, &second
			}
			if test.blocked {
				p.acts = append(p.acts, act{cluster: "c0", at: changeTime + 2*time.Minute, what: "block by a budget",
					do: func(w *world) { w.setBlocked("c0", true) }})
			}
			var took time.Duration
			struck := 0
			p.breakAtEnd = func(w *world) {
				s := w.Status("c0")
				require.Equal(t, "Done", s.Upgrade.Phase, s.Upgrade.Message)
				require.Equal(t, release(firstMinor+1, 0), s.Upgrade.To)
				took = s.Upgrade.Ended.Sub(w.began) - changeTime
				for _, n := range w.engine.Struck() {
					struck += n
				}
			}
			o := run(t, 1, p, false)
			require.Empty(t, o.Violations, story(o))
			require.Equal(t, test.rule == "", struck == 0, "it struck")
			if test.byHand {
				require.Equal(t, 1, o.Acts["nudge"], strings.Join(o.Story, "\n"))
				fmt.Fprintf(&table, "| %s | when an operator starts it again |\n", test.fault)
				return
			}
			require.Zero(t, o.Acts["nudge"], "no operator had to act:\n%s", strings.Join(o.Story, "\n"))
			require.LessOrEqual(t, took, test.within)
			fmt.Fprintf(&table, "| %s | %s |\n", test.fault, took.Round(time.Second))
		})
	}
	t.Log("\n" + table.String())
	requireRows(t, "upgraded", len(tests), table.String())
}

// Neither the creation of a protected control plane nor its rollback succeeds. The leftover is deleted, although the
// finished stack would retain it, and the next creation finds its names free.
func TestFailedRollbackOfACreation(t *testing.T) {
	p := quiet()
	for _, a := range p.acts {
		a.spec.protected = true
	}
	p.failures = []failure{{"create", "AWS::EKS::AccessEntry", 1}, {"delete", "AWS::EKS::Cluster", 1}}
	p.breakAtEnd = func(w *world) {
		require.Equal(t, 2, w.out.Failures)
		require.Zero(t, w.out.Acts["nudge"], "no operator had to act")
	}
	o := run(t, 1, p, false)
	require.Empty(t, o.Violations, story(o))
}

// The stack update of a control plane fails after EKS's update succeeded. The rollback restores the version too, and the
// next attempt succeeds.
func TestFailedStackUpdateOfAControlPlane(t *testing.T) {
	p := quiet()
	second := *p.acts[0].spec
	second.minor, second.team = firstMinor+1, 1
	p.acts[1] = act{cluster: "c0", at: 30 * time.Minute, what: "upgrade", spec: &second}
	p.last["c0"], p.calmFor = &second, time.Hour
	p.failures = []failure{{"update", "AWS::EKS::AccessEntry", 1}}
	p.breakAtEnd = func(w *world) {
		require.Equal(t, 1, w.out.Failures)
		require.Equal(t, 1, w.out.Acts["nudge"], "a failed update waits for an operator")
		require.Equal(t, map[string]string{"1.35": "ACTIVE"}, w.controlPlanes())
	}
	o := run(t, 1, p, false)
	require.Empty(t, o.Violations, story(o))
}

// controlPlanes returns the states of EKS clusters by version.
func (w *world) controlPlanes() map[string]string {
	found := map[string]string{}
	for _, cluster := range w.clusters() {
		out, err := w.EKS.DescribeCluster(w.t.Context(), w.Admin(), eks.NamedInput{Name: names.EKSCluster(cluster)})
		require.NoError(w.t, err)
		found[out.Cluster.Version] = out.Cluster.Status
	}
	return found
}
