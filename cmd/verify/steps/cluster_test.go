package steps

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestSpecYAML(t *testing.T) {
	target := &Target{Suffix: "abcdef", zones: []string{"us-east-1a", "us-east-1b"}}
	for _, private := range []bool{false, true} {
		s := spec{name: "verify-abcdef", release: "1.36-verify-abcdef", cidr: "10.64.0.0/16", private: private}
		read, errs := api.ReadCluster("clusters/verify-abcdef.yaml", []byte(target.yaml(s, "arn:aws:iam::111122223333:role/ops")), api.Options{})
		require.Empty(t, errs)
		require.Equal(t, "abcdef", read.Spec.Tags[tagKey])
		require.False(t, *read.Spec.DeletionProtection)
		require.Equal(t, api.NATSingle, read.Spec.Network.NATGateways)
		require.Equal(t, "arn:aws:iam::111122223333:role/ops", read.Spec.ControlPlane.Access[0].PrincipalARN)
		if public := read.Spec.ControlPlane.Endpoint.Public; private {
			require.False(t, *public)
		} else {
			require.Nil(t, public)
		}
	}
}
