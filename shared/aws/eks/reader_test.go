package eks_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/aws/eks"
)

// answers responds to requests in turn.
type answers struct {
	bodies   []string
	requests []string
}

func (a *answers) Do(r *http.Request) (*http.Response, error) {
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	body := a.bodies[len(a.requests)-1]
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// An account can have more clusters than one response of EKS holds.
func TestClustersReadsAllPages(t *testing.T) {
	first := strings.TrimSuffix(strings.Repeat(`"c",`, 100), ",")
	a := &answers{bodies: []string{fmt.Sprintf(`{"clusters": [%s], "nextToken": "n"}`, first), `{"clusters": ["d", "e"]}`}}
	client := awseks.New(awseks.Options{Region: "eu-central-1", HTTPClient: a, Credentials: aws.AnonymousCredentials{}})
	n, err := eks.New(client).Clusters(t.Context())
	require.NoError(t, err)
	require.Equal(t, 102, n)
	require.Equal(t, []string{"GET /clusters", "GET /clusters?nextToken=n"}, a.requests, "registered clusters are not requested")
}
