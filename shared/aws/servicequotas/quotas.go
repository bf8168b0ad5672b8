// Package servicequotas adapts Service Quotas: it reads the quotas of an account.
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
type Quotas struct{ client client }

// New returns the quotas of an account.
func New(client *servicequotas.Client) *Quotas { return &Quotas{newClient(client)} }

// Limit returns a quota of EC2, as applied to the account. Service Quotas does not report its usage.
func (q *Quotas) Limit(ctx context.Context, code string) (quota preflight.Quota, found bool, err error) {
	return q.get(ctx, "ec2", code, 1)
}

// Storage returns a quota of EBS in GiB. Service Quotas reports TiB.
func (q *Quotas) Storage(ctx context.Context, code string) (quota preflight.Quota, found bool, err error) {
	return q.get(ctx, "ebs", code, 1024)
}

// Clusters returns a quota of EKS.
func (q *Quotas) Clusters(ctx context.Context, code string) (quota preflight.Quota, found bool, err error) {
	return q.get(ctx, "eks", code, 1)
}

// Value returns a quota of a service in a region: the account's own value or, if it has none, AWS's default.
// https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetAWSDefaultServiceQuota.html
func (q *Quotas) Value(ctx context.Context, region, service, code string) (value int, found bool, err error) {
	inRegion := func(o *servicequotas.Options) { o.Region = region }
	quota, found, err := q.get(ctx, service, code, 1, inRegion)
	if found || err != nil {
		return quota.Limit, found, err
	}
	out, err := q.client.GetAWSDefaultServiceQuota(ctx,
		&servicequotas.GetAWSDefaultServiceQuotaInput{ServiceCode: &service, QuotaCode: &code}, inRegion)
	if fault.Code(err) == "NoSuchResourceException" {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("reading the default of quota %s of %s: %w", code, service, err)
	}
	if out.Quota == nil || out.Quota.Value == nil {
		return 0, false, nil
	}
	return int(*out.Quota.Value), true, nil
}

// get returns a quota, multiplied by units.
// https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
func (q *Quotas) get(ctx context.Context, service, code string, units float64, options ...func(*servicequotas.Options)) (
	quota preflight.Quota, found bool, err error) {
	out, err := q.client.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &service, QuotaCode: &code}, options...)
	if fault.Code(err) == "NoSuchResourceException" {
		return preflight.Quota{}, false, nil
	}
	if err != nil {
		return preflight.Quota{}, false, fmt.Errorf("reading quota %s of %s: %w", code, service, err)
	}
	if out.Quota == nil || out.Quota.Value == nil {
		return preflight.Quota{}, false, nil
	}
	return preflight.Quota{Code: code, Name: aws.ToString(out.Quota.QuotaName), Limit: int(*out.Quota.Value * units)}, true, nil
}
