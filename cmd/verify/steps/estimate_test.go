package steps

// The estimate of docs/first-hour.md: how long each step takes on AWS, and what a run costs by the prices and the meter of a real run.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// figures are durations on AWS. docs/first-hour.md has their sources.
type figures struct {
	controlPlane, version, endpoint, deletion, relay, interfaces time.Duration // of EKS, and of a function in a VPC
	gateway, boot, addons, small                                 time.Duration // of a NAT gateway, a node, and any small stack
	bootstrap, deployment                                        time.Duration // of drover
}

// usual and slow differ in the version update, whose reported times differ most.
var (
	usual = figures{
		controlPlane: 15 * time.Minute, version: 8 * time.Minute, endpoint: 2 * time.Minute, deletion: 3 * time.Minute, relay: time.Minute,
		interfaces: 20 * time.Minute, gateway: 90 * time.Second, boot: time.Minute, addons: 30 * time.Second, small: 30 * time.Second,
		bootstrap: 2 * time.Minute, deployment: 5 * time.Minute,
	}
	slow = func() figures {
		f := usual
		f.version = 24 * time.Minute
		return f
	}()
)

// cluster is the creation: the network, the control plane and its second change, add-ons, one node, and the add-ons that need it.
func (f figures) cluster() time.Duration {
	return f.gateway + f.controlPlane + f.endpoint + f.addons + f.boot + f.addons + 4*f.small
}

// roll is the replacement of one node: another boots, the old one is drained and ends.
func (f figures) roll() time.Duration { return f.boot + 2*f.small + f.small }

// upgrade moves the control plane, the add-ons and the node by one version. EKS refreshes its insights first.
func (f figures) upgrade() time.Duration { return time.Minute + f.version + f.addons + f.roll() }

// experiment replaces instances of a group, and removes its stack. The answer may need the time in which nothing happens.
func (f figures) experiment(quiet time.Duration) time.Duration { return 2*f.boot + quiet + f.roll() }

// takes returns how long each step takes. A creation that began in an earlier step is not part of a later one.
func (f figures) takes() map[string]time.Duration {
	return map[string]time.Duration{
		"doctor": f.small, "account": f.small, rolesStep: 2*f.small + propagation,
		"key-tags": 2 * f.small, "terminate-hooks": f.experiment(settleTime), "other-signals": f.experiment(settleTime),
		"refresh-rollback": f.experiment(0), "other-instances": f.experiment(0),
		"bootstrap": f.bootstrap, "deploy": f.deployment, "releases": f.small,
		"cluster": f.cluster(), "node": f.small, "pod-identity": 2 * f.small,
		"entry-roles": 2 * f.small, "addon-identities": 2 * f.addons, "key-grants": 0, "lower-version": f.version + f.small,
		"roll": f.roll(), "upgrade": f.upgrade(), "back": f.upgrade(), "private": f.cluster() + f.relay,
		"delete": f.roll() + f.interfaces + f.deletion + f.gateway + 2*f.small, "force": 0, "leftovers": f.small,
		"destroy": f.deployment / 2, "deploy-again": f.deployment, "destroy-all": f.deployment / 2,
	}
}

// estimate is the end of a step.
type estimate struct {
	step  runner.Step
	takes time.Duration
	cost  float64
}

// run plays all steps with a meter, as they start and stop it.
func (f figures) run(t *testing.T) (all []estimate, total time.Duration) {
	t.Helper()
	takes := f.takes()
	began := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	now, meter := began, &runner.Meter{}
	whole := []runner.Rate{controlPlanePrice, natPrice, addressPrice, nodePrice}
	for _, step := range (&Target{}).All() {
		d, found := takes[step.Name]
		require.True(t, found, "step %s has no estimate", step.Name)
		require.LessOrEqual(t, d, step.Timeout*3/4, "step %s: the timeout is close to the estimate", step.Name)
		switch step.Name {
		case "cluster", "private":
			meter.Start("clusters", now, whole...)
		case "terminate-hooks", "other-signals", "refresh-rollback", "other-instances":
			meter.Start(step.Name, now, smallPrice)
		}
		now = now.Add(d)
		switch step.Name {
		case rolesStep:
			meter.Start("experiments", now, controlPlanePrice, controlPlanePrice)
		case "delete":
			meter.Stop("clusters", now)
			meter.Stop("experiments", now)
		}
		meter.Stop(step.Name, now)
		all = append(all, estimate{step, d, meter.Total(now)})
	}
	require.Len(t, takes, len(all), "an estimate has no step")
	return all, now.Sub(began)
}

func TestEstimateMatchesItsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "first-hour.md"))
	require.NoError(t, err)
	likely, usually := usual.run(t)
	slower, slowly := slow.run(t)
	var want strings.Builder
	fmt.Fprintf(&want, "| Step | Minutes | Cost so far | Minutes, slow | Cost so far, slow |\n|---|---|---|---|---|\n")
	for i, e := range likely {
		fmt.Fprintf(&want, "| %s | %.1f | $%.2f | %.1f | $%.2f |\n", e.step.Name, e.takes.Minutes(), e.cost, slower[i].takes.Minutes(),
			slower[i].cost)
	}
	last := len(likely) - 1
	fmt.Fprintf(&want, "| **in all** | **%.0f** | **$%.2f** | **%.0f** | **$%.2f** |\n", usually.Minutes(), likely[last].cost,
		slowly.Minutes(), slower[last].cost)
	require.Contains(t, string(page), want.String(), "docs/first-hour.md must have this table:\n%s", &want)
	summary := fmt.Sprintf("It takes %.1f to %.1f hours, and costs $%.2f to $%.2f:", usually.Hours(), slowly.Hours(), likely[last].cost,
		slower[last].cost)
	require.Contains(t, strings.Join(strings.Fields(string(page)), " "), summary)
}
