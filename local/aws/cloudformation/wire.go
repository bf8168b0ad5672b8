package cloudformation

import (
	"context"
	"reflect"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// The operations in the query protocol.

// Wire returns the service for the endpoint. Other operations are errors that name them.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "cloudformation", Protocol: wire.Query, Version: "2010-05-15",
		Operations: map[string]wire.Operation{
			"CreateStack": bind(s.CreateStack), "UpdateStack": bind(s.UpdateStack), "DeleteStack": bind(s.DeleteStack),
			"CancelUpdateStack": bind(s.CancelUpdateStack), "ContinueUpdateRollback": bind(s.ContinueUpdateRollback),
			"RollbackStack": bind(s.RollbackStack), "SetStackPolicy": bind(s.SetStackPolicy), "GetStackPolicy": bind(s.GetStackPolicy),
			"UpdateTerminationProtection": bind(s.UpdateTerminationProtection), "SignalResource": bind(s.SignalResource),
			"CreateChangeSet": bind(s.CreateChangeSet), "DescribeChangeSet": bind(s.DescribeChangeSet),
			"ExecuteChangeSet": bind(s.ExecuteChangeSet), "DeleteChangeSet": bind(s.DeleteChangeSet), "ListChangeSets": bind(s.ListChangeSets),
			"DescribeStacks": bind(s.DescribeStacks), "ListStacks": bind(s.ListStacks), "DescribeStackEvents": bind(s.DescribeStackEvents),
			"DescribeStackResources": bind(s.DescribeStackResources), "DescribeStackResource": bind(s.DescribeStackResource),
			"ListStackResources": bind(s.ListStackResources), "GetTemplate": bind(s.GetTemplate), "ValidateTemplate": bind(s.ValidateTemplate),
			"GetTemplateSummary": bind(s.GetTemplateSummary), "ListExports": bind(s.ListExports), "ListImports": bind(s.ListImports),
		},
	}
}

// bind converts a typed operation to a wire operation.
func bind[In, Out any](operation func(context.Context, iam.Caller, *In) (*Out, error)) wire.Operation {
	return func(ctx context.Context, c *wire.Call) (any, error) {
		in := new(In)
		if err := c.Decode(in); err != nil {
			return nil, err
		}
		if name := reflect.ValueOf(in).Elem().FieldByName("StackName"); name.IsValid() {
			c.Resource = name.String()
		}
		out, err := operation(ctx, c.Caller, in)
		if err == nil && out == nil {
			// The SDKs expect an element such as ExecuteChangeSetResult even without members.
			out = new(Out)
		}
		return out, err
	}
}
