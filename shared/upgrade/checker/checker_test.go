package checker

// Where an upgrade leads, and the answer before it starts.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

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

const specText = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: %s}
  network: {cidr: 10.0.0.0/16, zones: [eu-west-1a, eu-west-1b]}
  pools:
    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}
`

// world is a cluster, with its specs, its state and its account. Every method only reads.
type world struct {
	record  *upgrade.Record
	stack   stack.Deployed
	spec    string
	running bool
	eks     preflight.ControlPlane
	// sha3 is the content of a third pinned release; empty if there is none.
	sha3 string
	// fails names the calls that fail with errThrottled: a method, with its argument where it has one.
	fails []string
	calls []string
}

var errThrottled = errors.New("throttled")

func (w *world) call(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	w.calls = append(w.calls, call)
	if slices.Contains(w.fails, call) {
		return errThrottled
	}
	return nil
}

// waiting is a cluster at r1 whose spec names r2.
func waiting() *world {
	return &world{
		record: &upgrade.Record{
			Execution: "earlier", Stack: "stack-1", State: upgrade.Done,
			Target: upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"},
		},
		stack: stack.Deployed{
			ID: "stack-1", Status: "UPDATE_COMPLETE", Tags: map[string]string{names.TagRelease: "r1@sha1"},
			Outputs: map[string]string{"KubernetesVersion": "1.35"},
		},
		spec: fmt.Sprintf(specText, "r2"), eks: preflight.ControlPlane{Version: "1.35", Status: "ACTIVE"},
	}
}

func (w *world) checker() *Checker {
	return &Checker{Specs: specsOf{w}, State: w, Stacks: w, Executions: w, EKS: w, Now: func() time.Time { return noon }}
}

type specsOf struct{ *world }

func (s specsOf) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	switch {
	case key == names.ReleaseSpec("r2"):
		return store.Object{Body: fmt.Appendf(nil, releaseText, "r2", "1.36")}, nil
	case s.spec == "":
		return store.Object{}, store.ErrNotFound
	}
	return store.Object{Body: []byte(s.spec), Version: "v1"}, nil
}

func (w *world) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	if err := w.call("Get %s", key); err != nil {
		return store.Object{}, err
	}
	switch {
	case key == names.PinnedRelease("sha1"):
		return store.Object{Body: fmt.Appendf(nil, releaseText, "r1", "1.35")}, nil
	case key == names.PinnedRelease("sha2"):
		return store.Object{Body: fmt.Appendf(nil, releaseText, "r2", "1.36")}, nil
	case key == names.PinnedRelease("sha3") && w.sha3 != "":
		return store.Object{Body: []byte(w.sha3)}, nil
	}
	return store.Object{}, store.ErrNotFound
}

func (w *world) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	return w.record, "etag", w.call("Upgrade")
}

func (w *world) Describe(_ context.Context, stackName string) (stack.Deployed, error) {
	return w.stack, w.call("Describe %s", stackName)
}

func (w *world) Running(_ context.Context, execution string) (bool, error) {
	return w.running, w.call("Running %s", execution)
}

func (w *world) ControlPlane(context.Context, string) (preflight.ControlPlane, error) {
	return w.eks, w.call("ControlPlane")
}

func (w *world) Offered(context.Context) ([]string, error) {
	return []string{"1.35", "1.36"}, w.call("Offered")
}

func (w *world) Compat(_ context.Context, addons []string) (upgrade.Compat, error) {
	both := func(version string) []upgrade.AddonVersion {
		return []upgrade.AddonVersion{{Version: version, Kubernetes: []string{"1.35", "1.36"}}}
	}
	return upgrade.Compat{"vpc-cni": both("v1.21.1-eksbuild.1"), "coredns": both("v1.13.2-eksbuild.1")}, w.call("Compat %v", addons)
}

// runningUpgrade is the record of an upgrade from r1 to r2.
func runningUpgrade() *upgrade.Record {
	return &upgrade.Record{
		Number: 2, Execution: "mine", Stack: "stack-1", State: upgrade.Running, Origin: upgrade.OriginSpec,
		From:   upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"},
		Target: upgrade.Target{Release: "r2", SHA256: "sha2", KubernetesVersion: "1.36"}, Step: 1,
		Steps: []upgrade.Step{
			{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36", Started: noon.Add(-time.Hour), Ended: noon.Add(-time.Minute)},
			{Kind: upgrade.StepNodes, KubernetesVersion: "1.36", Started: noon.Add(-time.Minute), Opened: noon.Add(-time.Minute)},
		},
	}
}

// stoppedUpgrade is the record of an upgrade from r1 to r2 that began and stopped.
func stoppedUpgrade(l *world) *upgrade.Record {
	l.record = runningUpgrade()
	l.record.State, l.record.Step, l.record.Execution = upgrade.Stopped, 0, "earlier"
	return l.record
}

// finishedUpgrade is a cluster at r2 after its upgrade from r1, whose control plane was updated that long ago.
func finishedUpgrade(l *world, ago time.Duration) *upgrade.Record {
	l.record = runningUpgrade()
	l.stack.Tags[names.TagRelease], l.stack.Outputs["KubernetesVersion"], l.eks.Version = "r2@sha2", "1.36", "1.36"
	l.record.State, l.record.Step, l.record.Steps[0].Ended = upgrade.Done, 2, noon.Add(-ago)
	return l.record
}

func TestRouteOfAnUpgrade(t *testing.T) {
	const day = 24 * time.Hour
	back := func(in *events.Upgrade) { in.Rollback, in.Release = true, "" }
	unnamed := func(in *events.Upgrade) { in.Release = "" }
	to := func(release string) func(*events.Upgrade) {
		return func(in *events.Upgrade) { in.Release = release }
	}
	paused := specText + "  paused: true\n"
	for name, test := range map[string]struct {
		given  func(*world)
		change func(*events.Upgrade)
		want   string
		err    string
	}{
		"leads to the release that is named": {func(*world) {}, to("r2"), "r2 1.36", ""},
		"leads to the release of the spec":   {func(*world) {}, unnamed, "r2 1.36", ""},
		"leads to the one that stopped": {
			func(l *world) { stoppedUpgrade(l); l.spec = fmt.Sprintf(specText, "r1") }, unnamed, "r2 1.36", "",
		},
		"leads elsewhere when that is named": {func(l *world) { stoppedUpgrade(l) }, to("r1"), "r1 1.35", ""},
		"leads to no rollback that stopped": {
			func(l *world) {
				stoppedUpgrade(l).Origin = upgrade.OriginRollback
				l.spec = fmt.Sprintf(specText, "r1")
			}, unnamed, "r1 1.35", "",
		},
		"has the version of the spec for its release": {func(l *world) { l.spec += "  kubernetesVersion: \"1.35\"\n" }, to("r2"), "r2 1.35", ""},
		"has its own version for another release": {
			func(l *world) { l.spec = fmt.Sprintf(specText, "r1") + "  kubernetesVersion: \"1.35\"\n" }, to("r2"), "r2 1.36", "",
		},
		"leads nowhere while the spec is paused": {
			func(l *world) { l.spec = fmt.Sprintf(paused, "r2") }, to("r2"), "", "spec.paused is true",
		},
		"leads nowhere without a spec":          {func(l *world) { l.spec = "" }, to("r2"), "", "there is no spec"},
		"leads nowhere without a control plane": {func(l *world) { l.stack.Outputs = nil }, to("r2"), "", "has no control plane yet"},
		"leads nowhere without the tag":         {func(l *world) { l.stack.Tags = nil }, to("r2"), "", names.TagRelease},
		"leads back":                            {func(l *world) { finishedUpgrade(l, day) }, back, "r1 1.35", ""},
		"leads back within seven days":          {func(l *world) { finishedUpgrade(l, 8*day) }, back, "", "within 7 days"},
		"leads back when that time is unknown":  {func(l *world) { finishedUpgrade(l, 0).Steps[0].Ended = time.Time{} }, back, "r1 1.35", ""},
		"leads back later when the version stays": {
			func(l *world) { finishedUpgrade(l, 8*day).From.KubernetesVersion = "1.36" }, back, "r1 1.36", "",
		},
		"leads back to what the record names": {
			func(l *world) {
				r := finishedUpgrade(l, day)
				r.RollbackTarget, r.From = &upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"}, r.Target
			}, back, "r1 1.35", "",
		},
		"leads back from no first release": {func(l *world) { l.record = nil }, back, "", "this cluster has no upgrade"},
		"leads back from no earlier cluster": {
			func(l *world) { finishedUpgrade(l, day).Stack = "stack-0" }, back, "", "this cluster has no upgrade",
		},
		"leads back once": {
			func(l *world) { finishedUpgrade(l, day).Origin = upgrade.OriginRollback }, back, "", "rolled back already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := waiting()
			test.given(l)
			in := events.Upgrade{Cluster: "demo"}
			test.change(&in)
			r, err := l.checker().ResolveRoute(t.Context(), in, l.record)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, r.To.Release+" "+r.To.KubernetesVersion)
		})
	}
	t.Run("ignores a pause when it is previewed so", func(t *testing.T) {
		l := waiting()
		l.spec = fmt.Sprintf(paused, "r2")
		c := l.checker()
		c.IgnorePaused = true
		_, err := c.Spec(t.Context(), "demo")
		require.NoError(t, err)
	})
}

func TestAnswerBeforeAnUpgrade(t *testing.T) {
	running := func(l *world) *upgrade.Record {
		r := stoppedUpgrade(l)
		r.State, r.Execution, l.running = upgrade.Running, "theirs", true
		return r
	}
	for name, test := range map[string]struct {
		given   func(*world)
		release string
		outcome events.UpgradeOutcome
		message string
	}{
		"none when it begins": {func(*world) {}, "r2", "", ""},
		"that an execution makes it": {
			func(l *world) { running(l) }, "r2", events.UpgradeNothing, "theirs already makes this upgrade",
		},
		"none when it waits for another":            {func(l *world) { running(l) }, "r3", "", ""},
		"none when it waits for an earlier cluster": {func(l *world) { running(l).Stack = "stack-0" }, "r2", "", ""},
		"none when that execution is over":          {func(l *world) { running(l); l.running = false }, "r2", "", ""},
		"none when that upgrade is over":            {func(l *world) { running(l).State = upgrade.Stopped }, "r2", "", ""},
		"none while the control plane changes": {
			func(l *world) { finishedUpgrade(l, 0); l.stack.Status = "UPDATE_IN_PROGRESS" }, "r2", "", "",
		},
		"that the cluster is there": {
			func(l *world) { finishedUpgrade(l, 0) }, "r2", events.UpgradeNothing, "the cluster is at release r2",
		},
		"that it is refused": {func(l *world) { l.spec = "" }, "r2", events.UpgradeRefused, "there is no spec"},
	} {
		t.Run(name, func(t *testing.T) {
			l := waiting()
			test.given(l)
			result, err := l.checker().Answer(t.Context(), events.Upgrade{Cluster: "demo", Release: test.release})
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.True(t, strings.HasPrefix(result.Message, test.message), result.Message)
		})
	}
}
