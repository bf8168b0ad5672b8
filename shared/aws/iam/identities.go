// Package iam reads the identities of an account from IAM. It changes nothing.
package iam

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// Identities of an account.
type Identities struct{ client *iam.Client }

// New returns the identities of a configuration's account.
func New(config aws.Config) *Identities { return &Identities{iam.NewFromConfig(call.Once(config))} }

// Roles returns how many roles the account has, and how many it may have, or 0 if IAM does not report it.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetAccountSummary.html
func (i *Identities) Roles(ctx context.Context) (used, quota int, err error) {
	out, err := i.client.GetAccountSummary(ctx, &iam.GetAccountSummaryInput{})
	if err != nil {
		return 0, 0, fmt.Errorf("counting the roles: %w", call.Error(err))
	}
	return int(out.SummaryMap["Roles"]), int(out.SummaryMap["RolesQuota"]), nil
}
