package cloudformation

import (
	"cmp"
	"context"

	"github.com/drover-run/drover/local/aws/iam"
)

// The API operations that roll back a stack: cancelling an update, continuing a rollback, and requesting one.

// CancelUpdateStackInput of CancelUpdateStack.
type CancelUpdateStackInput struct {
	StackName, ClientRequestToken string
}

// CancelUpdateStack stops an update and rolls it back.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CancelUpdateStack.html
func (s *Service) CancelUpdateStack(_ context.Context, caller iam.Caller, in *CancelUpdateStackInput) (*struct{}, error) {
	if err := checkToken(in.ClientRequestToken); err != nil {
		return nil, err
	}
	if err := s.authorize(caller, "CancelUpdateStack", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	if again, err := st.isRepeated(in.ClientRequestToken, "CancelUpdateStack", in); again || err != nil {
		return nil, err
	}
	if st.status != updateInProgress || st.running == nil {
		return nil, invalid("CancelUpdateStack cannot be called from current stack status")
	}
	st.remember(in.ClientRequestToken, "CancelUpdateStack", in)
	st.running.cancelled = true
	if in.ClientRequestToken != "" {
		st.running.token = in.ClientRequestToken
	}
	if st.running.cancel != nil {
		st.running.cancel()
	}
	return nil, nil
}

// ContinueUpdateRollbackInput of ContinueUpdateRollback.
type ContinueUpdateRollbackInput struct {
	StackName, RoleARN, ClientRequestToken string
	ResourcesToSkip                        []string
}

// ContinueUpdateRollback retries a failed rollback, and may skip resources.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html
func (s *Service) ContinueUpdateRollback(_ context.Context, caller iam.Caller, in *ContinueUpdateRollbackInput) (*struct{}, error) {
	_, err := s.rollBack(caller, "ContinueUpdateRollback", in, in.StackName, in.RoleARN, in.ClientRequestToken,
		func(st *stack) (*operation, error) {
			if st.status != updateRollbackFailed {
				return nil, invalid("Stack:%s is in %s state and can not continue rolling back.", st.id, st.status)
			}
			skip := map[string]bool{}
			for _, name := range in.ResourcesToSkip {
				if r := st.resources[name]; r == nil || r.status != updateFailed {
					return nil, invalid("The following resources to skip are not in the UPDATE_FAILED state: [%s]", name)
				}
				skip[name] = true
			}
			return &operation{skip: skip}, nil
		})
	return nil, err
}

// RollbackStackInput of RollbackStack.
type RollbackStackInput struct {
	StackName, RoleARN, ClientRequestToken string
	RetainExceptOnCreate                   bool
	DeploymentConfig                       DeploymentConfig
}

// RollbackStack rolls back a stack whose failed operation was not rolled back automatically.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_RollbackStack.html
func (s *Service) RollbackStack(_ context.Context, caller iam.Caller, in *RollbackStackInput) (*StackIDOutput, error) {
	if err := in.DeploymentConfig.check(); err != nil {
		return nil, err
	}
	id, err := s.rollBack(caller, "RollbackStack", in, in.StackName, in.RoleARN, in.ClientRequestToken, func(st *stack) (*operation, error) {
		if st.status != createFailed && st.status != updateFailed {
			return nil, invalid("Stack:%s is in %s state and can not be rolled back.", st.id, st.status)
		}
		st.current.retainExceptOnCreate = in.RetainExceptOnCreate
		return &operation{}, nil
	})
	return &StackIDOutput{id}, err
}

// rollBack starts a rollback that a user requested. prepare checks the stack under the lock.
func (s *Service) rollBack(caller iam.Caller, action string, in any, name, roleARN, token string,
	prepare func(*stack) (*operation, error)) (string, error) {
	if err := checkToken(token); err != nil {
		return "", err
	}
	if err := s.authorize(caller, action, name, requestContext(roleARN, "", "", nil)); err != nil {
		return "", err
	}
	if err := passRole(caller, roleARN); err != nil {
		return "", err
	}
	s.mu.Lock()
	st, err := s.mustFind(name)
	if err == nil {
		roleARN = cmp.Or(roleARN, st.roleARN)
	}
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	acting, err := s.actingCaller(caller, roleARN)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if again, err := st.isRepeated(token, action, in); again || err != nil {
		return st.id, err
	}
	op, err := prepare(st)
	if err != nil {
		return "", err
	}
	st.remember(token, action, in)
	st.roleARN = roleARN
	op.stack, op.token, op.caller = st, token, acting
	if st.status == createFailed {
		s.start(op, rollbackInProgress, userInitiated, func(op *operation) { op.deleteAll(true, rollbackComplete, rollbackFailed) })
	} else {
		s.start(op, updateRollbackInProgress, userInitiated, (*operation).runUpdateRollback)
	}
	return st.id, nil
}
