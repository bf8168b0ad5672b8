package admission_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/admission"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// fixture is an account with the cluster demo. It implements admission.Machine.
type fixture struct {
	specs, objects *storetest.Bucket
	state          *store.State
	started        []string
	startErr       error
	admitter       *admission.Admitter
}

func newFixture() *fixture {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	f := &fixture{specs: storetest.NewBucket("specs"), objects: storetest.NewBucket("state")}
	now := func() time.Time { return noon }
	f.state = store.NewState(f.objects, store.Silent, now)
	f.admitter = &admission.Admitter{Specs: f.specs, State: f.state, Machine: f, Now: now}
	return f
}

// Converge records the execution, with both versions in its name.
func (f *fixture) Converge(_ context.Context, cluster, specVersion, after string) error {
	f.started = append(f.started, fmt.Sprintf("%s %q after %q", cluster, specVersion, after))
	return f.startErr
}

// upload uploads a spec of the cluster and returns its version.
func (f *fixture) upload(spec string) string { return f.specs.Upload(names.ClusterSpec("demo"), spec) }

// refuseOnce refuses the next read of a spec.
func (f *fixture) refuseOnce() {
	f.specs.OnCall = func(storetest.Call) error {
		f.specs.OnCall = nil
		return storetest.Refusal("AccessDenied")
	}
}

// set writes the status of the cluster.
func (f *fixture) set(t *testing.T, change func(*status.Status)) {
	t.Helper()
	require.NoError(t, f.state.UpdateStatus(t.Context(), "demo", change))
}

// status reads the status of the cluster.
func (f *fixture) status(t *testing.T) *status.Status {
	t.Helper()
	document, err := f.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	return &document.Status
}

const spec = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: r1}
  network: {cidr: 10.0.0.0/16, zones: [us-east-1a, us-east-1b]}
  pools: [{name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 2}]
`
