package cloudformation

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/drover-run/drover/local/aws/cloudformation/template"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// The API operations that change stacks.

// CreateStackInput of CreateStack.
type CreateStackInput struct {
	StackName                       string
	TemplateBody, TemplateURL       string
	Parameters                      []Parameter
	Tags                            []Tag
	Capabilities                    []string
	RoleARN                         string
	OnFailure                       string
	DisableRollback                 *bool
	TimeoutInMinutes                int
	EnableTerminationProtection     bool
	RetainExceptOnCreate            bool
	StackPolicyBody, StackPolicyURL string
	ClientRequestToken              string
	DeploymentConfig                DeploymentConfig
}

// DeploymentConfig selects how an operation waits for resources. Only STANDARD is simulated.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DeploymentConfig.html
type DeploymentConfig struct {
	Mode            string
	DisableRollback *bool
}

// check rejects what is not simulated. STANDARD with DisableRollback is the caller's own parameter of that name.
func (c DeploymentConfig) check() error {
	switch {
	case c.Mode == "EXPRESS":
		return unsupportedError("DeploymentConfig with Mode EXPRESS")
	case c.Mode != "" && c.Mode != "STANDARD":
		return invalid("1 validation error detected: Value '%s' at 'deploymentConfig.mode' failed to satisfy constraint: Member must satisfy "+
			"enum value set: [STANDARD, EXPRESS]", c.Mode)
	case c.DisableRollback != nil:
		return unsupportedError("DeploymentConfig with DisableRollback")
	}
	return nil
}

// StackIDOutput has the ID of the stack of an operation.
type StackIDOutput struct {
	StackId string
}

var tokenPattern = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9]{0,127}$`)

func checkToken(token string) error {
	if token != "" && !tokenPattern.MatchString(token) {
		return invalid("1 validation error detected: Value '%s' at 'clientRequestToken' failed to satisfy constraint: "+
			"Member must satisfy regular expression pattern: [a-zA-Z0-9][-a-zA-Z0-9]*", token)
	}
	return nil
}

// isRepeated reports whether a request with this token was accepted before. It returns an error if the token was used for a different
// request. The caller holds s.mu.
func (st *stack) isRepeated(token, action string, input any) (bool, error) {
	used, found := st.tokens[token]
	switch {
	case token == "" || !found:
		return false, nil
	case used == fingerprint(action, input):
		return true, nil
	}
	return false, wire.Errorf("TokenAlreadyExistsException", "The client request token %s has already been used for this stack. "+
		"Retry the request with a different client request token", token)
}

// remember records the use of a token. The caller holds s.mu.
func (st *stack) remember(token, action string, input any) {
	if token != "" {
		st.tokens[token] = fingerprint(action, input)
	}
}

func fingerprint(action string, input any) string {
	encoded, _ := json.Marshal(input) // structs of strings always marshal
	return action + string(encoded)
}

// requestContext returns the condition keys of a request.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html
func requestContext(roleARN, templateURL, changeSetName string, tags []Tag) map[string]string {
	context := map[string]string{}
	for key, value := range map[string]string{
		"cloudformation:RoleArn": roleARN, "cloudformation:TemplateUrl": templateURL, "cloudformation:ChangeSetName": changeSetName,
	} {
		if value != "" {
			context[key] = value
		}
	}
	keys := make([]string, 0, len(tags))
	for _, tag := range tags {
		context["aws:RequestTag/"+tag.Key] = tag.Value
		keys = append(keys, tag.Key)
	}
	if len(keys) > 0 {
		context["aws:TagKeys"] = iam.Values(keys...)
	}
	return context
}

// authorizeTags checks the permissions to tag and, if tags are removed, to untag the stack. IAM checks them in addition to those of
// CreateChangeSet, CreateStack and UpdateStack. Without tags in the call, the stack keeps its tags.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html#awscloudformation-actions-as-permissions
func (s *Service) authorizeTags(caller iam.Caller, nameOrID string, tags []Tag, context map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	now, given := map[string]string{}, map[string]string{}
	s.mu.Lock()
	if st := s.find(nameOrID); st != nil {
		maps.Copy(now, st.current.tags)
	}
	s.mu.Unlock()
	for _, tag := range tags {
		given[tag.Key] = tag.Value
	}
	if maps.Equal(now, given) {
		return nil
	}
	if err := s.authorize(caller, "TagResource", nameOrID, context); err != nil {
		return err
	}
	for key := range now {
		if _, stays := given[key]; !stays {
			return s.authorize(caller, "UntagResource", nameOrID, context)
		}
	}
	return nil
}

func passRole(caller iam.Caller, roleARN string) error {
	if roleARN == "" {
		return nil
	}
	return caller.PassRole(roleARN, principal)
}

// draft returns a stack that is not visible yet.
func (s *Service) draft(name string) *stack {
	empty := &revision{template: &template.Template{}, imports: map[string]bool{}}
	return &stack{
		name: name, id: s.arn("stack", name, newID()), created: s.now(), current: empty,
		resources: map[string]*stackResource{}, tokens: map[string]string{},
	}
}

// publish makes a draft visible. The caller holds s.mu.
func (s *Service) publish(st *stack) {
	s.stacks = append(s.stacks, st)
	s.live[st.name] = st
}

// CreateStack starts creating a stack.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
func (s *Service) CreateStack(ctx context.Context, caller iam.Caller, in *CreateStackInput) (*StackIDOutput, error) {
	if err := checkName("stackName", in.StackName); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkToken(in.ClientRequestToken), in.DeploymentConfig.check()); err != nil {
		return nil, err
	}
	asked := requestContext(in.RoleARN, in.TemplateURL, "", in.Tags)
	if err := s.authorize(caller, "CreateStack", in.StackName, asked); err != nil {
		return nil, err
	}
	if err := s.authorizeTags(caller, in.StackName, in.Tags, asked); err != nil {
		return nil, err
	}
	if err := passRole(caller, in.RoleARN); err != nil {
		return nil, err
	}
	onFailure, err := in.onFailure()
	if err != nil {
		return nil, err
	}
	exists := func() (string, error) {
		st := s.live[in.StackName]
		if st == nil {
			return "", nil
		}
		again, err := st.isRepeated(in.ClientRequestToken, "CreateStack", in)
		if again || err != nil {
			return st.id, err
		}
		return "", alreadyExists("Stack [%s] already exists", in.StackName)
	}
	s.mu.Lock()
	id, err := exists()
	s.mu.Unlock()
	if id != "" || err != nil {
		return &StackIDOutput{id}, err
	}
	st := s.draft(in.StackName)
	st.roleARN, st.protected, st.timeout, st.onFailure = in.RoleARN, in.EnableTerminationProtection, in.TimeoutInMinutes, onFailure
	st.disableRollback = onFailure == "DO_NOTHING"
	if st.policy, err = s.requestPolicy(ctx, caller, "StackPolicy", in.StackPolicyBody, in.StackPolicyURL); err != nil {
		return nil, err
	}
	target, err := s.revise(ctx, caller, st, nil, submission{
		TemplateBody: in.TemplateBody, TemplateURL: in.TemplateURL, Parameters: in.Parameters, Tags: in.Tags,
		Capabilities: in.Capabilities, RetainExceptOnCreate: in.RetainExceptOnCreate,
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.plan(st, target, false); err != nil {
		return nil, err
	}
	acting, err := s.actingCaller(caller, in.RoleARN)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, err := exists(); id != "" || err != nil {
		return &StackIDOutput{id}, err
	}
	s.publish(st)
	st.current = target
	st.remember(in.ClientRequestToken, "CreateStack", in)
	s.start(&operation{stack: st, token: in.ClientRequestToken, caller: acting}, createInProgress, userInitiated, (*operation).runCreate)
	return &StackIDOutput{st.id}, nil
}

func (in *CreateStackInput) onFailure() (string, error) {
	if in.OnFailure != "" && in.DisableRollback != nil {
		return "", invalid("Only one of OnFailure and DisableRollback can be specified")
	}
	if in.DisableRollback != nil && *in.DisableRollback {
		return "DO_NOTHING", nil
	}
	return checkOnFailure("onFailure", in.OnFailure)
}

func checkOnFailure(member, value string) (string, error) {
	value = cmp.Or(value, "ROLLBACK")
	if !slices.Contains([]string{"ROLLBACK", "DELETE", "DO_NOTHING"}, value) {
		return "", invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must satisfy enum value set: "+
			"[DO_NOTHING, ROLLBACK, DELETE]", value, member)
	}
	return value, nil
}

// requestPolicy reads the stack policy of a request. It returns nil if the request has none.
func (s *Service) requestPolicy(ctx context.Context, caller iam.Caller, member, body, location string) (*stackPolicy, error) {
	if body != "" && location != "" {
		return nil, invalid("You cannot specify both %sBody and %sURL", member, member)
	}
	if location != "" {
		content, err := s.readURL(ctx, caller, member+"URL", location)
		if err != nil {
			return nil, err
		}
		body = string(content)
	}
	if body == "" {
		return nil, nil
	}
	return parsePolicy(body)
}

// UpdateStackInput of UpdateStack.
type UpdateStackInput struct {
	StackName                                               string
	TemplateBody, TemplateURL                               string
	UsePreviousTemplate                                     bool
	Parameters                                              []Parameter
	Tags                                                    []Tag
	Capabilities                                            []string
	RoleARN                                                 string
	DisableRollback                                         bool
	RetainExceptOnCreate                                    bool
	StackPolicyBody, StackPolicyURL                         string
	StackPolicyDuringUpdateBody, StackPolicyDuringUpdateURL string
	ClientRequestToken                                      string
	DeploymentConfig                                        DeploymentConfig
}

// updatable are the statuses from which a stack can be updated.
var updatable = []string{createComplete, updateComplete, updateRollbackComplete, updateFailed}

// checkUpdatable returns an error if the stack's status does not allow updates. The caller holds s.mu.
func (st *stack) checkUpdatable() error {
	if st.running != nil || !slices.Contains(updatable, st.status) {
		return invalid("Stack:%s is in %s state and can not be updated.", st.id, st.status)
	}
	return nil
}

// checkPaused refuses an operation with rollback on a stack whose failed update was not rolled back.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html says what is possible instead, and
// https://github.com/aws/aws-cli/issues/6368 has the error.
func (st *stack) checkPaused(disableRollback bool, api string) error {
	if st.status != updateFailed || disableRollback {
		return nil
	}
	return invalid("This stack is currently in a non-terminal [%s] state. To update the stack from this state, please use the "+
		"disable-rollback parameter with %s API. To rollback to the last known good state, use the rollback-stack API", st.status, api)
}

// UpdateStack starts updating a stack.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_UpdateStack.html
func (s *Service) UpdateStack(ctx context.Context, caller iam.Caller, in *UpdateStackInput) (*StackIDOutput, error) {
	if err := cmp.Or(checkToken(in.ClientRequestToken), in.DeploymentConfig.check()); err != nil {
		return nil, err
	}
	asked := requestContext(in.RoleARN, in.TemplateURL, "", in.Tags)
	if err := s.authorize(caller, "UpdateStack", in.StackName, asked); err != nil {
		return nil, err
	}
	if err := s.authorizeTags(caller, in.StackName, in.Tags, asked); err != nil {
		return nil, err
	}
	if err := passRole(caller, in.RoleARN); err != nil {
		return nil, err
	}
	s.mu.Lock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	again, err := st.isRepeated(in.ClientRequestToken, "UpdateStack", in)
	if err == nil && !again {
		err = cmp.Or(st.checkUpdatable(), st.checkPaused(in.DisableRollback, "update-stack"))
	}
	current, roleARN := st.current, cmp.Or(in.RoleARN, st.roleARN)
	s.mu.Unlock()
	if again || err != nil {
		return &StackIDOutput{st.id}, err
	}
	target, err := s.revise(ctx, caller, st, current, submission{
		TemplateBody: in.TemplateBody, TemplateURL: in.TemplateURL, UsePreviousTemplate: in.UsePreviousTemplate,
		Parameters: in.Parameters, Tags: in.Tags, Capabilities: in.Capabilities, RetainExceptOnCreate: in.RetainExceptOnCreate,
	})
	if err != nil {
		return nil, err
	}
	policy, err := s.requestPolicy(ctx, caller, "StackPolicy", in.StackPolicyBody, in.StackPolicyURL)
	if err != nil {
		return nil, err
	}
	during, err := s.requestPolicy(ctx, caller, "StackPolicyDuringUpdate", in.StackPolicyDuringUpdateBody, in.StackPolicyDuringUpdateURL)
	if err != nil {
		return nil, err
	}
	outcome, err := s.plan(st, target, false)
	if err != nil {
		return nil, err
	}
	acting, err := s.actingCaller(caller, roleARN)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := st.checkUpdatable(); err != nil {
		return nil, err
	}
	if !outcome.effective && st.status != updateFailed {
		return nil, invalid("No updates are to be performed.")
	}
	if policy != nil {
		st.policy = policy
	}
	st.remember(in.ClientRequestToken, "UpdateStack", in)
	op := &operation{stack: st, token: in.ClientRequestToken, caller: acting, policy: st.policy, disableRollback: in.DisableRollback}
	if during != nil {
		op.policy = during
	}
	st.roleARN, st.disableRollback = roleARN, in.DisableRollback
	s.startUpdate(op, target)
	return &StackIDOutput{st.id}, nil
}

// startUpdate starts changing a stack to a revision. The caller holds s.mu.
func (s *Service) startUpdate(op *operation, target *revision) {
	st := op.stack
	if st.status != updateFailed {
		st.previous = st.current
	}
	st.current = target
	// The stack's other change sets are obsolete.
	maps.DeleteFunc(s.changeSets, func(_ string, set *changeSet) bool { return set.stack == st && set.execution == available })
	s.start(op, updateInProgress, userInitiated, (*operation).runUpdate)
}

// DeleteStackInput of DeleteStack.
type DeleteStackInput struct {
	StackName          string
	RoleARN            string
	RetainResources    []string
	DeletionMode       string
	ClientRequestToken string
	DeploymentConfig   DeploymentConfig
}

// DeleteStack starts deleting a stack. It succeeds if the stack does not exist.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DeleteStack.html
func (s *Service) DeleteStack(_ context.Context, caller iam.Caller, in *DeleteStackInput) (*struct{}, error) {
	if err := cmp.Or(checkToken(in.ClientRequestToken), in.DeploymentConfig.check()); err != nil {
		return nil, err
	}
	if err := s.authorize(caller, "DeleteStack", in.StackName, requestContext(in.RoleARN, "", "", nil)); err != nil {
		return nil, err
	}
	if err := passRole(caller, in.RoleARN); err != nil {
		return nil, err
	}
	if in.DeletionMode != "" && in.DeletionMode != "STANDARD" && in.DeletionMode != "FORCE_DELETE_STACK" {
		return nil, invalid("1 validation error detected: Value '%s' at 'deletionMode' failed to satisfy constraint: "+
			"Member must satisfy enum value set: [STANDARD, FORCE_DELETE_STACK]", in.DeletionMode)
	}
	s.mu.Lock()
	st := s.find(in.StackName)
	roleARN := in.RoleARN
	if st != nil {
		roleARN = cmp.Or(roleARN, st.roleARN)
	}
	s.mu.Unlock()
	if st == nil {
		return nil, nil
	}
	acting, err := s.actingCaller(caller, roleARN)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if again, err := st.isRepeated(in.ClientRequestToken, "DeleteStack", in); again || err != nil {
		return nil, err
	}
	forced := in.DeletionMode == "FORCE_DELETE_STACK"
	interrupted := st.running
	switch {
	case st.status == deleteComplete || st.status == deleteInProgress:
		return nil, nil
	case st.protected:
		return nil, invalid("Stack [%s] cannot be deleted while TerminationProtection is enabled", st.name)
	case interrupted != nil && st.status != createInProgress && st.status != rollbackInProgress:
		return nil, invalid("Stack [%s] cannot be deleted while in status %s", st.name, st.status)
	case st.status != deleteFailed && (len(in.RetainResources) > 0 || forced):
		return nil, invalid("Invalid operation on stack [%s]. "+
			"RetainResources and DeletionMode FORCE_DELETE_STACK can only be used when the stack is in the DELETE_FAILED state", st.id)
	}
	skip := map[string]bool{}
	for _, name := range in.RetainResources {
		if st.resources[name] == nil {
			return nil, invalid("The following resources in RetainResources do not belong to the stack: [%s]", name)
		}
		skip[name] = true
	}
	if interrupted != nil {
		interrupted.abandoned = true
		if interrupted.cancel != nil {
			interrupted.cancel()
		}
	}
	st.remember(in.ClientRequestToken, "DeleteStack", in)
	st.deletionMode, st.roleARN = in.DeletionMode, roleARN
	op := &operation{stack: st, token: in.ClientRequestToken, caller: acting, skip: skip, force: forced}
	s.start(op, deleteInProgress, userInitiated, func(op *operation) { op.runDelete(interrupted) })
	return nil, nil
}
