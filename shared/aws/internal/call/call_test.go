package call_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/fault"
)

// at returns a configuration whose calls go to an address.
func at(address string) aws.Config {
	return call.Once(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &address, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})
}

func describeSubnets(t *testing.T, config aws.Config) error {
	t.Helper()
	_, err := ec2.NewFromConfig(config).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	return call.Error(err)
}

// Error responses of EC2 and Elastic Load Balancing.
func TestError(t *testing.T) {
	const throttled = `<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>less</Message></Error></Errors>` +
		`<RequestID>x</RequestID></Response>`
	deleteLoadBalancer := func(t *testing.T, config aws.Config) error {
		name := "web"
		_, err := elasticloadbalancing.NewFromConfig(config).DeleteLoadBalancer(t.Context(),
			&elasticloadbalancing.DeleteLoadBalancerInput{LoadBalancerName: &name})
		return call.Error(err)
	}
	for name, c := range map[string]struct {
		call   func(*testing.T, aws.Config) error
		status int
		body   string
		text   string
		code   string
		fault  any
	}{
		"EC2 throttles": {
			call: describeSubnets, status: 503, body: throttled, text: "DescribeSubnets: api error RequestLimitExceeded: less",
			code: "RequestLimitExceeded", fault: new(*fault.Throttled),
		},
		"a typed error of Elastic Load Balancing": {
			call: deleteLoadBalancer, status: 400,
			body: `<ErrorResponse><Error><Code>LoadBalancerNotFound</Code><Message>no</Message></Error><RequestId>x</RequestId></ErrorResponse>`,
			text: "DeleteLoadBalancer: api error LoadBalancerNotFound: no", code: "LoadBalancerNotFound", fault: new(*fault.Internal),
		},
		"the page of a proxy": {
			call: describeSubnets, status: 502, body: "<html>bad gateway", text: "DescribeSubnets: api error HTTP502: no error was reported",
			code: "HTTP502", fault: new(*fault.Transient),
		},
		"a refusal without a body": {
			call: describeSubnets, status: 403, text: "DescribeSubnets: api error HTTP403: no error was reported", code: "HTTP403",
			fault: new(*fault.Internal),
		},
		"a response that is cut off": {
			call: describeSubnets, status: 200, body: "<DescribeSubnetsResponse><subnetSet><item>",
			text: "reading the response to DescribeSubnets: ", fault: new(*fault.Transient),
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			err := c.call(t, at(server.URL))
			require.ErrorAs(t, err, c.fault)
			require.Equal(t, c.code, fault.Code(err))
			require.Equal(t, 1, requests, "a call is one request")
			if c.code == "" {
				require.ErrorContains(t, err, c.text)
			} else {
				require.EqualError(t, err, c.text)
			}
		})
	}
}

func TestErrorWithoutResponse(t *testing.T) {
	var transient *fault.Transient
	t.Run("nothing listens", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		err := describeSubnets(t, at(server.URL))
		require.ErrorAs(t, err, &transient)
		require.ErrorContains(t, err, `DescribeSubnets: Post "`+server.URL)
	})
	t.Run("canceled", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		defer server.Close()
		config := at(server.URL)
		config.HTTPClient = &http.Client{Timeout: 1}
		err := describeSubnets(t, config)
		require.ErrorAs(t, err, &transient)
		require.ErrorContains(t, err, "DescribeSubnets: ")
	})
	t.Run("no credentials", func(t *testing.T) {
		config := at("http://127.0.0.1:1")
		config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("there are no credentials")
		})
		err := describeSubnets(t, config)
		var internal *fault.Internal
		require.ErrorAs(t, err, &internal)
		require.EqualError(t, err, "DescribeSubnets: get identity: get credentials: there are no credentials")
	})
	t.Run("no call", func(t *testing.T) {
		require.NoError(t, call.Error(nil))
		var internal *fault.Internal
		require.ErrorAs(t, call.Error(errors.New("a defect")), &internal)
	})
}
