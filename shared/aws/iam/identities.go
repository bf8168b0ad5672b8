// Package iam reads the identities of an account from IAM. It changes nothing.
package iam

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/fault"
)

// operation is one operation of IAM's client.
type operation[In, Out any] = call.Operation[In, Out, iam.Options]

// Identities of an account.
type Identities struct {
	getSummary    operation[iam.GetAccountSummaryInput, iam.GetAccountSummaryOutput]
	listProviders operation[iam.ListOpenIDConnectProvidersInput, iam.ListOpenIDConnectProvidersOutput]
	getUser       operation[iam.GetUserInput, iam.GetUserOutput]
	getRole       operation[iam.GetRoleInput, iam.GetRoleOutput]
}

// New returns the identities of a configuration's account.
func New(config aws.Config) *Identities {
	client := iam.NewFromConfig(call.Once(config))
	return &Identities{client.GetAccountSummary, client.ListOpenIDConnectProviders, client.GetUser, client.GetRole}
}

// Roles returns how many roles the account has, and how many it may have, or 0 if IAM does not report it.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetAccountSummary.html
func (i *Identities) Roles(ctx context.Context) (used, quota int, err error) {
	out, err := i.getSummary(ctx, &iam.GetAccountSummaryInput{})
	if err != nil {
		return 0, 0, fmt.Errorf("counting the roles: %w", call.Error(err))
	}
	return int(out.SummaryMap["Roles"]), int(out.SummaryMap["RolesQuota"]), nil
}

// OIDCProviders returns how many OIDC providers the account has.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListOpenIDConnectProviders.html
func (i *Identities) OIDCProviders(ctx context.Context) (int, error) {
	out, err := i.listProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return 0, fmt.Errorf("counting the OIDC providers: %w", call.Error(err))
	}
	return len(out.OpenIDConnectProviderList), nil
}

// Find returns the ARN of the role or user that has the name of a principal, or "" if there is none. Names are unique in an account,
// whatever the path.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetRole.html, API_GetUser.html
func (i *Identities) Find(ctx context.Context, principalARN string) (arn string, err error) {
	name := principalARN[strings.LastIndex(principalARN, "/")+1:]
	if strings.Contains(principalARN, ":user/") {
		var out *iam.GetUserOutput
		if out, err = i.getUser(ctx, &iam.GetUserInput{UserName: &name}); err == nil {
			return aws.ToString(out.User.Arn), nil
		}
	} else {
		var out *iam.GetRoleOutput
		if out, err = i.getRole(ctx, &iam.GetRoleInput{RoleName: &name}); err == nil {
			return aws.ToString(out.Role.Arn), nil
		}
	}
	if fault.Code(err) == "NoSuchEntity" {
		return "", nil
	}
	return "", fmt.Errorf("finding %s: %w", principalARN, call.Error(err))
}
