package cloudformation

import (
	"context"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
)

// The API operations that protect stacks: stack policies and termination protection.

// SetStackPolicyInput of SetStackPolicy.
type SetStackPolicyInput struct {
	StackName, StackPolicyBody, StackPolicyURL string
}

// SetStackPolicy protects resources of a stack from updates.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_SetStackPolicy.html
func (s *Service) SetStackPolicy(ctx context.Context, caller iam.Caller, in *SetStackPolicyInput) (*struct{}, error) {
	if err := s.authorize(caller, "SetStackPolicy", in.StackName, nil); err != nil {
		return nil, err
	}
	policy, err := s.requestPolicy(ctx, caller, "StackPolicy", in.StackPolicyBody, in.StackPolicyURL)
	if err != nil {
		return nil, err
	}
	if policy == nil {
		return nil, invalid("You must specify either StackPolicyBody or StackPolicyURL")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	st.policy = policy
	return nil, nil
}

// GetStackPolicyOutput of GetStackPolicy.
type GetStackPolicyOutput struct {
	StackPolicyBody string `xml:",omitempty"`
}

// GetStackPolicy returns the stack policy, or nothing if there is none.
func (s *Service) GetStackPolicy(_ context.Context, caller iam.Caller, in *StackInput) (*GetStackPolicyOutput, error) {
	if err := s.authorize(caller, "GetStackPolicy", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	if st.policy == nil {
		return &GetStackPolicyOutput{}, nil
	}
	return &GetStackPolicyOutput{st.policy.body}, nil
}

// UpdateTerminationProtectionInput of UpdateTerminationProtection.
type UpdateTerminationProtectionInput struct {
	StackName                   string
	EnableTerminationProtection bool
}

// UpdateTerminationProtection enables or disables the termination protection of a stack.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_UpdateTerminationProtection.html
func (s *Service) UpdateTerminationProtection(_ context.Context, caller iam.Caller, in *UpdateTerminationProtectionInput) (*StackIDOutput,
	error) {
	if err := s.authorize(caller, "UpdateTerminationProtection", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(st.status, "DELETE_") && st.status != deleteFailed {
		return nil, invalid("Stack [%s] is in %s state and its termination protection cannot be changed", st.name, st.status)
	}
	st.protected = in.EnableTerminationProtection
	return &StackIDOutput{st.id}, nil
}
