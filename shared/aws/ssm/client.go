package ssm

import (
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// operation is one operation of Systems Manager's client.
type operation[In, Out any] = call.Operation[In, Out, ssm.Options]

// client has the operations of Systems Manager that this package needs: see call.Operation.
type client struct {
	GetParameter  operation[ssm.GetParameterInput, ssm.GetParameterOutput]
	GetParameters operation[ssm.GetParametersInput, ssm.GetParametersOutput]
}

func newClient(c *ssm.Client) client {
	return client{
		GetParameter:  c.GetParameter,
		GetParameters: c.GetParameters,
	}
}
