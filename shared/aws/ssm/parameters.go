// Package ssm reads parameters from the Parameter Store of Systems Manager.
package ssm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/fault"
)

// Parameters of an account and region.
type Parameters struct{ client client }

// New returns the parameters of a configuration's account and region.
func New(config aws.Config) *Parameters {
	return &Parameters{newClient(ssm.NewFromConfig(call.Once(config)))}
}

// Value returns a parameter, or "" if it does not exist.
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html
func (p *Parameters) Value(ctx context.Context, name string) (string, error) {
	out, err := p.client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	if fault.Code(err) == "ParameterNotFound" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the parameter %s: %w", name, call.Error(err))
	}
	return aws.ToString(out.Parameter.Value), nil
}

// maxNames is the number of parameters that a request can name.
const maxNames = 10

// Values returns parameters by name. Those that do not exist are left out. Up to ten are read in one request.
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
func (p *Parameters) Values(ctx context.Context, names []string) (map[string]string, error) {
	values := map[string]string{}
	for some := range slices.Chunk(names, maxNames) {
		out, err := p.client.GetParameters(ctx, &ssm.GetParametersInput{Names: some})
		if err != nil {
			return nil, fmt.Errorf("reading the parameters %s: %w", strings.Join(some, ", "), call.Error(err))
		}
		for _, parameter := range out.Parameters {
			values[aws.ToString(parameter.Name)] = aws.ToString(parameter.Value)
		}
	}
	return values, nil
}
