package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/overview"
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// missing skips a test, or fails it in CI, where everything that a test needs is installed.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// browser is the folder of the tests in a browser.
const browser = "web/test"

// needBrowser skips the test where there is no Chromium, or where the Node packages are not installed.
func needBrowser(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		missing(t, "chromium is missing: install Debian's package chromium")
	}
	if _, err := os.Stat("web/node_modules/playwright-core"); err != nil {
		missing(t, "playwright-core is missing: run make ui")
	}
}

// run runs a script of the folder browser, and returns what it prints.
func run(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", append([]string{browser + "/" + script}, arguments...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s%s", stdout.String(), stderr.String())
	return stdout.String()
}

// madeUp is a fleet of any size. Cluster c00001 has a blocked drain and an upgrade in flight. The rollout of it is in its own file.
type madeUp struct {
	clusters int
	document []byte
	*madeUpRollout
}

var began = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

func (m madeUp) Fleet(context.Context) ([]byte, error) { return m.document, nil }

// makeUp returns a fleet.
func makeUp(t *testing.T, clusters int) madeUp {
	t.Helper()
	m := madeUp{clusters: clusters, madeUpRollout: newMadeUpRollout()}
	var rows []overview.Row
	for i := range m.clusters {
		rows = append(rows, overview.Summarize(clusterNumber(i)))
	}
	var err error
	m.document, err = overview.NewDocument(rows).JSON()
	require.NoError(t, err)
	return m
}

func (m madeUp) Cluster(_ context.Context, name string) ([]byte, error) {
	var i int
	if _, err := fmt.Sscanf(name, "c%05d", &i); err != nil || i >= m.clusters {
		return nil, store.ErrNotFound
	}
	return json.Marshal(clusterNumber(i))
}

func (m madeUp) Nodes(context.Context, string) ([]byte, error) {
	return []byte(`{"pools":[{"name":"workers","desired":3,"inService":2,"ready":2,"versions":[` +
		`{"template":"7","kubelet":"v1.36.1","nodes":2},{"template":"8","kubelet":"v1.37.0","nodes":1}]}]}`), nil
}

func clusterNumber(i int) *status.Cluster {
	c := status.New(fmt.Sprintf("c%05d", i))
	s := &c.Status
	s.Phase, s.UpdatedAt, s.Release = status.Ready, began, fmt.Sprintf("1.%d-1", 35+i%3)
	s.KubernetesVersion = fmt.Sprintf("1.%d", 35+i%3)
	env := []string{"dev", "staging", "prod"}[i%3]
	s.Accepted = &status.Upload{Labels: map[string]string{"env": env, "team": fmt.Sprintf("t%d", i%20)}}
	s.Set(status.Condition{Type: status.Converged, Status: "True", Reason: status.ReasonUpToDate}, began)
	switch {
	case i == 1:
		budget := events.BlockedPod{Pod: "shop/cart-1", Why: "its budget allows no disruption", Budgets: []string{"shop/cart"}}
		left, started, ended := int64(600), began.Add(time.Minute), began.Add(5*time.Minute)
		s.BeginConverge("execution", true, "upgrading to 1.37-1", began)
		s.Nodes = []status.Node{{
			Name: "ip-10-0-0-1", Instance: "i-1", Pool: "workers", State: status.NodeBlocked, Blocked: []events.BlockedPod{budget},
			EstimateSeconds: &left, Since: began,
		}}
		s.Plan = []status.Change{{
			Stack: "pool-workers", Operation: "Update", Effect: status.ReplacesNodes,
			Reasons: []status.Reason{{Field: "spec.pools[0].image", Old: "ami-1", New: "ami-2"}},
		}}
		s.Stacks = []status.Stack{{Name: "pool-workers", Status: "UPDATE_IN_PROGRESS", Since: began}}
		s.Upgrade = &status.Upgrade{
			Phase: "Running", From: "1.36-1", To: "1.37-1", Origin: "Spec", Started: &began,
			Steps: []status.UpgradeStep{
				{Name: "control plane 1.37", Started: &started, Ended: &ended}, {Name: "pool workers", Started: &ended}, {Name: "addons"},
			},
		}
	case i%97 == 3:
		s.FailUnreported("execution", "no capacity", began)
		s.Phase = status.Failed
	case i%41 == 5:
		s.Set(status.Condition{Type: status.InSync, Status: "False", Reason: "Drifted", Message: "a stack differs"}, began)
	}
	return c
}

func TestPageInBrowser(t *testing.T) {
	needBrowser(t)
	server := start(t, makeUp(t, 10_000))
	arguments := []string{server.URL()}
	if folder := os.Getenv("DROVER_SCREENSHOTS"); folder != "" {
		arguments = append(arguments, folder)
	}
	out := run(t, "page.mjs", arguments...)
	require.Contains(t, out, "every check passed")
	t.Log(out) // cmd/bench reads the measurements
}
