package lambda

// Creation, update and deletion of functions, shared by the API and templates.

import (
	"context"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

func (s *Service) create(ctx context.Context, caller iam.Caller, c settings, from code) (*function, error) {
	if err := caller.Authorize("lambda:CreateFunction", s.arn(c.FunctionName), creationContext(c)); err != nil {
		return nil, err
	}
	if err := s.mayTag(caller, c.FunctionName, c.Tags); err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	if err := s.checkRole(caller, c); err != nil {
		return nil, err
	}
	if err := s.placeInVPC(caller, &c); err != nil {
		return nil, err
	}
	u, err := s.fetch(ctx, caller, from)
	if err != nil {
		return nil, err
	}
	f := &function{service: s, arn: s.arn(c.FunctionName), settings: c, code: u, state: stateActive, update: updateSuccessful}
	if c.VPCConfig != nil {
		f.state = statePending
	}
	f.invalidate()
	s.mu.Lock()
	exists := s.functions[c.FunctionName] != nil
	if !exists {
		s.functions[c.FunctionName] = f
	}
	s.mu.Unlock()
	if exists {
		return nil, conflict("Function already exist: %s", c.FunctionName)
	}
	if c.VPCConfig != nil {
		s.settle(f, c.FunctionName, c.VPCConfig)
	}
	return f, nil
}

// creationContext returns the condition keys of CreateFunction.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_awslambda.html
func creationContext(c settings) map[string]string {
	context := iam.RequestTags(c.Tags)
	if v := c.VPCConfig; v != nil {
		context["lambda:SubnetIds"], context["lambda:SecurityGroupIds"] = iam.Values(v.SubnetIDs...), iam.Values(v.SecurityGroupIDs...)
	}
	return context
}

// checkRole verifies that the caller may pass the role and that Lambda may assume it.
func (s *Service) checkRole(caller iam.Caller, c settings) error {
	if err := caller.PassRole(c.Role, "lambda.amazonaws.com"); err != nil {
		return err
	}
	if _, _, err := s.config.Roles.AssumeRoleAs(c.Role, sessionName(c.FunctionName), "lambda.amazonaws.com"); err != nil {
		return invalid("The role defined for the function cannot be assumed by Lambda.")
	}
	return nil
}

// fetch reads a package as the caller and unpacks it.
func (s *Service) fetch(ctx context.Context, caller iam.Caller, from code) (unpackedPackage, error) {
	archive := from.ZipFile
	switch {
	case from.ImageUri != "":
		return unpackedPackage{}, wire.Unsupported("lambda", "code from an image")
	case from.S3ObjectVersion != "":
		return unpackedPackage{}, wire.Unsupported("lambda", "S3ObjectVersion")
	case from.S3Bucket != "":
		if s.config.Objects == nil {
			return unpackedPackage{}, invalid("There is no S3 to read s3://%s/%s from", from.S3Bucket, from.S3Key)
		}
		var err error
		if archive, err = s.config.Objects.ReadObject(ctx, caller, from.S3Bucket, from.S3Key); err != nil {
			return unpackedPackage{}, invalid("Error occurred while GetObject. S3 Error: %v", err)
		}
	case archive == nil:
		return unpackedPackage{}, invalid("Please provide a source for function code.")
	}
	if s.config.Run != nil { // nothing runs the package
		return digest("", archive), nil
	}
	return unpack(s.config.Dir, archive)
}

func (s *Service) updateSettings(caller iam.Caller, name string, change func(*settings) error) (*function, error) {
	f, err := s.mayManage(caller, "lambda:UpdateFunctionConfiguration", name)
	if err != nil {
		return nil, err
	}
	moved, c, err := f.configure(caller, change)
	if err == nil && moved {
		s.settle(f, c.FunctionName, c.VPCConfig)
	}
	return f, err
}

// configure applies a change. moved reports whether the function needs other network interfaces.
func (f *function) configure(caller iam.Caller, change func(*settings) error) (moved bool, c settings, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(true); err != nil {
		return false, c, err
	}
	c = f.settings.clone()
	if err := change(&c); err != nil {
		return false, c, err
	}
	if err := c.complete(); err != nil {
		return false, c, err
	}
	if c.Role != f.settings.Role {
		if err := f.service.checkRole(caller, c); err != nil {
			return false, c, err
		}
	}
	moved = !c.VPCConfig.equal(f.settings.VPCConfig)
	if moved {
		if err := f.service.placeInVPC(caller, &c); err != nil {
			return false, c, err
		}
		f.update = updateInProgress
	}
	f.settings = c
	f.invalidate()
	return moved, c, nil
}

// mayManage authorizes an action on a function and finds it.
func (s *Service) mayManage(caller iam.Caller, action, name string) (*function, error) {
	if err := caller.Authorize(action, s.arn(name), s.functionContext(name)); err != nil {
		return nil, err
	}
	return s.find(name)
}

func (s *Service) updateCode(ctx context.Context, caller iam.Caller, name string, from code) (*function, error) {
	f, err := s.mayManage(caller, "lambda:UpdateFunctionCode", name)
	if err != nil {
		return nil, err
	}
	u, err := s.fetch(ctx, caller, from)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(true); err != nil {
		return nil, err
	}
	f.code = u
	f.invalidate()
	return f, nil
}

func (s *Service) remove(caller iam.Caller, name string) error {
	f, err := s.mayManage(caller, "lambda:DeleteFunction", name)
	if err != nil {
		return err
	}
	f.retire()
	f.mu.Lock()
	f.removed = true
	had := f.vpc
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.functions, name)
	s.leaveLocked(had.slots())
	s.changes.Announce()
	return s.Concurrency.Reserve(name, nil)
}

// setConcurrency reserves concurrency. nil removes the reservation.
func (s *Service) setConcurrency(caller iam.Caller, name string, n *int) error {
	action := "lambda:PutFunctionConcurrency"
	if n == nil {
		action = "lambda:DeleteFunctionConcurrency"
	} else if *n < 0 {
		return invalid("ReservedConcurrentExecutions %d is negative", *n)
	}
	f, err := s.mayManage(caller, action, name)
	if err != nil {
		return err
	}
	if err := s.Concurrency.Reserve(name, n); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settings.ReservedInstances = n
	return nil
}

// setEventConfig replaces the event invoke configuration. nil removes it.
func (s *Service) setEventConfig(caller iam.Caller, name string, c *eventConfig) error {
	action := "lambda:DeleteFunctionEventInvokeConfig"
	if c != nil {
		action = "lambda:PutFunctionEventInvokeConfig"
		if err := c.check(); err != nil {
			return err
		}
		c.modified = s.config.Clock.Now()
	}
	f, err := s.mayManage(caller, action, name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retries = c
	return nil
}

// configuration of a function, as the API returns it.
type configuration struct {
	settings
	FunctionArn, CodeSha256, Version, LastModified, State, LastUpdateStatus string
	StateReason                                                             string `json:",omitempty"`
	StateReasonCode                                                         string `json:",omitempty"`
	LastUpdateStatusReason                                                  string `json:",omitempty"`
	LastUpdateStatusReasonCode                                              string `json:",omitempty"`
	RevisionID                                                              string `json:"RevisionId"`
	CodeSize                                                                int
}

func (f *function) configuration() configuration {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.settings.clone()
	c.Tags = nil // the API returns tags outside the configuration
	out := configuration{
		settings: c, FunctionArn: f.arn, CodeSha256: f.code.sha256, CodeSize: f.code.size, Version: "$LATEST",
		LastModified: f.modified.Format("2006-01-02T15:04:05.000-0700"), State: f.state, LastUpdateStatus: f.update, RevisionID: f.revision,
	}
	switch {
	case f.state == statePending:
		out.StateReason, out.StateReasonCode = "The function is being created.", "Creating"
	case f.state == stateFailed:
		out.StateReason, out.StateReasonCode = f.reason, f.reasonCode
	case f.update == updateFailed:
		out.LastUpdateStatusReason, out.LastUpdateStatusReasonCode = f.reason, f.reasonCode
	}
	return out
}
