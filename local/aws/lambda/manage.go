package lambda

// Creation, update and deletion of functions, shared by the API and templates.

import (
	"context"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

func (s *Service) create(ctx context.Context, caller iam.Caller, c settings, from code) (*function, error) {
	if err := caller.Authorize("lambda:CreateFunction", s.arn(c.FunctionName), nil); err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	if err := s.checkRole(caller, c); err != nil {
		return nil, err
	}
	u, err := s.fetch(ctx, caller, from)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.functions[c.FunctionName] != nil {
		return nil, conflict("Function already exist: %s", c.FunctionName)
	}
	f := &function{service: s, arn: s.arn(c.FunctionName), settings: c, code: u}
	f.invalidate()
	s.functions[c.FunctionName] = f
	return f, nil
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
func (s *Service) fetch(ctx context.Context, caller iam.Caller, from code) (unpacked, error) {
	archive := from.ZipFile
	switch {
	case from.ImageUri != "":
		return unpacked{}, wire.Unsupported("lambda", "code from an image")
	case from.S3ObjectVersion != "":
		return unpacked{}, wire.Unsupported("lambda", "S3ObjectVersion")
	case from.S3Bucket != "":
		if s.config.Objects == nil {
			return unpacked{}, invalid("There is no S3 to read s3://%s/%s from", from.S3Bucket, from.S3Key)
		}
		var err error
		if archive, err = s.config.Objects.ReadObject(ctx, caller, from.S3Bucket, from.S3Key); err != nil {
			return unpacked{}, invalid("Error occurred while GetObject. S3 Error: %v", err)
		}
	case archive == nil:
		return unpacked{}, invalid("Please provide a source for function code.")
	}
	return unpack(s.config.Dir, archive)
}

func (s *Service) updateSettings(caller iam.Caller, name string, change func(*settings) error) (*function, error) {
	if err := caller.Authorize("lambda:UpdateFunctionConfiguration", s.arn(name), nil); err != nil {
		return nil, err
	}
	f, err := s.find(name)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.settings.clone()
	if err := change(&c); err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	if c.Role != f.settings.Role {
		if err := s.checkRole(caller, c); err != nil {
			return nil, err
		}
	}
	f.settings = c
	f.invalidate()
	return f, nil
}

func (s *Service) updateCode(ctx context.Context, caller iam.Caller, name string, from code) (*function, error) {
	if err := caller.Authorize("lambda:UpdateFunctionCode", s.arn(name), nil); err != nil {
		return nil, err
	}
	f, err := s.find(name)
	if err != nil {
		return nil, err
	}
	u, err := s.fetch(ctx, caller, from)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.code = u
	f.invalidate()
	return f, nil
}

func (s *Service) remove(caller iam.Caller, name string) error {
	if err := caller.Authorize("lambda:DeleteFunction", s.arn(name), nil); err != nil {
		return err
	}
	f, err := s.find(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.functions, name)
	s.mu.Unlock()
	f.retire()
	return nil
}

// setConcurrency reserves concurrency. nil removes the reservation.
func (s *Service) setConcurrency(caller iam.Caller, name string, n *int) error {
	action := "lambda:PutFunctionConcurrency"
	if n == nil {
		action = "lambda:DeleteFunctionConcurrency"
	} else if *n < 0 {
		return invalid("ReservedConcurrentExecutions %d is negative", *n)
	}
	if err := caller.Authorize(action, s.arn(name), nil); err != nil {
		return err
	}
	f, err := s.find(name)
	if err != nil {
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
	if err := caller.Authorize(action, s.arn(name), nil); err != nil {
		return err
	}
	f, err := s.find(name)
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
	RevisionID                                                              string `json:"RevisionId"`
	CodeSize                                                                int
}

func (f *function) configuration() configuration {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.settings.clone()
	c.Tags = nil // the API returns tags outside the configuration
	return configuration{
		settings: c, FunctionArn: f.arn, CodeSha256: f.code.sha256, CodeSize: f.code.size, Version: "$LATEST",
		LastModified: f.modified.Format("2006-01-02T15:04:05.000-0700"), State: "Active", LastUpdateStatus: "Successful", RevisionID: f.revision,
	}
}
