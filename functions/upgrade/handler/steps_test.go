package handler

// An upgrade that an execution runs, step by step, over a cluster without an account.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/checker"
)

var errThrottled = errors.New("throttled")

// fixture is a cluster whose upgrade mine leads, from r1 of Kubernetes 1.35 to r2 of 1.36.
type fixture struct {
	State
	Planner
	record *upgrade.Record
	// written is the record that was written last.
	written *upgrade.Record
	status  status.Status
	stack   stack.Deployed
	spec    string
	holder  string
	running bool
	eks     preflight.ControlPlane
	// refusal is why EKS does not roll the control plane back.
	refusal string
	preview plan.Plan
	reason  string
	group   pool.Group
	nodes   []pool.NodeHealth
	alive   []string
	failing map[string]error
	done    []string
}

func (l *fixture) did(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	l.done = append(l.done, call)
	return l.failing[strings.Fields(call)[0]]
}

const releaseText = `apiVersion: drover.run/v1alpha1
kind: Release
metadata: {name: %s}
spec:
  kubernetesVersion: "%s"
  images: {amd64: ami-0123456789abcdef0, arm64: ami-0123456789abcdef1}
  addons:
    - {name: vpc-cni, version: v1.21.1-eksbuild.1}
    - {name: coredns, version: v1.13.2-eksbuild.1}
  templateVersion: v1
`

const fixtureSpec = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: %s}
  network: {cidr: 10.0.0.0/16, zones: [eu-west-1a, eu-west-1b]}
  pools:
    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}
`

// specsOf reads the spec, and the catalog.
type specsOf struct{ *fixture }

func (s specsOf) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	if err := s.failing["spec"]; err != nil {
		return store.Object{}, err
	}
	if key == names.ReleaseSpec("r2") {
		return store.Object{Body: fmt.Appendf(nil, releaseText, "r2", "1.36")}, nil
	}
	if s.spec == "" {
		return store.Object{}, store.ErrNotFound
	}
	return store.Object{Body: []byte(s.spec), Version: "v1"}, nil
}

func (l *fixture) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	switch key {
	case names.PinnedRelease("sha1"):
		return store.Object{Body: fmt.Appendf(nil, releaseText, "r1", "1.35")}, nil
	case names.PinnedRelease("sha2"):
		return store.Object{Body: fmt.Appendf(nil, releaseText, "r2", "1.36")}, nil
	}
	if err := l.failing["state"]; err != nil {
		return store.Object{}, err
	}
	return store.Object{}, store.ErrNotFound
}

func (l *fixture) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	return l.record, "etag", l.failing["record"]
}

func (l *fixture) PutUpgrade(_ context.Context, _ string, r *upgrade.Record, _ string) (string, error) {
	kept := *r
	l.written = &kept
	return "etag", l.did("write %s %d %d", r.State, r.Step, r.Try)
}

func (l *fixture) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&l.status)
	return l.did("status")
}

func (l *fixture) Lease(context.Context, string) (store.Lease, error) {
	return store.Lease{}, nil
}

func (l *fixture) Holder(context.Context, string, func(context.Context, string) (bool, error)) (string, error) {
	if err := l.failing["holder"]; err != nil {
		return "", err
	}
	return l.holder, nil
}

func (l *fixture) Preview(context.Context, string) (plan.Plan, string, string, error) {
	return l.preview, l.reason, "because", l.failing["preview"]
}

func (l *fixture) AfterUpgrade(context.Context, string) (status.AfterUpgrade, error) {
	return status.AfterUpgrade{Next: func(*status.Status) {}}, nil
}

type fixtureStacks struct{ *fixture }

func (s fixtureStacks) Describe(context.Context, string) (stack.Deployed, error) {
	return s.stack, s.failing["describe"]
}

type fixtureGroups struct{ *fixture }

func (g fixtureGroups) Describe(context.Context, string) (pool.Group, bool, error) {
	return g.group, true, g.failing["group"]
}

type fixtureEKS struct {
	checker.EKS
	*fixture
}

func (e fixtureEKS) ControlPlane(context.Context, string) (preflight.ControlPlane, error) {
	return e.eks, e.failing["eks"]
}

func (e fixtureEKS) RollBack(_ context.Context, _, version string) (string, error) {
	return e.refusal, e.did("roll-back %s", version)
}

func (l *fixture) Health(context.Context, string, stack.API) ([]pool.NodeHealth, error) {
	return l.nodes, l.failing["nodes"]
}

func (l *fixture) RunningInstances(context.Context, []string) ([]string, error) {
	return l.alive, l.failing["alive"]
}

func (l *fixture) Running(context.Context, string) (bool, error) {
	return l.running, l.failing["running"]
}

func (l *fixture) Ended(context.Context, string) (string, error) {
	return "ABORTED", l.failing["ended"]
}

type fixtureAlarms struct {
	Alarms
	*fixture
}

func (a fixtureAlarms) EnableActions(context.Context, []string) error { return a.did("sound") }

func (a fixtureAlarms) DisableActions(context.Context, []string) error { return a.did("silence") }

func leading() *fixture {
	from := upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"}
	to := upgrade.Target{Release: "r2", SHA256: "sha2", KubernetesVersion: "1.36"}
	return &fixture{
		record: &upgrade.Record{
			Number: 2, Execution: "mine", Stack: "stack-1", State: upgrade.Running, Origin: upgrade.OriginSpec, From: from, Target: to, Step: 1,
			Steps: []upgrade.Step{
				{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36", Started: noon.Add(-time.Hour), Ended: noon.Add(-time.Minute)},
				{Kind: upgrade.StepNodes, KubernetesVersion: "1.36", Started: noon.Add(-time.Minute), Opened: noon.Add(-time.Minute)},
			},
		},
		stack: stack.Deployed{ID: "stack-1", Status: "UPDATE_COMPLETE", Tags: map[string]string{names.TagRelease: "r2@sha2"},
			Outputs: map[string]string{"KubernetesVersion": "1.36"}},
		spec: fmt.Sprintf(fixtureSpec, "r2"), eks: preflight.ControlPlane{Version: "1.36", Status: "ACTIVE"}, failing: map[string]error{},
	}
}

func (l *fixture) handler() *Handler {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	now := func() time.Time { return noon }
	return &Handler{
		Checker: &checker.Checker{
			Specs: specsOf{l}, State: l, Stacks: fixtureStacks{l}, Executions: l, EKS: fixtureEKS{fixture: l}, Now: now,
		},
		State:  l,
		Stacks: fixtureStacks{l}, Executions: l, Planner: l, EKS: fixtureEKS{fixture: l}, Groups: fixtureGroups{l},
		Nodes: l, Instances: l,
		Alarms: fixtureAlarms{fixture: l}, Now: now,
	}
}

// callOf is a call for demo whose record is loaded.
func (h *Handler) callOf(record *upgrade.Record) *call {
	c := &call{Handler: h, record: record}
	c.in.Cluster = "demo"
	return c
}

func (l *fixture) handle(t *testing.T, action events.UpgradeAction) (events.UpgradeResult, error) {
	t.Helper()
	in := events.UpgradeRequest{Action: action, Execution: "mine", Started: noon}
	in.Cluster = "demo"
	return l.handler().Handle(t.Context(), in)
}

func TestUpgradeOfAnotherExecutionOrCluster(t *testing.T) {
	for _, action := range []events.UpgradeAction{events.UpgradeBegin, events.UpgradeNext, events.UpgradeFinish} {
		for name, test := range map[string]struct {
			given   func(*fixture)
			lost    bool
			outcome events.UpgradeOutcome
			err     error
		}{
			"another took it over":       {func(l *fixture) { l.record.Execution = "theirs" }, true, "", nil},
			"there is no record":         {func(l *fixture) { l.record = nil }, true, "", nil},
			"its cluster was recreated":  {func(l *fixture) { l.stack.ID = "stack-2" }, false, events.UpgradeStopped, nil},
			"its cluster was deleted":    {func(l *fixture) { l.stack = stack.Deployed{} }, false, events.UpgradeStopped, nil},
			"the record cannot be read":  {func(l *fixture) { l.failing["record"] = errThrottled }, false, "", errThrottled},
			"its cluster cannot be read": {func(l *fixture) { l.failing["describe"] = errThrottled }, false, "", errThrottled},
			"neither can a recreated cluster": {
				func(l *fixture) { l.stack.ID, l.failing["describe"] = "stack-2", errThrottled }, false, "", errThrottled,
			},
		} {
			t.Run(fmt.Sprintf("%s changes nothing when %s", action, name), func(t *testing.T) {
				l := leading()
				test.given(l)
				result, err := l.handle(t, action)
				var lost *fault.LeaseLost
				require.Equal(t, test.lost, errors.As(err, &lost))
				require.Equal(t, test.outcome, result.Outcome)
				if test.err != nil {
					require.ErrorIs(t, err, test.err)
				}
				require.Empty(t, l.done)
			})
		}
	}
}

func TestUpgradeThatIsDoneAlready(t *testing.T) {
	l := leading()
	l.record.State, l.record.Step = upgrade.Done, 2
	result, err := l.handle(t, events.UpgradeFinish)
	require.NoError(t, err)
	require.Equal(t, events.UpgradeDone, result.Outcome)
	require.Equal(t, []string{"status"}, l.done, "it is recorded again, and not checked")
}

func TestUpgradeThatBeganAlready(t *testing.T) {
	l := leading()
	opened := l.record.Steps[1].Opened
	result, err := l.handle(t, events.UpgradeBegin)
	require.NoError(t, err)
	require.Equal(t, events.UpgradeGo, result.Outcome)
	require.Equal(t, []string{"silence", "status"}, l.done)
	require.Equal(t, opened, l.record.Steps[1].Opened, "its open step has its time")
}

func TestStepOfAnUpgrade(t *testing.T) {
	const next, again = "write Running 2 0", "write Running 1 1"
	change := plan.Plan{Changes: []plan.Change{{Stack: "pool-a", Operation: plan.Update}}}
	other := fmt.Sprintf(fixtureSpec, "r9")
	leaving := pool.Group{Instances: []pool.Instance{{ID: "i-1", State: pool.TerminatingWait}}}
	old := []pool.NodeHealth{{Name: "node-1", Instance: "i-1", Pool: "a"}}
	for name, test := range map[string]struct {
		given   func(*fixture)
		outcome events.UpgradeOutcome
		message string
		err     error
		want    []string
	}{
		"is followed by the next when it is made": {
			given: func(*fixture) {}, outcome: events.UpgradeDone, message: "every step is made", want: []string{next, "status"},
		},
		"is not made when all are made": {
			given: func(l *fixture) { l.record.Step = 2 }, outcome: events.UpgradeDone, message: "every step is made", want: []string{"status"},
		},
		"is tried again while something is missing": {
			given: func(l *fixture) { l.preview = change }, outcome: events.UpgradeGo, message: "nodes to the images",
			want: []string{again, "status"},
		},
		"stops after three tries": {
			given: func(l *fixture) { l.preview, l.record.Try = change, maxTries-1 }, outcome: events.UpgradeStopped,
			message: "converging succeeded 3 times",
		},
		"waits while another execution converges": {
			given: func(l *fixture) { l.preview, l.holder = change, "x" }, outcome: events.UpgradeBusy, message: "is being converged by x",
			want: []string{"status"},
		},
		"is not tried when its holder is unknown": {
			given: func(l *fixture) { l.preview, l.failing["holder"] = change, errThrottled }, err: errThrottled,
		},
		"is not tried when that cannot be recorded": {
			given: func(l *fixture) { l.preview, l.failing["write"] = change, errThrottled }, err: errThrottled, want: []string{again},
		},
		"waits while EKS updates": {
			given: func(l *fixture) { l.eks.Status = "UPDATING" }, outcome: events.UpgradeBusy, message: "its status is UPDATING",
			want: []string{"status"},
		},
		"is tried again when EKS is not active": {
			given: func(l *fixture) { l.eks.Status = "FAILED" }, outcome: events.UpgradeGo, message: "nodes to the images",
			want: []string{again, "status"},
		},
		"is tried again when EKS runs another version": {
			given: func(l *fixture) { l.eks.Version = "1.35" }, outcome: events.UpgradeGo, message: "nodes to the images",
			want: []string{again, "status"},
		},
		"stops when the change is refused": {
			given: func(l *fixture) { l.reason = "ChangeRefused" }, outcome: events.UpgradeStopped, message: "ChangeRefused: because",
		},
		"fails when EKS does not answer":     {given: func(l *fixture) { l.failing["eks"] = errThrottled }, err: errThrottled},
		"fails when nothing can be planned":  {given: func(l *fixture) { l.failing["preview"] = errThrottled }, err: errThrottled},
		"fails when the spec cannot be read": {given: func(l *fixture) { l.failing["spec"] = errThrottled }, err: errThrottled},
		"counts though the spec names another release": {
			given: func(l *fixture) { l.spec = other; l.record.Steps[1].Kind = upgrade.StepAddons }, outcome: events.UpgradeStopped,
			message: "the spec now names release r9", want: []string{next},
		},
		"counts though the spec is invalid": {
			given: func(l *fixture) { l.spec = "kind: Cluster"; l.record.Steps[1].Kind = upgrade.StepAddons }, outcome: events.UpgradeStopped,
			message: "the newest spec cannot be used", want: []string{next},
		},
		"counts though the spec was deleted": {
			given: func(l *fixture) { l.spec = ""; l.record.Steps[1].Kind = upgrade.StepAddons }, outcome: events.UpgradeStopped,
			message: "the spec was deleted", want: []string{next},
		},
		"stops for the spec and not for its own refusal": {
			given: func(l *fixture) { l.spec, l.reason = other, "ChangeRefused" }, outcome: events.UpgradeStopped,
			message: "the spec now names release r9",
		},
		"is judged again when it cannot be proved": {
			given: func(l *fixture) { l.spec = other; l.failing["eks"] = errThrottled }, err: errThrottled,
		},
		"stops when it waited for too long": {
			given: func(l *fixture) {
				l.eks.Status, l.record.Steps[1].Opened = "UPDATING", noon.Add(-30*24*time.Hour)
			}, outcome: events.UpgradeStopped,
			message: "exceeded its limit of",
		},
		"counts when it was made, however late": {
			given: func(l *fixture) { l.record.Steps[1].Opened = noon.Add(-30 * 24 * time.Hour) }, outcome: events.UpgradeDone,
			message: "every step is made", want: []string{next, "status"},
		},
		"waits for drains, and records since when": {
			given: func(l *fixture) { l.group = leaving }, outcome: events.UpgradeBusy, message: "still being drained: i-1 of pool a",
			want: []string{"write Running 1 0", "status"},
		},
		"waits for drains that it knows": {
			given: func(l *fixture) { l.group, l.record.Steps[1].Converged = leaving, noon.Add(-time.Minute) }, outcome: events.UpgradeBusy,
			message: "still being drained", want: []string{"status"},
		},
		"stops when a drain takes too long": {
			given: func(l *fixture) { l.group, l.record.Steps[1].Converged = leaving, noon.Add(-24*time.Hour) }, outcome: events.UpgradeStopped,
			message: "for longer than drain.timeout",
		},
		"waits for no drain after a step that replaces no node": {
			given: func(l *fixture) { l.group, l.record.Steps[1].Kind = leaving, upgrade.StepAddons }, outcome: events.UpgradeDone,
			message: "every step is made", want: []string{next, "status"},
		},
		"waits for drains of a rollback": {
			given: func(l *fixture) { l.group, l.record.Steps[1].Kind = leaving, upgrade.StepNodesBack }, outcome: events.UpgradeBusy,
			message: "still being drained", want: []string{"write Running 1 0", "status"},
		},
		"fails when groups cannot be read": {given: func(l *fixture) { l.failing["group"] = errThrottled }, err: errThrottled},
		"waits for nodes whose instances ended": {
			given: func(l *fixture) { l.nodes = old }, outcome: events.UpgradeBusy, message: "node-1 (i-1) of pool a",
			want: []string{"write Running 1 0", "status"},
		},
		"waits for nodes whose instances end": {
			given: func(l *fixture) {
				l.nodes, l.group = old, pool.Group{Instances: []pool.Instance{{ID: "i-1", State: pool.TerminatingProceed}}}
			},
			outcome: events.UpgradeBusy, message: "node-1 (i-1) of pool a", want: []string{"write Running 1 0", "status"},
		},
		"does not wait for nodes in service": {
			given: func(l *fixture) {
				l.nodes, l.group = old, pool.Group{Instances: []pool.Instance{{ID: "i-1", State: pool.InService}}}
			},
			outcome: events.UpgradeDone, message: "every step is made", want: []string{next, "status"},
		},
		"does not wait for instances that were detached": {
			given: func(l *fixture) { l.nodes, l.alive = old, []string{"i-1"} }, outcome: events.UpgradeDone, message: "every step is made",
			want: []string{next, "status"},
		},
		"waits when the cluster does not answer": {
			given: func(l *fixture) {
				l.failing["nodes"] = &fault.ClusterUnreachable{Cause: errThrottled}
			}, outcome: events.UpgradeBusy, message: "cannot check whether the old nodes are removed",
			want: []string{"write Running 1 0", "status"},
		},
		"fails when nodes cannot be listed":     {given: func(l *fixture) { l.failing["nodes"] = errThrottled }, err: errThrottled},
		"fails when instances cannot be listed": {given: func(l *fixture) { l.nodes, l.failing["alive"] = old, errThrottled }, err: errThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			l := leading()
			test.given(l)
			result, err := l.handle(t, events.UpgradeNext)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Contains(t, result.Message, test.message)
			require.Equal(t, test.want, slices.Compact(l.done))
		})
	}
}

func TestStepKeepsWhenItWasStarted(t *testing.T) {
	l := leading()
	l.record.Steps = append(l.record.Steps, upgrade.Step{
		Kind: upgrade.StepAddons, Started: noon.Add(-time.Hour), Converged: noon.Add(-time.Hour),
	})
	_, err := l.handle(t, events.UpgradeNext)
	require.NoError(t, err)
	s := l.record.Steps[2]
	require.Equal(t, []time.Time{noon.Add(-time.Hour), noon, {}}, []time.Time{s.Started, s.Opened, s.Converged})
}

func TestConflictIsTriedAgain(t *testing.T) {
	l := leading()
	l.failing["status"] = store.ErrConflict
	_, err := l.handle(t, events.UpgradeNext)
	var transient *fault.Transient
	require.ErrorAs(t, err, &transient)
}

func TestUpgradeStops(t *testing.T) {
	ended := events.UpgradeRequest{}
	ended.Ended = "mine"
	for name, test := range map[string]struct {
		given   func(*fixture)
		in      events.UpgradeRequest
		message string
		state   upgrade.State
		err     error
		want    []string
	}{
		"with its alarms on": {
			given: func(*fixture) {}, in: events.UpgradeRequest{}, message: "it failed. Completed and kept", state: upgrade.Stopped,
			want: []string{"sound", "write Stopped 1 0", "status"},
		},
		"as blocked before it changed anything": {
			given: func(l *fixture) {
				l.record.State, l.record.Step, l.record.Steps[0].Started = upgrade.Checking, 0, time.Time{}
			}, in: events.UpgradeRequest{}, message: "Nothing was changed", state: upgrade.Blocked,
			want: []string{"sound", "write Blocked 0 0", "status"},
		},
		"only records a finished upgrade again": {
			given: func(l *fixture) { l.record.State = upgrade.Stopped }, in: events.UpgradeRequest{}, message: "it failed", state: upgrade.Stopped,
			want: []string{"status"},
		},
		"not when it is another's": {
			given: func(l *fixture) { l.record.Execution = "theirs" }, in: events.UpgradeRequest{}, message: "it failed", state: upgrade.Running,
		},
		"not without a record": {given: func(l *fixture) { l.record = nil }, in: events.UpgradeRequest{}, message: "it failed"},
		"for the execution that ended": {
			given: func(*fixture) {}, in: ended, message: "it failed. Completed and kept", state: upgrade.Stopped,
			want: []string{"sound", "write Stopped 1 0", "status"},
		},
		"not for one that ended before another": {
			given: func(l *fixture) { l.record.Execution = "other" }, in: ended, message: "it failed", state: upgrade.Running,
		},
		"not before alarms are on": {
			given: func(l *fixture) { l.failing["sound"] = errThrottled }, in: events.UpgradeRequest{}, state: upgrade.Running, err: errThrottled,
			want: []string{"sound"},
		},
		"not when the spec cannot be read": {
			given: func(l *fixture) { l.failing["spec"] = errThrottled }, in: events.UpgradeRequest{}, err: errThrottled, want: []string{"sound"},
		},
		"although the spec is invalid": {
			given: func(l *fixture) { l.spec = "kind: Cluster" }, in: events.UpgradeRequest{}, message: "it failed", state: upgrade.Stopped,
			want: []string{"sound", "write Stopped 1 0", "status"},
		},
		"not when the record cannot be read": {
			given: func(l *fixture) { l.failing["record"] = errThrottled }, in: events.UpgradeRequest{}, err: errThrottled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := leading()
			l.record.Target.Release = "r2"
			test.given(l)
			in := test.in
			in.Cluster, in.Action, in.Execution, in.Error, in.Cause = "demo", events.UpgradeStop, "mine", upgradeStopped, "it failed"
			if in.Ended != "" {
				in.Execution = "cleaner"
			}
			result, err := l.handler().Handle(t.Context(), in)
			require.ErrorIs(t, err, test.err)
			require.Contains(t, result.Message, test.message)
			require.Equal(t, test.want, l.done)
			if test.state != "" {
				require.Equal(t, test.state, l.record.State)
			}
		})
	}
	t.Run("as the answer to the spec that names its target", func(t *testing.T) {
		for state, over := range map[upgrade.State]string{upgrade.Running: "", upgrade.Checking: "r1"} {
			l := leading()
			l.record.Overridden = "r1"
			if l.record.State = state; state == upgrade.Checking {
				l.record.Step, l.record.Steps[0].Started = 0, time.Time{}
			}
			_, err := l.handle(t, events.UpgradeStop)
			require.NoError(t, err)
			require.Equal(t, over, l.record.Overridden, "one that was blocked answers nothing")
		}
	})
	t.Run("saying what is known of the cluster's own control plane", func(t *testing.T) {
		l := leading()
		l.record.Step, l.record.Steps[0].Ended, l.stack.ID = 0, time.Time{}, "stack-2"
		under, err := l.handler().callOf(l.record).interruptedStep(t.Context())
		require.NoError(t, err)
		require.Empty(t, under)
		l.failing["describe"] = errThrottled
		_, err = l.handler().callOf(l.record).interruptedStep(t.Context())
		require.ErrorIs(t, err, errThrottled)
	})
}
