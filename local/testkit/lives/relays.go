package lives

// Private clusters and their relays.

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

// PrivateEndpoint is the field of a cluster with a private endpoint.
const PrivateEndpoint = "  controlPlane: {endpoint: {public: false}}\n"

// DeleteRelay deletes the relay's function outside drover.
func (l *Life) DeleteRelay() {
	l.T.Helper()
	_, err := awslambda.NewFromConfig(l.Config()).DeleteFunction(l.T.Context(),
		&awslambda.DeleteFunctionInput{FunctionName: aws.String(names.Relay("demo"))})
	require.NoError(l.T, err)
}
