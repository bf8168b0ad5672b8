package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestWarningsOfPublicRanges(t *testing.T) {
	pools := []api.Pool{{Name: "a", MaxSize: 1}}
	for name, test := range map[string]struct {
		cidr      string
		secondary []string
		want      string
	}{
		"none for private ranges":      {"10.0.0.0/16", []string{"172.16.0.0/16", "192.168.0.0/16", "100.64.0.0/16", "198.19.0.0/16"}, ""},
		"none for an existing network": {"", nil, ""},
		"a VPC of public addresses":    {"8.8.0.0/16", nil, "spec.network.cidr: 8.8.0.0/16 holds public addresses: "},
		"a range partly public":        {"172.0.0.0/8", nil, "spec.network.cidr: 172.0.0.0/8 holds public addresses: "},
		"public addresses of pods": {
			"10.0.0.0/16", []string{"100.64.0.0/16", "52.0.0.0/16"}, "spec.network.secondaryCIDRs[1]: 52.0.0.0/16 holds public addresses: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := api.Warnings(&api.Cluster{
				Spec: api.ClusterSpec{Pools: pools, Network: api.Network{CIDR: test.cidr, SecondaryCIDRs: test.secondary}},
			}, nil)
			require.Empty(t, warnings.Addons)
			if test.want == "" {
				require.Empty(t, warnings.Network)
				return
			}
			require.Len(t, warnings.Network, 1)
			require.Contains(t, warnings.Network[0], test.want)
		})
	}
}
