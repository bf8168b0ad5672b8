package wire

import (
	"context"

	"github.com/drover-run/drover/local/aws/iam"
)

// Do performs an operation for a caller in this process, as a request would, such as a state machine's aws-sdk task.
// Parameters have the API's names.
func (s *Service) Do(ctx context.Context, caller iam.Caller, region, account, action string, parameters map[string]any) (any, error) {
	operation, ok := s.Operations[action]
	if !ok {
		return nil, Unsupported(s.iamPrefix(), "the operation "+action)
	}
	return operation(ctx, &Call{
		Service: s.Name, Action: action, Caller: caller, Region: region, Account: account,
		prefix: s.iamPrefix(), protocol: JSON11, params: parameters,
	})
}
