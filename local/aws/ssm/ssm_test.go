package ssm_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/ssm"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
)

func newClient(t *testing.T) (*sdk.Client, *ssm.Service, *iam.Service) {
	t.Helper()
	identities := iam.New("111122223333", "us-east-1", &clock.Clock{})
	s := ssm.New(ssm.Config{
		Region: "us-east-1", Account: "111122223333", Clock: &clock.Clock{}, Images: ec2.ImageParameters(ssm.EKSImageParameter),
	})
	e := endpoint.New(identities, nil)
	e.Handle(s.Wire())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	_, key := identities.Admin()
	return sdk.New(sdk.Options{
		Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, ""),
	}), s, identities
}

func code(err error) string {
	var known smithy.APIError
	if errors.As(err, &known) {
		return known.ErrorCode()
	}
	return ""
}

func TestEKSImages(t *testing.T) {
	c, _, _ := newClient(t)
	for _, version := range ec2.KubernetesVersions {
		name := "/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2023/arm64/standard/recommended/image_id"
		out, err := c.GetParameter(t.Context(), &sdk.GetParameterInput{Name: &name})
		require.NoError(t, err)
		require.Equal(t, ec2.ImageID(version, "arm64"), *out.Parameter.Value)
		require.Equal(t, "arn:aws:ssm:us-east-1::parameter"+name, *out.Parameter.ARN)
	}
	found := 0
	pages := sdk.NewGetParametersByPathPaginator(c, &sdk.GetParametersByPathInput{
		Path: aws.String("/aws/service/eks/optimized-ami"), Recursive: aws.Bool(true),
	})
	for pages.HasMorePages() {
		out, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		found += len(out.Parameters)
	}
	require.Equal(t, 5*len(ec2.KubernetesVersions), found)
	out, err := c.GetParametersByPath(t.Context(), &sdk.GetParametersByPathInput{Path: aws.String("/aws/service/eks/optimized-ami")})
	require.NoError(t, err)
	require.Empty(t, out.Parameters, "not recursive: there is nothing right below")
}

func TestOwnParameters(t *testing.T) {
	c, s, identities := newClient(t)
	ctx := t.Context()
	put := func(name, value string, overwrite bool) error {
		_, err := c.PutParameter(ctx, &sdk.PutParameterInput{Name: &name, Value: &value, Type: types.ParameterTypeString, Overwrite: &overwrite})
		return err
	}
	require.NoError(t, put("/team/image", "ami-1", false))
	require.Equal(t, "ParameterAlreadyExists", code(put("/team/image", "ami-2", false)))
	require.NoError(t, put("/team/image", "ami-2", true))
	require.Equal(t, "AccessDeniedException", code(put("/aws/service/x", "y", false)))
	require.Equal(t, "ValidationException", code(put("/team/long", strings.Repeat("x", 4097), false)))
	out, err := c.GetParameters(ctx, &sdk.GetParametersInput{Names: []string{"/team/image", "/team/other"}})
	require.NoError(t, err)
	require.Equal(t, "ami-2", *out.Parameters[0].Value)
	require.EqualValues(t, 2, out.Parameters[0].Version)
	require.Equal(t, []string{"/team/other"}, out.InvalidParameters)

	admin, _ := identities.Admin()
	value, err := s.ReadParameter(ctx, admin, "/team/image")
	require.NoError(t, err)
	require.Equal(t, "ami-2", value)
	_, err = s.ReadParameter(ctx, iam.Caller{}, "/team/image")
	require.Error(t, err, "reading requires permission")

	_, err = c.DeleteParameter(ctx, &sdk.DeleteParameterInput{Name: aws.String(ssm.EKSImageParameter("1.36", "al2023", "", "arm64"))})
	require.Equal(t, "AccessDeniedException", code(err), "public parameters are AWS's")
	_, err = c.DeleteParameter(ctx, &sdk.DeleteParameterInput{Name: aws.String("/team/image")})
	require.NoError(t, err)
	_, err = c.GetParameter(ctx, &sdk.GetParameterInput{Name: aws.String("/team/image")})
	require.Equal(t, "ParameterNotFound", code(err))
	_, err = c.GetParameterHistory(ctx, &sdk.GetParameterHistoryInput{Name: aws.String("/team/image")})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
	_, err = c.PutParameter(ctx, &sdk.PutParameterInput{
		Name: aws.String("secret"), Value: aws.String("x"), Type: types.ParameterTypeSecureString,
	})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
}
