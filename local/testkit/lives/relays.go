package lives

// Private clusters and their relays.

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

// PrivateEndpoint is the part of a spec that makes the endpoint private.
const PrivateEndpoint = "  controlPlane: {endpoint: {public: false}}\n"

// DeleteRelay deletes the relay's function outside drover.
func (l *Life) DeleteRelay() {
	l.T.Helper()
	_, err := awslambda.NewFromConfig(l.Config()).DeleteFunction(l.T.Context(),
		&awslambda.DeleteFunctionInput{FunctionName: aws.String(names.Relay("demo"))})
	require.NoError(l.T, err)
}

// OfficeCIDR is a range without the addresses of drover's functions. https://www.rfc-editor.org/rfc/rfc5737
const OfficeCIDR = "198.51.100.0/24"

// SetPublicCIDRs sets, outside drover, the addresses that may connect to the public endpoint. It waits until EKS has changed them.
func (l *Life) SetPublicCIDRs(cidrs ...string) {
	l.T.Helper()
	name := names.EKSCluster("demo")
	_, err := eks.NewFromConfig(l.Config()).UpdateClusterConfig(l.T.Context(), &eks.UpdateClusterConfigInput{
		Name: &name, ResourcesVpcConfig: &ekstypes.VpcConfigRequest{EndpointPublicAccess: aws.Bool(true), PublicAccessCidrs: cidrs},
	})
	require.NoError(l.T, err)
	for range 60 {
		time.Sleep(time.Minute)
		out, err := eks.NewFromConfig(l.Config()).DescribeCluster(l.T.Context(), &eks.DescribeClusterInput{Name: &name})
		require.NoError(l.T, err)
		if slices.Equal(out.Cluster.ResourcesVpcConfig.PublicAccessCidrs, cidrs) {
			return
		}
	}
	require.Fail(l.T, "EKS did not change the endpoint")
}
