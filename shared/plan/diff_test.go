package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func TestDiff(t *testing.T) {
	pool := names.PoolStack("workers")
	secret := func(value string) func(*api.Cluster) {
		return func(c *api.Cluster) {
			c.Spec.Pools[0].Commands = []string{"login " + value}
			c.Spec.Pools[0].Files = []api.File{{Path: "/etc/token", Content: value}}
			c.Spec.Addons[1].Configuration = map[string]any{"token": value, "of": map[string]any{"a": []any{value}}}
		}
	}
	at := func(changes ...func(*api.Cluster)) *api.Cluster {
		c := spec()
		for _, change := range changes {
			change(c)
		}
		return c
	}
	t.Run("shows no secret that changed", func(t *testing.T) {
		require.Equal(t, []status.Reason{
			{Field: "spec.pools[workers].commands", Old: "(17 bytes)", New: "(20 bytes)"},
			{Field: "spec.pools[workers].files", Old: "(43 bytes)", New: "(46 bytes)"},
		}, Diff(pool, at(secret("hunter2")), at(secret("hunter3000"))))
		require.Equal(t, []status.Reason{
			{Field: "spec.addons[coredns].configuration.of.a", Old: "(11 bytes)", New: "(14 bytes)"},
			{Field: "spec.addons[coredns].configuration.token", Old: "(9 bytes)", New: "(12 bytes)"},
		}, Diff(names.NodeAddons, at(secret("hunter2")), at(secret("hunter3000"))))
	})
	t.Run("shows the network where nodes reach it without their proxy", func(t *testing.T) {
		wider := func(c *api.Cluster) { c.Spec.Network.SecondaryCIDRs = []string{"100.64.0.0/16"} }
		proxied := func(c *api.Cluster) { c.Spec.Pools[0].Proxy = &api.Proxy{URL: "http://proxy"} }
		require.Empty(t, Diff(pool, at(), at(wider)))
		require.Equal(t, []status.Reason{{Field: "spec.network.secondaryCIDRs", New: `["100.64.0.0/16"]`}},
			Diff(pool, at(proxied), at(proxied, wider)))
	})
	t.Run("shows that a secret of the same length changed", func(t *testing.T) {
		require.Contains(t, Diff(pool, at(secret("hunter2")), at(secret("hunter3"))),
			status.Reason{Field: "spec.pools[workers].commands", Old: "(17 bytes)", New: "(17 bytes), other content"})
	})
	t.Run("shows that a secret was added", func(t *testing.T) {
		require.Contains(t, Diff(pool, at(), at(secret("hunter2"))), status.Reason{
			Field: "spec.pools[workers].commands", Old: "", New: "(17 bytes)",
		})
	})
	t.Run("shows long values by their length", func(t *testing.T) {
		labeled := func(n int) *api.Cluster {
			return at(func(c *api.Cluster) { c.Spec.Tags = map[string]string{"team": strings.Repeat("x", n)} })
		}
		require.Equal(t, []status.Reason{{Field: "spec.tags.team", Old: strings.Repeat("x", maxShown-2), New: "(121 bytes)"}},
			Diff(names.Network, labeled(maxShown-2), labeled(maxShown-1)))
	})
	t.Run("has nothing to compare without both specs", func(t *testing.T) {
		require.Empty(t, Diff(names.Network, nil, spec()))
		require.Empty(t, Diff(names.Network, spec(), nil))
	})
}

func TestRefused(t *testing.T) {
	change := func(do func(*api.ClusterSpec)) *api.Cluster {
		c := spec()
		do(&c.Spec)
		return c
	}
	vpc := func(id string) *api.Cluster {
		return change(func(s *api.ClusterSpec) { s.Network.Existing = &api.ExistingNetwork{VPCID: id} })
	}
	for name, test := range map[string]struct {
		stack    string
		old, now *api.Cluster
		want     []string
	}{
		"of the network's range": {
			names.Network, spec(), change(func(s *api.ClusterSpec) { s.Network.CIDR = "10.1.0.0/16" }), []string{"spec.network.cidr"},
		},
		"of the network's VPC": {names.Network, vpc("vpc-1"), vpc("vpc-2"), []string{"spec.network.existing.vpcID"}},
		"of a removed zone": {
			names.Network, spec(), change(func(s *api.ClusterSpec) { s.Network.Zones = s.Network.Zones[:1] }), []string{"spec.network.zones"},
		},
		"of the control plane's VPC": {names.ControlPlane, vpc("vpc-1"), vpc("vpc-2"), []string{"spec.network.existing.vpcID"}},
		"of the range of services": {
			names.ControlPlane, spec(), change(func(s *api.ClusterSpec) { s.ControlPlane.ServiceCIDR = "10.100.0.0/16" }),
			[]string{"spec.controlPlane.serviceCIDR"},
		},
		"of the encryption key": {
			names.ControlPlane, spec(), change(func(s *api.ClusterSpec) { s.ControlPlane.EncryptionKeyARN = "arn:aws:kms:us-east-1:1:key/a" }),
			[]string{"spec.controlPlane.encryptionKeyARN"},
		},
		"not of an added zone": {
			names.Network, spec(), change(func(s *api.ClusterSpec) { s.Network.Zones = append(s.Network.Zones, "us-east-1c") }), nil,
		},
		"not of a network that is created": {names.Network, nil, spec(), nil},
		"not of a network without a spec":  {names.Network, spec(), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range refusedReasons(test.stack, test.old, test.now) {
				got = append(got, r.Field)
			}
			require.Equal(t, test.want, got)
		})
	}
}
