package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func TestReplacedCapabilities(t *testing.T) {
	argo := func(name, namespace, instance string, admins ...string) api.Capability {
		return api.Capability{
			Name: name, Type: api.CapabilityArgoCD, ArgoCD: &api.ArgoCD{Namespace: namespace, IdentityCenterARN: instance, Admins: admins},
		}
	}
	graphs := api.Capability{Name: "graphs", Type: api.CapabilityKRO, RoleARN: "a"}
	const why = " (EKS would replace the capability and keep its Kubernetes objects, which nothing manages: remove the capability, and add " +
		"the other one in a second edit)"
	of := func(field, old, now string) []status.Reason {
		return []status.Reason{{Field: "spec.capabilities[" + field, Old: old, New: now + why}}
	}
	for name, c := range map[string]struct {
		old, now []api.Capability
		want     []status.Reason
	}{
		"nothing":             {[]api.Capability{graphs}, []api.Capability{graphs}, nil},
		"another role":        {[]api.Capability{graphs}, []api.Capability{{Name: "graphs", Type: api.CapabilityKRO, RoleARN: "b"}}, nil},
		"other admins":        {[]api.Capability{argo("a", "n", "i")}, []api.Capability{argo("a", "n", "i", "admins")}, nil},
		"added":               {nil, []api.Capability{graphs}, nil},
		"one leaves":          {[]api.Capability{graphs, argo("a", "n", "i")}, []api.Capability{graphs}, nil},
		"one leaves, another": {[]api.Capability{graphs}, []api.Capability{argo("a", "n", "i")}, nil},
		"another name": {
			[]api.Capability{argo("a", "n", "i")}, []api.Capability{graphs, argo("b", "n", "i")}, of("a].name", "a", "b"),
		},
		"another type": {
			[]api.Capability{graphs}, []api.Capability{{Name: "graphs", Type: api.CapabilityACK}}, of("graphs].type", "KRO", "ACK"),
		},
		"another namespace": {
			[]api.Capability{argo("a", "n", "i")}, []api.Capability{argo("a", "m", "i")}, of("a].argoCD.namespace", "n", "m"),
		},
		"another instance": {
			[]api.Capability{argo("a", "n", "i")}, []api.Capability{argo("a", "n", "j")}, of("a].argoCD.identityCenterARN", "i", "j"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, now := &api.Cluster{}, &api.Cluster{}
			old.Spec.Capabilities, now.Spec.Capabilities = c.old, c.now
			require.Equal(t, c.want, refusedReasons(names.Capabilities, old, now))
			require.Empty(t, refusedReasons(names.Capabilities, nil, now))
		})
	}
}

func TestRemovedCapabilities(t *testing.T) {
	old, now := &api.Cluster{}, &api.Cluster{}
	old.Spec.Capabilities = []api.Capability{{Name: "graphs", Type: api.CapabilityKRO}, {Name: "b", Type: api.CapabilityACK, RoleARN: "x"}}
	now.Spec.Capabilities = []api.Capability{{Name: "b", Type: api.CapabilityACK, RoleARN: "y"}}
	change := Change{Stack: names.Capabilities, Operation: Update, Reasons: Diff(names.Capabilities, old, now)}
	require.Equal(t, []string{"spec.capabilities[graphs]"}, change.RemovedCapabilities())
	all := Change{Stack: names.Capabilities, Operation: Delete}
	all.Reasons = []status.Reason{{Field: "spec.capabilities", Old: "present", New: "absent"}}
	require.Equal(t, []string{"spec.capabilities"}, all.RemovedCapabilities())
	all.Stack = names.Identities
	require.Empty(t, all.RemovedCapabilities())
}
