package leftovers

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/leftover"
)

// recorder answers AssumeRole and every call that a session makes.
type recorder struct {
	assumed []url.Values
	expires time.Time
	// with are the access keys that removals were signed with.
	with []string
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	answer := "<R/>"
	if form.Get("Action") == "AssumeRole" {
		r.assumed = append(r.assumed, form)
		answer = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>` +
			form.Get("RoleSessionName") + `</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>` +
			r.expires.UTC().Format(time.RFC3339) + `</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`
	} else {
		_, key, _ := strings.Cut(request.Header.Get("Authorization"), "Credential=")
		key, _, _ = strings.Cut(key, "/")
		r.with = append(r.with, key)
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: request,
	}, nil
}

func newRecorder(expires time.Time) (*recorder, *Leftovers) {
	r := &recorder{expires: expires}
	return r, New(aws.Config{
		Region: "eu-west-1", HTTPClient: &http.Client{Transport: r},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "function", SecretAccessKey: "s"}, nil
		}),
	}, "arn:aws:iam::1:role/leftovers")
}

// The session of a cluster can delete only resources with one of that cluster's own tags, key and value.
func TestSessionPolicy(t *testing.T) {
	r, l := newRecorder(time.Now().Add(time.Hour))
	_, _, err := l.Remove(t.Context(), "shop", leftover.Resource{Kind: leftover.Volume, ID: "vol-1"})
	require.NoError(t, err)
	require.Len(t, r.assumed, 1)
	require.Equal(t, "arn:aws:iam::1:role/leftovers", r.assumed[0].Get("RoleArn"))
	require.Empty(t, r.assumed[0]["PolicyArns.member.1.arn"])
	require.JSONEq(t, `{"Version": "2012-10-17", "Statement": [
		{"Effect": "Allow", "Action": ["ec2:Delete*", "elasticloadbalancing:Delete*"], "Resource": "*",
			"Condition": {"StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/drover-shop": "owned"}}},
		{"Effect": "Allow", "Action": ["ec2:Delete*", "elasticloadbalancing:Delete*"], "Resource": "*",
			"Condition": {"StringEquals": {"aws:ResourceTag/elbv2.k8s.aws/cluster": "drover-shop"}}},
		{"Effect": "Allow", "Action": ["ec2:Delete*", "elasticloadbalancing:Delete*"], "Resource": "*",
			"Condition": {"StringEquals": {"aws:ResourceTag/cluster.k8s.amazonaws.com/name": "drover-shop"}}}
	]}`, r.assumed[0].Get("Policy"))
	require.Equal(t, []string{"drover-shop"}, r.with, "the removal uses the session, not the function's own role")
}

func TestSessionOfEachCluster(t *testing.T) {
	disk := leftover.Resource{Kind: leftover.Volume, ID: "vol-1"}
	t.Run("is its own", func(t *testing.T) {
		r, l := newRecorder(time.Now().Add(time.Hour))
		for _, cluster := range []string{"shop", "web", "shop"} {
			_, _, err := l.Remove(t.Context(), cluster, disk)
			require.NoError(t, err)
		}
		require.Equal(t, []string{"drover-shop", "drover-web", "drover-shop"}, r.with)
		require.Len(t, r.assumed, 2)
	})
	t.Run("is replaced before it ends", func(t *testing.T) {
		r, l := newRecorder(time.Now().Add(4 * time.Minute))
		for range 2 {
			_, _, err := l.Remove(t.Context(), "shop", disk)
			require.NoError(t, err)
		}
		require.Len(t, r.assumed, 2)
	})
}
