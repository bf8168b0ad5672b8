package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
)

func TestMovedAccounts(t *testing.T) {
	cluster := func(identities []api.PodIdentity, addons ...api.Addon) *api.Cluster {
		c := &api.Cluster{}
		c.Spec.PodIdentities, c.Spec.Addons = identities, append(addons, api.Addon{Name: api.PodIdentityAgent})
		return c
	}
	dns := func(accounts ...string) api.Addon {
		a := api.Addon{Name: "external-dns", PodIdentities: []api.AddonIdentity{}}
		for _, account := range accounts {
			a.PodIdentities = append(a.PodIdentities, api.AddonIdentity{ServiceAccount: account, RoleARN: "arn:aws:iam::111122223333:role/x"})
		}
		return a
	}
	own := []api.PodIdentity{{Namespace: "external-dns", ServiceAccount: "external-dns"}}
	cni := api.Addon{Name: "vpc-cni"} // it has aws-node by default
	node := []api.PodIdentity{{Namespace: "kube-system", ServiceAccount: "aws-node"}}
	for name, c := range map[string]struct {
		old, now *api.Cluster
		// after are the stacks that a stack waits for, now those that change in the first round.
		after  map[string]string
		rounds []string
	}{
		"to identities from an add-on on nodes": {
			cluster(nil, dns("external-dns")), cluster(own, dns()), map[string]string{names.Identities: names.NodeAddons},
			[]string{names.Addons, names.NodeAddons},
		},
		"to identities from an add-on that leaves": {
			cluster(nil, dns("external-dns")), cluster(own), map[string]string{names.Identities: names.NodeAddons},
			[]string{names.Addons, names.NodeAddons},
		},
		"to identities from an add-on for nodes": {
			cluster(nil, cni), cluster(node), map[string]string{names.Identities: names.Addons}, []string{names.Addons, names.NodeAddons},
		},
		"from identities to an add-on for nodes": {
			cluster(node), cluster(nil, cni), map[string]string{names.Addons: names.Identities}, []string{names.Identities, names.NodeAddons},
		},
		"from identities to an add-on on nodes": { // the stages have that order
			cluster(own, dns()), cluster(nil, dns("external-dns")), nil, []string{names.Addons, names.Identities, names.NodeAddons},
		},
		"nothing moves": {
			cluster(nil, dns("external-dns"), cni), cluster(own[:0], dns("external-dns"), cni), nil,
			[]string{names.Addons, names.Identities, names.NodeAddons},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Cluster: "demo", New: c.now, Old: map[string]*api.Cluster{}, Deployed: map[string]stack.Deployed{}}
			for _, name := range []string{names.Addons, names.Identities, names.NodeAddons} {
				in.Old[name] = c.old
				in.Desired = append(in.Desired, render.Stack{Name: name, StackName: names.Stack("demo", name), Tags: map[string]string{"a": "b"}})
				in.Deployed[name] = stack.Deployed{Status: stack.UpdateComplete, Tags: map[string]string{names.TagChecksum: "other"}}
			}
			p := Compute(in)
			require.Empty(t, p.Refused)
			for _, change := range p.Changes {
				require.Equal(t, c.after[change.Stack], change.After, change.Stack)
			}
			stages := p.Stages()
			require.Equal(t, c.rounds, append(stages.Addons, stages.NodeAddons...))
			if c.after[names.Identities] == names.NodeAddons { // without nodes, the add-ons keep what they have
				_, found := p.WithoutNodes().Find(names.Identities)
				require.False(t, found)
			}
		})
	}
}
