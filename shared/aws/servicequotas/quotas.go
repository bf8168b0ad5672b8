// Package servicequotas is Service Quotas: how much of something an account may have.
package servicequotas

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/preflight"
)

// Quotas of an account and region.
type Quotas struct{ client *servicequotas.Client }

// New returns the quotas of an account.
func New(client *servicequotas.Client) *Quotas { return &Quotas{client} }

// Limit is the quota of EC2 with a code, as it is applied to the account; false when Service Quotas knows none. What
// is used of it is not said here.
func (q *Quotas) Limit(ctx context.Context, code string) (preflight.Quota, bool, error) {
	return q.get(ctx, "ec2", code, 1)
}

// Storage is the quota of EBS with a code, in GiB: Service Quotas has it in TiB.
func (q *Quotas) Storage(ctx context.Context, code string) (preflight.Quota, bool, error) {
	return q.get(ctx, "ebs", code, 1024)
}

// Clusters is the quota of EKS with a code.
func (q *Quotas) Clusters(ctx context.Context, code string) (preflight.Quota, bool, error) {
	return q.get(ctx, "eks", code, 1)
}

// get a quota, in units of which one of Service Quotas' has so many.
// https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
func (q *Quotas) get(ctx context.Context, service, code string, units float64) (preflight.Quota, bool, error) {
	out, err := q.client.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &service, QuotaCode: &code})
	if fault.Code(err) == "NoSuchResourceException" {
		return preflight.Quota{}, false, nil
	}
	if err != nil {
		return preflight.Quota{}, false, fmt.Errorf("asking for quota %s of %s: %w", code, service, err)
	}
	if out.Quota == nil || out.Quota.Value == nil {
		return preflight.Quota{}, false, nil
	}
	return preflight.Quota{Code: code, Name: aws.ToString(out.Quota.QuotaName), Limit: int(*out.Quota.Value * units)}, true, nil
}
