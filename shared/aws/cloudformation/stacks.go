// Package cloudformation reads and changes CloudFormation stacks. It changes a stack only through a change set, which the caller reads
// first.
package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
)

// Stacks are the CloudFormation stacks of one account and region.
type Stacks struct {
	client client
	tags   *resourcegroupstaggingapi.Client
	// roleARN is the service role that CloudFormation assumes.
	roleARN string
	// Pause before the first read of a new change set, which takes seconds to create. Each further pause is twice as long.
	Pause time.Duration
}

// New returns the stacks of an account. Only Of and Owners need tags. Only changes need roleARN.
func New(client *cloudformation.Client, tags *resourcegroupstaggingapi.Client, roleARN string) *Stacks {
	return &Stacks{client: newClient(client), tags: tags, roleARN: roleARN, Pause: 500 * time.Millisecond}
}

// Describe reads one stack by its full name. A stack that does not exist has an empty status.
func (s *Stacks) Describe(ctx context.Context, stackName string) (stack.Deployed, error) {
	out, err := s.client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stackName})
	if absent(err) {
		return stack.Deployed{}, nil
	}
	if err != nil {
		return stack.Deployed{}, fmt.Errorf("describing stack %s: %w", stackName, err)
	}
	if len(out.Stacks) != 1 {
		return stack.Deployed{}, fmt.Errorf("describing stack %s: got %d stacks", stackName, len(out.Stacks))
	}
	return deployedStack(out.Stacks[0]), nil
}

// absent recognizes "Stack with id … does not exist". CloudFormation returns ValidationError for it, as for malformed calls, and has no
// code of its own.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
func absent(err error) bool {
	return fault.Code(err) == "ValidationError" && strings.Contains(err.Error(), "does not exist")
}

func deployedStack(in types.Stack) stack.Deployed {
	d := stack.Deployed{
		ID: aws.ToString(in.StackId), Status: string(in.StackStatus), StatusReason: aws.ToString(in.StackStatusReason),
		Tags: map[string]string{}, Outputs: map[string]string{}, Parameters: map[string]string{},
		TerminationProtection: aws.ToBool(in.EnableTerminationProtection),
	}
	if in.DriftInformation != nil {
		d.Drifted = in.DriftInformation.StackDriftStatus == types.StackDriftStatusDrifted
	}
	for _, tag := range in.Tags {
		d.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	for _, output := range in.Outputs {
		d.Outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	for _, parameter := range in.Parameters {
		d.Parameters[aws.ToString(parameter.ParameterKey)] = aws.ToString(parameter.ParameterValue)
	}
	d.Name = d.Tags[names.TagStack]
	return d
}

// ListCluster reads the stacks of a cluster, by two ways. It describes the expected names, which is authoritative. It
// also finds stacks by the cluster's tag, whose index lags by seconds. That is soon enough to remove stacks that a
// spec no longer has. Stacks in review are included, because they must be deleted too.
func (s *Stacks) ListCluster(ctx context.Context, cluster string, expected []string) (map[string]stack.Deployed, error) {
	found := map[string]stack.Deployed{}
	read := func(name string) error {
		described, err := s.Describe(ctx, names.Stack(cluster, name))
		if err == nil && (!stack.Absent(described.Status) || described.Status == stack.InReview) {
			described.Name = name
			found[name] = described
		}
		return err
	}
	for _, name := range expected {
		if err := read(name); err != nil {
			return nil, err
		}
	}
	pages := resourcegroupstaggingapi.NewGetResourcesPaginator(s.tags, &resourcegroupstaggingapi.GetResourcesInput{
		ResourceTypeFilters: []string{"cloudformation:stack"},
		TagFilters:          []tagging.TagFilter{{Key: aws.String(names.TagCluster), Values: []string{cluster}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding the stacks of %s by tag: %w", cluster, err)
		}
		for _, resource := range page.ResourceTagMappingList {
			name, hasPrefix := strings.CutPrefix(names.StackOfARN(aws.ToString(resource.ResourceARN)), names.Stack(cluster, ""))
			if _, ok := found[name]; ok || !hasPrefix || !names.IsStack(name) {
				continue
			}
			if err := read(name); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// WhyFailed returns why the last operation of a stack failed: the first failed resource whose failure is not a consequence of another
// one. It also returns the resources at which the last rollback or deletion stopped.
func (s *Stacks) WhyFailed(ctx context.Context, stackName string) (stack.Failure, error) {
	var first stack.Failure
	rolledBack := false // whether the events are older than the last start of a rollback
	// Events come newest first. A user's request changes the stack itself to CREATE_, UPDATE_ or DELETE_IN_PROGRESS: there the operation
	// began.
	in := &cloudformation.DescribeStackEventsInput{StackName: &stackName}
	pages := cloudformation.NewDescribeStackEventsPaginator(s.client.DescribeStackEvents, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if absent(err) {
			return first, nil
		}
		if err != nil {
			return stack.Failure{}, fmt.Errorf("reading the events of stack %s: %w", stackName, err)
		}
		for _, event := range page.StackEvents {
			first.StackARN = aws.ToString(event.StackId)
			id, reason := aws.ToString(event.LogicalResourceId), aws.ToString(event.ResourceStatusReason)
			itself := aws.ToString(event.PhysicalResourceId) == aws.ToString(event.StackId)
			switch {
			case itself && (event.ResourceStatus == types.ResourceStatusCreateInProgress ||
				event.ResourceStatus == types.ResourceStatusUpdateInProgress ||
				event.ResourceStatus == types.ResourceStatusDeleteInProgress):
				first.Began = aws.ToTime(event.Timestamp)
				return first, nil
			case itself:
				if first.Reason == "" {
					first.Reason = reason
				}
				rolledBack = rolledBack || event.ResourceStatus == types.ResourceStatusUpdateRollbackInProgress
				if event.ResourceStatus == types.ResourceStatusUpdateRollbackInProgress ||
					event.ResourceStatus == types.ResourceStatusRollbackInProgress {
					first.RollbackBegan = aws.ToTime(event.Timestamp)
				}
			case strings.HasSuffix(string(event.ResourceStatus), "_FAILED") && !strings.HasPrefix(reason, "Resource creation cancelled") &&
				!strings.HasPrefix(reason, "Resource update cancelled"):
				first.Resource, first.Reason = id, reason
				listed := slices.ContainsFunc(first.Stuck, func(s stack.Stuck) bool { return s.Resource == id })
				stuck := event.ResourceStatus == types.ResourceStatusUpdateFailed || event.ResourceStatus == types.ResourceStatusDeleteFailed
				if stuck && !rolledBack && !listed {
					first.Stuck = append(first.Stuck, stack.Stuck{
						Resource: id, Reason: reason, Type: aws.ToString(event.ResourceType), ID: aws.ToString(event.PhysicalResourceId),
					})
				}
			}
		}
	}
	return first, nil
}

// HasBegun reports whether the operation with a ClientRequestToken has begun on a stack. Its events carry the token.
func (s *Stacks) HasBegun(ctx context.Context, stackName, token string) (began bool, err error) {
	err = s.events(ctx, stackName, func(event types.StackEvent) bool {
		began = aws.ToString(event.ClientRequestToken) == token
		return !began
	})
	return began, err
}

// Changing reports whether an operation was in flight on a stack within the second that begins at then.
func (s *Stacks) Changing(ctx context.Context, stackName string, then time.Time) (changing bool, err error) {
	err = s.events(ctx, stackName, func(event types.StackEvent) bool {
		at := aws.ToTime(event.Timestamp)
		if !own(event) || !at.Before(then.Add(time.Second)) {
			return true
		}
		changing = stack.InProgress(string(event.ResourceStatus))
		return !changing && !at.Before(then)
	})
	return changing, err
}

// LastChangeBegan returns when the last creation or update of a stack began, even if it is being rolled back.
func (s *Stacks) LastChangeBegan(ctx context.Context, stackName string) (since time.Time, err error) {
	err = s.events(ctx, stackName, func(event types.StackEvent) bool {
		began := event.ResourceStatus == types.ResourceStatusCreateInProgress || event.ResourceStatus == types.ResourceStatusUpdateInProgress
		if !own(event) || !began {
			return true
		}
		since = aws.ToTime(event.Timestamp)
		return false
	})
	return since, err
}

// own reports whether an event is about the stack itself, not about a resource of it.
func own(event types.StackEvent) bool {
	return aws.ToString(event.PhysicalResourceId) == aws.ToString(event.StackId)
}

// events calls see with a stack's events, the newest first, until see returns false. A stack that does not exist has none.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html
func (s *Stacks) events(ctx context.Context, stackName string, see func(types.StackEvent) bool) error {
	in := &cloudformation.DescribeStackEventsInput{StackName: &stackName}
	pages := cloudformation.NewDescribeStackEventsPaginator(s.client.DescribeStackEvents, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if absent(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the events of stack %s: %w", stackName, err)
		}
		for _, event := range page.StackEvents {
			if !see(event) {
				return nil
			}
		}
	}
	return nil
}

// ChangeSetPatience bounds the creation of a change set. CloudFormation needs seconds and sends no event about it.
const ChangeSetPatience = 80 * time.Second

// CreateChangeSet creates the change set of a change and waits until it can be read. It replaces a change set that an earlier attempt left.
// templateURL is where CloudFormation reads the template. parameters are resolved. token identifies the operation.
func (s *Stacks) CreateChangeSet(ctx context.Context, change plan.Change, create bool, templateURL string, parameters map[string]string,
	token string) (stack.ChangeSet, error) {
	name := changeSetName(token)
	kind := types.ChangeSetTypeUpdate
	if create {
		kind = types.ChangeSetTypeCreate
	}
	in := &cloudformation.CreateChangeSetInput{
		StackName: &change.StackName, ChangeSetName: &name, ChangeSetType: kind, TemplateURL: &templateURL,
		RoleARN: &s.roleARN, ClientToken: &token,
	}
	// Sorted, so that a retry sends the same request.
	for _, key := range slices.Sorted(maps.Keys(change.Tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(change.Tags[key])})
	}
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		in.Parameters = append(in.Parameters, types.Parameter{ParameterKey: aws.String(key), ParameterValue: aws.String(parameters[key])})
	}
	for _, capability := range change.Capabilities {
		in.Capabilities = append(in.Capabilities, types.Capability(capability))
	}
	return s.prepare(ctx, in)
}

// PrepareParameters creates a change set that changes only parameters. All other parameters and the tags stay as deployed. Only
// names.TagPace gets the value note, which must differ each time. templateURL is where CloudFormation reads the deployed template:
// drover's role may use only templates from drover's bucket, so not the stack's own copy.
func (s *Stacks) PrepareParameters(ctx context.Context, change plan.Change, deployed stack.Deployed, templateURL string,
	parameters map[string]string, note, token string) (stack.ChangeSet, error) {
	in := &cloudformation.CreateChangeSetInput{
		StackName: &change.StackName, ChangeSetName: aws.String(changeSetName(token)), ChangeSetType: types.ChangeSetTypeUpdate,
		TemplateURL: &templateURL, RoleARN: &s.roleARN, ClientToken: &token,
	}
	tags := maps.Clone(deployed.Tags)
	tags[names.TagPace] = note
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	for _, key := range slices.Sorted(maps.Keys(deployed.Parameters)) {
		parameter := types.Parameter{ParameterKey: aws.String(key)}
		if value, ok := parameters[key]; ok {
			parameter.ParameterValue = &value
		} else {
			parameter.UsePreviousValue = aws.Bool(true)
		}
		in.Parameters = append(in.Parameters, parameter)
	}
	return s.prepare(ctx, in)
}

// changeSetName derives the name from the operation's token. So the holder of a lease never executes or replaces the change set of an
// earlier holder, and an earlier holder never touches a later one. CloudFormation deletes unused change sets when one is executed.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ExecuteChangeSet.html
func changeSetName(token string) string { return names.Prefix + names.SHA256([]byte(token))[:40] }

func (s *Stacks) prepare(ctx context.Context, in *cloudformation.CreateChangeSetInput) (stack.ChangeSet, error) {
	stackName, name := *in.StackName, *in.ChangeSetName
	_, err := s.client.CreateChangeSet(ctx, in)
	var exists *types.AlreadyExistsException
	if errors.As(err, &exists) {
		// A change set that an earlier attempt left may be built from older outputs. A failed one blocks its name.
		if err := s.deleteChangeSet(ctx, stackName, name); err != nil {
			return stack.ChangeSet{}, err
		}
		_, err = s.client.CreateChangeSet(ctx, in)
	}
	if err != nil {
		return stack.ChangeSet{}, fmt.Errorf("creating a change set for stack %s: %w", stackName, err)
	}
	return s.read(ctx, stackName, name)
}

func (s *Stacks) deleteChangeSet(ctx context.Context, stackName, name string) error {
	_, err := s.client.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{StackName: &stackName, ChangeSetName: &name})
	if fault.Code(err) == "InvalidChangeSetStatus" { // still being created
		return &fault.Transient{Cause: fmt.Errorf("deleting change set %s of stack %s: %w", name, stackName, err)}
	}
	if err != nil && !absent(err) && fault.Code(err) != "ChangeSetNotFound" {
		return fmt.Errorf("deleting change set %s of stack %s: %w", name, stackName, err)
	}
	return nil
}

// read waits for a change set and reads all its pages.
func (s *Stacks) read(ctx context.Context, stackName, name string) (stack.ChangeSet, error) {
	set := stack.ChangeSet{Name: name}
	ctx, cancel := context.WithTimeout(ctx, ChangeSetPatience)
	defer cancel()
	var next *string
	status := types.ChangeSetStatusCreatePending
	for pause := s.Pause; ; {
		if next == nil {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return set, &fault.Transient{
					Cause: fmt.Errorf("change set %s of stack %s is still %s after %s", name, stackName, status, ChangeSetPatience),
				}
			}
			pause = min(2*pause, 4*time.Second)
		}
		out, err := s.client.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{
			StackName: &stackName, ChangeSetName: &name, NextToken: next,
		})
		if err != nil {
			return set, fmt.Errorf("reading change set %s of stack %s: %w", name, stackName, err)
		}
		switch status = out.Status; status {
		case types.ChangeSetStatusCreateComplete:
			for _, change := range out.Changes {
				if change.ResourceChange != nil {
					set.Changes = append(set.Changes, resourceChange(change.ResourceChange))
				}
			}
			if next = out.NextToken; next == nil {
				return set, nil
			}
		case types.ChangeSetStatusFailed:
			if nothingToDo(aws.ToString(out.StatusReason)) {
				set.Empty = true
				return set, s.deleteChangeSet(ctx, stackName, name)
			}
			if reason := aws.ToString(out.StatusReason); passing.MatchString(reason) {
				// A retry uses the same token and would get the failed change set.
				if err := s.deleteChangeSet(ctx, stackName, name); err != nil {
					return set, err
				}
				return set, &fault.Transient{
					Cause: fmt.Errorf("CloudFormation could not create change set %s of stack %s: %s", name, stackName, reason),
				}
			}
			return set, &fault.ChangeRefused{
				Cause: fmt.Errorf("CloudFormation refused the change of stack %s: %s", stackName, aws.ToString(out.StatusReason)),
			}
		}
	}
}

// passing recognizes a change set that failed for a temporary reason. CloudFormation has only texts for that. Every other text is about
// the template or the account, and a retry would not help.
var passing = regexp.MustCompile(`(?i)\b(rate exceeded|throttl\w+|internal ?(failure|error)|service ?unavailable|timed out)\b`)

// nothingToDo recognizes a change set that failed because nothing differs. CloudFormation has only texts for that.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-changesets-create.html
func nothingToDo(reason string) bool {
	return strings.HasPrefix(reason, "The submitted information didn't contain changes.") ||
		strings.HasPrefix(reason, "No updates are to be performed")
}

// resourceChange drops details without a target: they change no property.
func resourceChange(in *types.ResourceChange) stack.ResourceChange {
	change := stack.ResourceChange{
		LogicalID: aws.ToString(in.LogicalResourceId), Type: aws.ToString(in.ResourceType),
		Action: stack.Action(in.Action), Replacement: stack.Replacement(in.Replacement),
	}
	for _, detail := range in.Details {
		if detail.Target == nil {
			continue
		}
		change.Details = append(change.Details, stack.ChangeDetail{
			Property: aws.ToString(detail.Target.Name), Recreation: stack.Recreation(detail.Target.RequiresRecreation),
			FromAttribute: detail.Evaluation == types.EvaluationTypeDynamic && detail.ChangeSource == types.ChangeSourceResourceAttribute,
			Cause:         aws.ToString(detail.CausingEntity),
		})
	}
	return change
}

// Execute executes a change set. CloudFormation echoes the token in every event of the operation.
func (s *Stacks) Execute(ctx context.Context, change plan.Change, set stack.ChangeSet, token string) error {
	_, err := s.client.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{
		StackName: &change.StackName, ChangeSetName: &set.Name, ClientRequestToken: &token,
	})
	if err != nil {
		return fmt.Errorf("executing change set %s of stack %s: %w", set.Name, change.StackName, err)
	}
	return nil
}

// Delete deletes a stack.
func (s *Stacks) Delete(ctx context.Context, stackName, token string) error {
	_, err := s.client.DeleteStack(ctx, &cloudformation.DeleteStackInput{
		StackName: &stackName, ClientRequestToken: &token, RoleARN: &s.roleARN,
	})
	if err != nil {
		return fmt.Errorf("deleting stack %s: %w", stackName, err)
	}
	return nil
}

// ContinueRollback retries a failed rollback with all resources but those to skip, by logical id.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html
func (s *Stacks) ContinueRollback(ctx context.Context, stackName, token string, skip []string) error {
	_, err := s.client.ContinueUpdateRollback(ctx, &cloudformation.ContinueUpdateRollbackInput{
		StackName: &stackName, ClientRequestToken: &token, RoleARN: &s.roleARN, ResourcesToSkip: skip,
	})
	if err != nil {
		return fmt.Errorf("continuing the rollback of stack %s: %w", stackName, err)
	}
	return nil
}

// Protect turns a stack's termination protection on or off.
func (s *Stacks) Protect(ctx context.Context, stackName string, on bool) error {
	_, err := s.client.UpdateTerminationProtection(ctx, &cloudformation.UpdateTerminationProtectionInput{
		StackName: &stackName, EnableTerminationProtection: &on,
	})
	if err != nil {
		return fmt.Errorf("setting termination protection of stack %s to %t: %w", stackName, on, err)
	}
	return nil
}

// Signal reports to CloudFormation that an instance of a pool's group is ready, or that it never will be. It is no error if the stack
// waits for no signal: instances are also launched without a stack operation.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_SignalResource.html
func (s *Stacks) Signal(ctx context.Context, stackName, resource, instance string, success bool) error {
	status := types.ResourceSignalStatusSuccess
	if !success {
		status = types.ResourceSignalStatusFailure
	}
	_, err := s.client.SignalResource(ctx, &cloudformation.SignalResourceInput{
		StackName: &stackName, LogicalResourceId: &resource, UniqueId: &instance, Status: status,
	})
	// CloudFormation has only a text for it.
	if fault.Code(err) == "ValidationError" && strings.Contains(err.Error(), "cannot be signaled") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("signalling %s of stack %s for %s: %w", resource, stackName, instance, err)
	}
	return nil
}
