package cloudformation_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/aws/cloudformation"
)

type response string

func (r response) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(r)))}, nil
}

// Each description of a stack contains the result of the last drift detection. The local account has no drift detection.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackDriftInformation.html
func TestDescribeReportsDrift(t *testing.T) {
	for found, drifted := range map[string]bool{"DRIFTED": true, "IN_SYNC": false, "NOT_CHECKED": false, "UNKNOWN": false} {
		client := awscloudformation.New(awscloudformation.Options{Region: "eu-central-1", Credentials: aws.AnonymousCredentials{},
			HTTPClient: response(fmt.Sprintf(
				`<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>drover-demo-network</StackName>
			<StackStatus>UPDATE_COMPLETE</StackStatus>
			<DriftInformation><StackDriftStatus>%s</StackDriftStatus></DriftInformation></member></Stacks>
			</DescribeStacksResult></DescribeStacksResponse>`, found))})
		stack, err := cloudformation.New(client, nil, "").Describe(t.Context(), "drover-demo-network")
		require.NoError(t, err)
		require.Equal(t, drifted, stack.Drifted, found)
	}
}
