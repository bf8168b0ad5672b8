package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// Only an existing stack without the tag is refused, and only if its permissions depend on the tag.
func TestMissingTag(t *testing.T) {
	first := Compute(input(spec(), nil, nil))
	untagged := func(stack, status string) map[string]stack.Deployed {
		deployed := deploy(nil, first)
		now := deployed[stack]
		now.Status, now.Tags = status, map[string]string{"team": "a b", names.TagRelease: "r1@1", names.TagChecksum: "2"}
		now.Parameters = map[string]string{"SubnetIds": "subnet-1", "DeletionProtection": "true"}
		deployed[stack] = now
		return deployed
	}
	for stack, refused := range map[string]bool{
		names.Network: true, names.ControlPlane: true, names.Addons: false, names.NodeAddons: false, "pool-workers": false,
	} {
		p := Compute(input(spec(), spec(), untagged(stack, "UPDATE_COMPLETE")))
		require.Equal(t, []string{"Update " + stack}, order(p), stack)
		require.Equal(t, refused, len(p.Refused) > 0, stack)
	}
	own := spec()
	own.Spec.ControlPlane.EncryptionKeyARN = "arn:aws:kms:eu-central-1:111122223333:key/1"
	require.Empty(t, Compute(input(own, own, untagged(names.ControlPlane, "UPDATE_COMPLETE"))).Refused, "no permission depends on the tag")
	for _, status := range []string{"", "DELETE_COMPLETE", stack.InReview} {
		require.Empty(t, Compute(input(spec(), spec(), untagged(names.Network, status))).Refused, status)
	}
	p := Compute(input(spec(), spec(), untagged(names.ControlPlane, "UPDATE_ROLLBACK_COMPLETE")))
	require.Contains(t, p.Refused[0].Line(), "aws cloudformation update-stack --stack-name drover-demo-control-plane --use-previous-template "+
		"--capabilities CAPABILITY_NAMED_IAM --role-arn ROLE --tags Key=drover:checksum,Value=2 Key=drover:cluster,Value=demo "+
		"Key=drover:release,Value=r1@1 Key=drover:stack,Value=control-plane --parameters ParameterKey=DeletionProtection,UsePreviousValue=true "+
		"ParameterKey=SubnetIds,UsePreviousValue=true")
	bare := untagged(names.Network, "UPDATE_COMPLETE")
	network := bare[names.Network]
	network.Parameters = nil
	bare[names.Network] = network
	require.NotContains(t, Compute(input(spec(), spec(), bare)).Refused[0].Line(), "--parameters")
}
