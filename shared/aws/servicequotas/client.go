package servicequotas

import (
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// operation is one operation of Service Quotas's client.
type operation[In, Out any] = call.Operation[In, Out, servicequotas.Options]

// client has the operations of Service Quotas that this package needs: see call.Operation.
type client struct {
	GetAWSDefaultServiceQuota operation[servicequotas.GetAWSDefaultServiceQuotaInput, servicequotas.GetAWSDefaultServiceQuotaOutput]
	GetServiceQuota           operation[servicequotas.GetServiceQuotaInput, servicequotas.GetServiceQuotaOutput]
}

func newClient(c *servicequotas.Client) client {
	return client{
		GetAWSDefaultServiceQuota: c.GetAWSDefaultServiceQuota,
		GetServiceQuota:           c.GetServiceQuota,
	}
}
