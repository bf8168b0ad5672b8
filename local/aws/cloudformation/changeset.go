package cloudformation

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// Change sets.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-changesets.html

// changeSet of a stack. Service.mu guards it.
type changeSet struct {
	id, name, description string
	stack                 *stack
	create                bool
	status, reason        string
	execution             string
	created               time.Time
	// target is the requested revision. plain and detailed are its changes without and with property values.
	target          *revision
	plain, detailed []Change
	roleARN         string
	onStackFailure  string
	clientToken     string
	// request identifies retries of the same request.
	request string
}

// Statuses of change sets.
const (
	createPending    = "CREATE_PENDING"
	failed           = "FAILED"
	unavailable      = "UNAVAILABLE"
	available        = "AVAILABLE"
	executeComplete  = "EXECUTE_COMPLETE"
	changeSetWork    = 2 * time.Second
	nothingToChange  = "The submitted information didn't contain changes. Submit different information to create a change set."
	maxChangesPage   = 100
	changeSetOfStack = "changeSet"
)

// CreateChangeSetInput of CreateChangeSet.
type CreateChangeSetInput struct {
	StackName, ChangeSetName  string
	ChangeSetType             string
	Description               string
	TemplateBody, TemplateURL string
	UsePreviousTemplate       bool
	Parameters                []Parameter
	Tags                      []Tag
	Capabilities              []string
	RoleARN                   string
	OnStackFailure            string
	// IncludeNestedStacks has no effect, because no template may have a nested stack. ImportExistingResources does not import: a name that
	// exists fails the creation of its resource, as without the parameter.
	IncludeNestedStacks, ImportExistingResources bool
	ClientToken                                  string
	DeploymentConfig                             DeploymentConfig
}

// CreateChangeSetOutput of CreateChangeSet.
type CreateChangeSetOutput struct {
	Id, StackId string
}

// CreateChangeSet starts computing the changes of a change set. A new stack is created in REVIEW_IN_PROGRESS.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateChangeSet.html
func (s *Service) CreateChangeSet(ctx context.Context, caller iam.Caller, in *CreateChangeSetInput) (*CreateChangeSetOutput, error) {
	if err := checkName("changeSetName", in.ChangeSetName); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkToken(in.ClientToken), in.DeploymentConfig.check()); err != nil {
		return nil, err
	}
	asked := requestContext(in.RoleARN, in.TemplateURL, in.ChangeSetName, in.Tags)
	if err := s.authorize(caller, "CreateChangeSet", in.StackName, asked); err != nil {
		return nil, err
	}
	if err := s.authorizeTags(caller, in.StackName, in.Tags, asked); err != nil {
		return nil, err
	}
	if err := passRole(caller, in.RoleARN); err != nil {
		return nil, err
	}
	kind := cmp.Or(in.ChangeSetType, "UPDATE")
	onFailure := ""
	var err error
	switch {
	case kind == "IMPORT":
		return nil, unsupportedError("ChangeSetType IMPORT")
	case kind != "CREATE" && kind != "UPDATE":
		return nil, invalid("1 validation error detected: Value '%s' at 'changeSetType' failed to satisfy constraint: "+
			"Member must satisfy enum value set: [IMPORT, UPDATE, CREATE]", kind)
	case in.OnStackFailure != "":
		if onFailure, err = checkOnFailure("onStackFailure", in.OnStackFailure); err != nil {
			return nil, err
		}
		if kind == "UPDATE" && onFailure == "DELETE" {
			return nil, invalid("OnStackFailure DELETE can only be used with change sets of type CREATE")
		}
	}
	set := &changeSet{
		id: s.arn(changeSetOfStack, in.ChangeSetName, newID()), name: in.ChangeSetName, description: in.Description, create: kind == "CREATE",
		status: createPending, execution: unavailable, created: s.now(), roleARN: in.RoleARN, onStackFailure: onFailure,
		clientToken: in.ClientToken, request: fingerprint("CreateChangeSet", in),
	}
	s.mu.Lock()
	again, err := s.placeChangeSet(set, in.StackName, true)
	s.mu.Unlock()
	if err != nil || again != nil {
		return again, err
	}
	s.mu.Lock()
	st, current := set.stack, set.stack.current
	s.mu.Unlock()
	previous := current
	if set.create {
		previous = nil
	}
	set.target, err = s.revise(ctx, caller, st, previous, submission{
		TemplateBody: in.TemplateBody, TemplateURL: in.TemplateURL, UsePreviousTemplate: in.UsePreviousTemplate,
		Parameters: in.Parameters, Tags: in.Tags, Capabilities: in.Capabilities,
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if again, err := s.placeChangeSet(set, in.StackName, false); err != nil || again != nil {
		return again, err
	}
	turn := s.config.Clock.Ticket("cloudformation: change set of " + set.stack.name)
	s.work.Go(func() {
		turn()
		s.computeChangeSet(set)
	})
	return &CreateChangeSetOutput{Id: set.id, StackId: set.stack.id}, nil
}

// placeChangeSet finds or creates the stack of a change set and, unless try is set, adds the set to it. It returns the earlier change set
// if the request is a retry. The caller holds s.mu.
func (s *Service) placeChangeSet(set *changeSet, name string, try bool) (*CreateChangeSetOutput, error) {
	st := s.find(name)
	if st != nil && st.status == deleteComplete {
		st = nil
	}
	if st != nil {
		for _, other := range s.changeSets {
			if other.stack != st || other.name != set.name || other.execution == executeComplete {
				continue
			}
			if set.clientToken != "" && other.clientToken == set.clientToken && other.request == set.request {
				return &CreateChangeSetOutput{Id: other.id, StackId: st.id}, nil
			}
			return nil, alreadyExists("ChangeSet %s cannot be created due to a mismatch with existing attribute: a change set of this name exists",
				set.name)
		}
	}
	switch {
	case set.create && st != nil && st.status != reviewInProgress:
		return nil, invalid("Stack [%s] already exists and cannot be created again with the changeSet [%s].", st.name, set.name)
	case !set.create && st == nil:
		return nil, invalid("Stack [%s] does not exist", name)
	case !set.create:
		if err := st.checkUpdatable(); err != nil {
			return nil, err
		}
	case st == nil:
		if err := checkName("stackName", name); err != nil {
			return nil, err
		}
		if set.stack != nil && s.live[name] == nil {
			st = set.stack
		} else {
			st = s.draft(name)
		}
	}
	if set.stack != nil && set.stack != st {
		return nil, wire.Errorf("OperationInProgressException", "another request created or deleted stack [%s] at the same time", name)
	}
	set.stack = st
	if try {
		return nil, nil
	}
	if s.live[st.name] == nil {
		s.publish(st)
		s.setStack(st, reviewInProgress, userInitiated, "")
	}
	s.changeSets[set.id] = set
	return nil, nil
}

// computeChangeSet computes the changes of a set.
func (s *Service) computeChangeSet(set *changeSet) {
	s.mu.Lock()
	set.status = createInProgress
	s.mu.Unlock()
	if err := s.config.Clock.Work(s.ctx, changeSetWork); err != nil {
		return
	}
	plain, err := s.plan(set.stack, set.target, false)
	var detailed comparison
	if err == nil {
		detailed, err = s.plan(set.stack, set.target, true)
	}
	var reason string
	if s.config.ChangeSetFails != nil {
		reason = s.config.ChangeSetFails(set.stack.name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case reason != "":
		set.status, set.reason = failed, reason
	case err != nil:
		set.status, set.reason = failed, reasonOf(err)
	case !plain.effective && !set.create && set.stack.status != updateFailed:
		set.status, set.reason = failed, nothingToChange
	default:
		set.status, set.execution = createComplete, available
		set.plain, set.detailed = plain.changes, detailed.changes
	}
}

// ChangeSetInput names a change set.
type ChangeSetInput struct {
	ChangeSetName, StackName string
}

// findChangeSet returns a change set by ARN, or by name and stack. The caller holds s.mu.
func (s *Service) findChangeSet(name, stackName string) (*changeSet, error) {
	if strings.HasPrefix(name, "arn:") {
		if set := s.changeSets[name]; set != nil {
			return set, nil
		}
		return nil, wire.Errorf("ChangeSetNotFound", "ChangeSet [%s] does not exist", name)
	}
	if stackName == "" {
		return nil, invalid("StackName must be specified if ChangeSetName is not specified as an ARN.")
	}
	st, err := s.mustFind(stackName)
	if err != nil {
		return nil, err
	}
	for _, set := range s.changeSets {
		if set.stack == st && set.name == name && set.execution != executeComplete {
			return set, nil
		}
	}
	return nil, wire.Errorf("ChangeSetNotFound", "ChangeSet [%s] does not exist", name)
}

// authorizeChangeSet checks that the caller may perform the action on the change set's stack.
func (s *Service) authorizeChangeSet(caller iam.Caller, action, name, stackName string) error {
	if stackName == "" && strings.HasPrefix(name, "arn:") {
		s.mu.Lock()
		if set := s.changeSets[name]; set != nil {
			stackName = set.stack.id
		}
		s.mu.Unlock()
	}
	plain := name
	if _, after, isARN := strings.Cut(name, ":"+changeSetOfStack+"/"); isARN {
		plain, _, _ = strings.Cut(after, "/")
	}
	return s.authorize(caller, action, cmp.Or(stackName, name), requestContext("", "", plain, nil))
}

// DescribeChangeSetInput of DescribeChangeSet.
type DescribeChangeSetInput struct {
	ChangeSetName, StackName, NextToken string
	IncludePropertyValues               bool
}

// DescribeChangeSetOutput of DescribeChangeSet.
type DescribeChangeSetOutput struct {
	ChangeSetId, ChangeSetName string
	StackId, StackName         string
	Description                string `xml:",omitempty"`
	Parameters                 []Parameter
	Tags                       []Tag
	Capabilities               []string
	NotificationARNs           []string
	CreationTime               time.Time
	Status                     string
	StatusReason               string `xml:",omitempty"`
	ExecutionStatus            string
	OnStackFailure             string `xml:",omitempty"`
	IncludeNestedStacks        bool
	Changes                    []Change
	NextToken                  string `xml:",omitempty"`
}

// DescribeChangeSet returns a change set and, page by page, its changes.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeChangeSet.html
func (s *Service) DescribeChangeSet(_ context.Context, caller iam.Caller, in *DescribeChangeSetInput) (*DescribeChangeSetOutput, error) {
	if err := s.authorizeChangeSet(caller, "DescribeChangeSet", in.ChangeSetName, in.StackName); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set, err := s.findChangeSet(in.ChangeSetName, in.StackName)
	if err != nil {
		return nil, err
	}
	changes := set.plain
	if in.IncludePropertyValues {
		changes = set.detailed
	}
	changes, next, err := page(changes, in.NextToken, maxChangesPage)
	if err != nil {
		return nil, err
	}
	return &DescribeChangeSetOutput{
		ChangeSetId: set.id, ChangeSetName: set.name, StackId: set.stack.id, StackName: set.stack.name, Description: set.description,
		Parameters: set.target.describeParameters(), Tags: tagList(set.target.tags), Capabilities: set.target.capabilities,
		CreationTime: set.created, Status: set.status, StatusReason: set.reason, ExecutionStatus: set.execution,
		OnStackFailure: set.onStackFailure, Changes: changes, NextToken: next,
	}, nil
}

// ExecuteChangeSetInput of ExecuteChangeSet.
type ExecuteChangeSetInput struct {
	ChangeSetName, StackName, ClientRequestToken string
	DisableRollback                              *bool
	RetainExceptOnCreate                         bool
}

// ExecuteChangeSet starts the changes of a change set. The stack's other change sets are deleted.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ExecuteChangeSet.html
func (s *Service) ExecuteChangeSet(_ context.Context, caller iam.Caller, in *ExecuteChangeSetInput) (*struct{}, error) {
	if err := checkToken(in.ClientRequestToken); err != nil {
		return nil, err
	}
	if err := s.authorizeChangeSet(caller, "ExecuteChangeSet", in.ChangeSetName, in.StackName); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if st := s.executedWith(in); st != nil {
		again, err := st.isRepeated(in.ClientRequestToken, "ExecuteChangeSet", in)
		if again || err != nil {
			s.mu.Unlock()
			return nil, err
		}
	}
	set, err := s.findChangeSet(in.ChangeSetName, in.StackName)
	roleARN := ""
	if err == nil {
		roleARN = cmp.Or(set.roleARN, set.stack.roleARN)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	acting, err := s.actingCaller(caller, roleARN)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := set.stack
	if set.execution != available {
		return nil, wire.Errorf("InvalidChangeSetStatus", "ChangeSet [%s] cannot be executed in its current status of [%s]", set.id, set.status)
	}
	if !set.create {
		if err := st.checkUpdatable(); err != nil {
			return nil, err
		}
	} else if st.status != reviewInProgress {
		return nil, invalid("Stack:%s is in %s state and can not be created.", st.id, st.status)
	}
	onFailure := cmp.Or(set.onStackFailure, "ROLLBACK")
	if in.DisableRollback != nil {
		if set.onStackFailure != "" {
			return nil, invalid("DisableRollback cannot be used with a change set that has OnStackFailure")
		}
		if *in.DisableRollback {
			onFailure = "DO_NOTHING"
		}
	}
	if err := st.checkPaused(onFailure == "DO_NOTHING", "execute-change-set"); err != nil {
		return nil, err
	}
	st.remember(in.ClientRequestToken, "ExecuteChangeSet", in)
	set.execution = executeComplete
	for id, other := range s.changeSets {
		if other.stack == st && other != set && other.execution != executeComplete {
			delete(s.changeSets, id)
		}
	}
	st.changeSetID, st.roleARN, st.disableRollback = set.id, roleARN, onFailure == "DO_NOTHING"
	set.target.retainExceptOnCreate = in.RetainExceptOnCreate
	op := &operation{stack: st, token: in.ClientRequestToken, caller: acting, policy: st.policy, disableRollback: st.disableRollback}
	if set.create {
		st.current, st.onFailure = set.target, onFailure
		s.start(op, createInProgress, userInitiated, (*operation).runCreate)
	} else {
		s.startUpdate(op, set.target)
	}
	return nil, nil
}

// executedWith finds the stack of a change set, including one that is already executed. The caller holds s.mu.
func (s *Service) executedWith(in *ExecuteChangeSetInput) *stack {
	if in.StackName != "" {
		return s.find(in.StackName)
	}
	if set := s.changeSets[in.ChangeSetName]; set != nil {
		return set.stack
	}
	return nil
}

// DeleteChangeSet removes a change set. It succeeds if the change set does not exist.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DeleteChangeSet.html
func (s *Service) DeleteChangeSet(_ context.Context, caller iam.Caller, in *ChangeSetInput) (*struct{}, error) {
	if err := s.authorizeChangeSet(caller, "DeleteChangeSet", in.ChangeSetName, in.StackName); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set, err := s.findChangeSet(in.ChangeSetName, in.StackName)
	switch {
	case err != nil:
		if known, ok := err.(*wire.Error); ok && known.Code == "ChangeSetNotFound" { // made here
			return nil, nil
		}
		return nil, err
	case set.status == createPending || set.status == createInProgress || set.execution == executeComplete:
		return nil, wire.Errorf("InvalidChangeSetStatus", "ChangeSet [%s] cannot be deleted in its current status of [%s]", set.id, set.status)
	}
	delete(s.changeSets, set.id)
	return nil, nil
}

// ListChangeSetsOutput of ListChangeSets.
type ListChangeSetsOutput struct {
	Summaries []ChangeSetSummary
	NextToken string `xml:",omitempty"`
}

// ListChangeSets lists a stack's change sets that are not executed, newest first.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListChangeSets.html
func (s *Service) ListChangeSets(_ context.Context, caller iam.Caller, in *StackPageInput) (*ListChangeSetsOutput, error) {
	if err := s.authorize(caller, "ListChangeSets", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	var summaries []ChangeSetSummary
	for _, set := range s.changeSets {
		if set.stack != st || set.execution == executeComplete {
			continue
		}
		summaries = append(summaries, ChangeSetSummary{
			ChangeSetId: set.id, ChangeSetName: set.name, StackId: st.id, StackName: st.name, Description: set.description,
			CreationTime: set.created, Status: set.status, StatusReason: set.reason, ExecutionStatus: set.execution,
		})
	}
	slices.SortFunc(summaries, func(a, b ChangeSetSummary) int {
		return cmp.Or(b.CreationTime.Compare(a.CreationTime), strings.Compare(a.ChangeSetId, b.ChangeSetId))
	})
	list, next, err := page(summaries, in.NextToken, maxPage)
	return &ListChangeSetsOutput{Summaries: list, NextToken: next}, err
}
