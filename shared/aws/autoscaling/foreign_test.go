package autoscaling_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/aws/autoscaling"
)

// PoolOfInstance does not read the hooks of a group that is not drover's: its role may not.
func TestPoolOfForeignInstance(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if action := r.FormValue("Action"); action != "DescribeAutoScalingInstances" {
			http.Error(w, action+" is forbidden", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `<DescribeAutoScalingInstancesResponse><DescribeAutoScalingInstancesResult><AutoScalingInstances><member>
			<InstanceId>i-1</InstanceId><AutoScalingGroupName>web</AutoScalingGroupName>
		</member></AutoScalingInstances></DescribeAutoScalingInstancesResult></DescribeAutoScalingInstancesResponse>`)
	}))
	t.Cleanup(server.Close)
	g := autoscaling.New(autoscalingapi.New(autoscalingapi.Options{
		BaseEndpoint: &server.URL, Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
	}))
	pool, err := g.PoolOfInstance(t.Context(), "i-1")
	require.NoError(t, err)
	require.Zero(t, pool)
}
