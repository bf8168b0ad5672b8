package kube

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// tokenPrefix marks a bearer token that EKS verifies by asking STS.
// https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster
const tokenPrefix = "k8s-aws-v1."

// Token is a bearer token for an EKS cluster: a presigned GetCallerIdentity that names the cluster in a signed header.
// EKS accepts it for 15 minutes after it was signed.
func Token(ctx context.Context, client *sts.PresignClient, eksCluster string) (string, error) {
	signed, err := client.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
			smithyhttp.SetHeaderValue("x-k8s-aws-id", eksCluster),
			smithyhttp.SetHeaderValue("X-Amz-Expires", "60"),
		))
	})
	if err != nil {
		return "", fmt.Errorf("signing a token for EKS cluster %s: %w", eksCluster, err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(signed.URL)), nil
}
