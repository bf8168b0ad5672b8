package query_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/query"
)

// Answers as EC2 and Elastic Load Balancing give them. What they do when asked well is in the tests of those who ask.
func TestAnswers(t *testing.T) {
	const throttled = `<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>less</Message></Error></` +
		`Errors><RequestID>x</RequestID></Response>`
	for name, c := range map[string]struct {
		status int
		body   string
		code   string
		fault  any
	}{
		"EC2 asks for less": {503, throttled, "RequestLimitExceeded", new(*fault.Throttled)},
		"Elastic Load Balancing": {
			400, `<ErrorResponse><Error><Code>LoadBalancerNotFound</Code><Message>no</Message></Error></ErrorResponse>`, "LoadBalancerNotFound",
			new(*fault.Internal),
		},
		"somebody between":          {502, "<html>bad gateway", "HTTP502", new(*fault.Transient)},
		"an answer that is cut off": {200, "<DescribeSubnetsResponse><subnetSet><item>", "", new(*fault.Transient)},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				require.NoError(t, r.ParseForm())
				require.Equal(t, "DescribeSubnets", r.Form.Get("Action"))
				require.Equal(t, "2016-11-15", r.Form.Get("Version"))
				require.Equal(t, "subnet-1", r.Form.Get("SubnetId.1"))
				require.Contains(t, r.Header.Get("Authorization"), "/eu-central-1/ec2/aws4_request")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			config := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL}
			var out struct{}
			err := query.EC2.Call(context.Background(), config, aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, "DescribeSubnets",
				map[string]string{"SubnetId.1": "subnet-1"}, &out)
			require.ErrorAs(t, err, c.fault)
			require.Equal(t, c.code, fault.Code(err))
			require.ErrorContains(t, err, "DescribeSubnets")
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	err := query.EC2.Call(context.Background(), aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL,
	}, aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, "DescribeSubnets", nil, nil)
	var transient *fault.Transient
	require.ErrorAs(t, err, &transient)
}

// IAM is one for all regions of a partition, and signs for one of them.
func TestIAMHasOneRegion(t *testing.T) {
	for region, want := range map[string][2]string{
		"eu-central-1":   {"iam.amazonaws.com", "/us-east-1/iam/"},
		"us-gov-east-1":  {"iam.us-gov.amazonaws.com", "/us-gov-west-1/iam/"},
		"cn-northwest-1": {"iam.cn-north-1.amazonaws.com.cn", "/cn-north-1/iam/"},
	} {
		var asked *http.Request
		config := aws.Config{Region: region, HTTPClient: does(func(r *http.Request) (*http.Response, error) {
			asked = r
			return nil, errors.New("nobody is there")
		})}
		require.Error(t, query.IAM.Call(t.Context(), config, aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, "ListRoles", nil, nil))
		require.Equal(t, want[0], asked.URL.Host)
		require.Contains(t, asked.Header.Get("Authorization"), want[1])
	}
}

type does func(*http.Request) (*http.Response, error)

func (d does) Do(r *http.Request) (*http.Response, error) { return d(r) }
