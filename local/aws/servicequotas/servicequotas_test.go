package servicequotas

import (
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/endpoint"
)

func TestQuotas(t *testing.T) {
	identities := iam.New("111122223333", "eu-central-1", nil)
	s := New(identities)
	ep := endpoint.New(identities, nil)
	ep.Handle(s.Wire())
	server := httptest.NewServer(ep)
	t.Cleanup(server.Close)
	_, c := identities.Admin()
	client := sdk.New(sdk.Options{
		Region: "eu-central-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken),
	})
	ctx := t.Context()
	get := func() *types.ServiceQuota {
		out, err := client.GetServiceQuota(ctx, &sdk.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String(StandardVCPUs)})
		require.NoError(t, err)
		return out.Quota
	}
	require.Equal(t, 4096.0, *get().Value)
	require.Equal(t, "arn:aws:servicequotas:eu-central-1:111122223333:ec2/L-1216C47A", *get().QuotaArn)
	require.True(t, s.Set(StandardVCPUs, 32))
	require.False(t, s.Set("L-0", 1))
	require.Equal(t, 32.0, *get().Value)
	require.Equal(t, 32, s.Limit(StandardVCPUs))
	byDefault, err := client.GetAWSDefaultServiceQuota(ctx, &sdk.GetAWSDefaultServiceQuotaInput{
		ServiceCode: aws.String("eks"), QuotaCode: aws.String(Clusters),
	})
	require.NoError(t, err)
	require.Equal(t, 100.0, *byDefault.Quota.Value)

	var codes []string
	pages := sdk.NewListServiceQuotasPaginator(client, &sdk.ListServiceQuotasInput{ServiceCode: aws.String("ec2"), MaxResults: aws.Int32(1)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		require.NoError(t, err)
		require.Len(t, page.Quotas, 1)
		codes = append(codes, *page.Quotas[0].QuotaCode)
	}
	require.Equal(t, []string{StandardVCPUs, StandardSpotVCPUs, Addresses}, codes)

	var none *types.NoSuchResourceException
	_, err = client.GetServiceQuota(ctx, &sdk.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String("L-417A185B")})
	require.ErrorAs(t, err, &none)
	_, err = client.ListServiceQuotas(ctx, &sdk.ListServiceQuotasInput{ServiceCode: aws.String("s3")})
	require.ErrorAs(t, err, &none)

	_, err = client.GetServiceQuota(ctx, &sdk.GetServiceQuotaInput{ServiceCode: aws.String("iam"), QuotaCode: aws.String(Roles)})
	require.ErrorAs(t, err, &none, "quotas of IAM are in us-east-1")
	_, err = client.ListServiceQuotas(ctx, &sdk.ListServiceQuotasInput{ServiceCode: aws.String("iam")})
	require.ErrorAs(t, err, &none)
	require.Equal(t, 5000, s.Limit(Roles))
	global := func(o *sdk.Options) { o.Region = "us-east-1" }
	providers, err := client.GetServiceQuota(ctx, &sdk.GetServiceQuotaInput{
		ServiceCode: aws.String("iam"), QuotaCode: aws.String(OIDCProviders),
	}, global)
	require.NoError(t, err)
	require.Equal(t, 100.0, *providers.Quota.Value)
	_, err = client.GetServiceQuota(ctx, &sdk.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String(VPCs)}, global)
	require.ErrorAs(t, err, &none, "the local account has no quotas of another region")

	require.True(t, s.Unset(StandardVCPUs))
	require.False(t, s.Unset("L-0"))
	_, err = client.GetServiceQuota(ctx, &sdk.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String(StandardVCPUs)})
	require.ErrorAs(t, err, &none, "the account has no value of its own")
	require.Equal(t, 5, s.Limit(StandardVCPUs), "the default applies")
	require.True(t, s.Set(StandardVCPUs, 8))
	require.Equal(t, 8.0, *get().Value)
}
