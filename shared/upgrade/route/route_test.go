package route

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestSameUpgrade(t *testing.T) {
	target := upgrade.Target{Release: "r2", KubernetesVersion: "1.36"}
	forward := &upgrade.Record{Key: "k", Origin: upgrade.OriginCommand, Target: target}
	back := &upgrade.Record{Origin: upgrade.OriginRollback, Target: target}
	in := func(release, version, key string, rollback bool) (in events.Upgrade) {
		in.Release, in.KubernetesVersion, in.Key, in.Rollback = release, version, key, rollback
		return in
	}
	for name, test := range map[string]struct {
		in   events.Upgrade
		of   *upgrade.Record
		want bool
	}{
		"by its key":          {in("r9", "", "k", false), forward, true},
		"not without a key":   {in("r9", "", "", false), back, false},
		"by its release":      {in("r2", "", "", false), forward, true},
		"without a release":   {in("", "", "", false), forward, true},
		"not another release": {in("r3", "", "", false), forward, false},
		"by its version":      {in("r2", "1.36", "", false), forward, true},
		"not another version": {in("r2", "1.37", "", false), forward, false},
		"not a rollback":      {in("r2", "", "", true), forward, false},
		"not of a rollback":   {in("r2", "", "", false), back, false},
		"both rollbacks":      {in("r9", "1.30", "", true), back, true},
	} {
		require.Equal(t, test.want, Same(test.in, test.of), name)
	}
}

func TestEndedRecord(t *testing.T) {
	require.Nil(t, Ended(nil))
	for state, want := range map[upgrade.State]upgrade.State{
		upgrade.Done: upgrade.Done, upgrade.Stopped: upgrade.Stopped, upgrade.Blocked: upgrade.Blocked,
		upgrade.Running: upgrade.Stopped, upgrade.Checking: upgrade.Blocked,
	} {
		r := &upgrade.Record{State: state, Execution: "earlier"}
		require.Equal(t, want, Ended(r).State)
		require.Equal(t, state, r.State, "the record itself stays")
	}
}

func TestStepNames(t *testing.T) {
	for want, step := range map[string]upgrade.Step{
		"add-ons to versions for the previous Kubernetes version": {Kind: upgrade.StepAddonsFirst, NodesRolledBack: true},
		"the rest of the previous release":                        {Kind: upgrade.StepNodes, NodesRolledBack: true},
		"control plane to 1.35": {
			Kind: upgrade.StepControlPlane, KubernetesVersion: "1.35", NodesRolledBack: true,
		},
		"nodes back to their previous images":                 {Kind: upgrade.StepNodesBack, NodesRolledBack: true},
		"add-ons to versions for the next Kubernetes version": {Kind: upgrade.StepAddonsFirst},
		"control plane to 1.36":                               {Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36"},
		"add-ons to the versions of the release":              {Kind: upgrade.StepAddons},
		"nodes to the images of the release":                  {Kind: upgrade.StepNodes},
		"Other":                                               {Kind: "Other"},
	} {
		require.Equal(t, want, StepName(step))
	}
}
