// Package cloudformation reads and changes CloudFormation stacks. Every change goes through a change set that was read first.
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

// Stacks is CloudFormation, in one account and region.
type Stacks struct {
	client *cloudformation.Client
	tags   *resourcegroupstaggingapi.Client
	// roleARN is the service role that CloudFormation acts as.
	roleARN string
	// Pause before a change set is looked at the first time: it takes seconds to be made. The next ones are twice as long each.
	Pause time.Duration
	// Described is who describes stacks, which is done most; the client of all other calls, unless somebody sets another.
	Described cloudformation.DescribeStacksAPIClient
}

// New returns the stacks of an account. tags is needed by Of only, roleARN by changes only.
func New(client *cloudformation.Client, tags *resourcegroupstaggingapi.Client, roleARN string) *Stacks {
	return &Stacks{client: client, tags: tags, roleARN: roleARN, Pause: 500 * time.Millisecond, Described: client}
}

// Describe reads one stack by its full name; an absent one has an empty status.
func (s *Stacks) Describe(ctx context.Context, stackName string) (stack.Deployed, error) {
	out, err := s.Described.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stackName})
	if absent(err) {
		return stack.Deployed{}, nil
	}
	if err != nil {
		return stack.Deployed{}, fmt.Errorf("describing stack %s: %w", stackName, err)
	}
	if len(out.Stacks) != 1 {
		return stack.Deployed{}, fmt.Errorf("describing stack %s: got %d stacks", stackName, len(out.Stacks))
	}
	return deployed(out.Stacks[0]), nil
}

// absent recognises "Stack with id … does not exist": CloudFormation answers ValidationError for it as for malformed
// calls, and has no code of its own.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
func absent(err error) bool {
	return fault.Code(err) == "ValidationError" && strings.Contains(err.Error(), "does not exist")
}

func deployed(in types.Stack) stack.Deployed {
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

// Of reads the stacks of a cluster: those expected by name, which is authoritative, and those that carry its tag besides,
// by the tag index, which lags by seconds; that is soon enough to remove what a spec no longer has. A stack in review is one:
// it must be deleted, too.
func (s *Stacks) Of(ctx context.Context, cluster string, expected []string) (map[string]stack.Deployed, error) {
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
			name, ours := strings.CutPrefix(names.StackOfARN(aws.ToString(resource.ResourceARN)), names.Stack(cluster, ""))
			if _, known := found[name]; known || !ours || !names.IsStack(name) {
				continue
			}
			if err := read(name); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// WhyFailed finds what made the last operation of a stack fail: the first failed resource that was not merely cancelled
// because of another one. What the rollback or deletion that came last could not do is told besides.
func (s *Stacks) WhyFailed(ctx context.Context, stackName string) (stack.Failure, error) {
	var first stack.Failure
	turned := false // whether the events are older than the last time that the stack was turned back
	// Events come newest first; the operation began where the stack itself became …_IN_PROGRESS by a user's doing.
	pages := cloudformation.NewDescribeStackEventsPaginator(s.client, &cloudformation.DescribeStackEventsInput{StackName: &stackName})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if absent(err) {
			return first, nil
		}
		if err != nil {
			return stack.Failure{}, fmt.Errorf("reading the events of stack %s: %w", stackName, err)
		}
		for _, event := range page.StackEvents {
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
				turned = turned || event.ResourceStatus == types.ResourceStatusUpdateRollbackInProgress
				if event.ResourceStatus == types.ResourceStatusUpdateRollbackInProgress ||
					event.ResourceStatus == types.ResourceStatusRollbackInProgress {
					first.Turned = aws.ToTime(event.Timestamp)
				}
			case strings.HasSuffix(string(event.ResourceStatus), "_FAILED") && !strings.HasPrefix(reason, "Resource creation cancelled") &&
				!strings.HasPrefix(reason, "Resource update cancelled"):
				first.Resource, first.Reason = id, reason
				known := slices.ContainsFunc(first.Stuck, func(s stack.Stuck) bool { return s.Resource == id })
				back := event.ResourceStatus == types.ResourceStatusUpdateFailed || event.ResourceStatus == types.ResourceStatusDeleteFailed
				if back && !turned && !known {
					first.Stuck = append(first.Stuck, stack.Stuck{
						Resource: id, Reason: reason, Type: aws.ToString(event.ResourceType), ID: aws.ToString(event.PhysicalResourceId),
					})
				}
			}
		}
	}
	return first, nil
}

// Began says whether the operation with a ClientRequestToken has begun on a stack: whether one of its events carries it.
func (s *Stacks) Began(ctx context.Context, stackName, token string) (began bool, err error) {
	err = s.events(ctx, stackName, func(event types.StackEvent) bool {
		began = aws.ToString(event.ClientRequestToken) == token
		return !began
	})
	return began, err
}

// Changing says whether a stack was being changed within the second that begins then.
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

// Since is when the creation or the update of a stack began that is the last one, also of one that is being rolled back.
func (s *Stacks) Since(ctx context.Context, stackName string) (since time.Time, err error) {
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

// own says whether an event is of the stack itself, not of one of its resources.
func own(event types.StackEvent) bool {
	return aws.ToString(event.PhysicalResourceId) == aws.ToString(event.StackId)
}

// events gives a stack's events to see, the newest first, until that returns false. A stack that is not there has none.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html
func (s *Stacks) events(ctx context.Context, stackName string, see func(types.StackEvent) bool) error {
	pages := cloudformation.NewDescribeStackEventsPaginator(s.client, &cloudformation.DescribeStackEventsInput{StackName: &stackName})
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

// ChangeSetPatience bounds the making of a change set; CloudFormation needs seconds, and sends no event about it.
const ChangeSetPatience = 80 * time.Second

// Prepare makes the change set of a change, instead of any that an earlier try left, and waits until it can be read.
// templateURL is where CloudFormation finds the template, parameters are resolved, token is the operation's.
func (s *Stacks) Prepare(ctx context.Context, change plan.Change, create bool, templateURL string, parameters map[string]string,
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
	// Sorted, so that a retry is the same request.
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

// PrepareParameters makes the change set of a change of nothing but parameters: the other parameters and the tags stay as they are
// deployed, but for names.TagPace, which becomes note: one that differs each time. templateURL is where the deployed template is
// found: drover may change stacks from none but its own, and so not from what CloudFormation has.
func (s *Stacks) PrepareParameters(ctx context.Context, change plan.Change, now stack.Deployed, templateURL string,
	parameters map[string]string, note, token string) (stack.ChangeSet, error) {
	in := &cloudformation.CreateChangeSetInput{
		StackName: &change.StackName, ChangeSetName: aws.String(changeSetName(token)), ChangeSetType: types.ChangeSetTypeUpdate,
		TemplateURL: &templateURL, RoleARN: &s.roleARN, ClientToken: &token,
	}
	tags := maps.Clone(now.Tags)
	tags[names.TagPace] = note
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	for _, key := range slices.Sorted(maps.Keys(now.Parameters)) {
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

// changeSetName is one of the operation that it is made for: what a holder of the lease has prepared, a later one neither executes nor
// takes away, nor the other way round. CloudFormation removes those that are left over with the next that is executed.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ExecuteChangeSet.html
func changeSetName(token string) string { return names.Prefix + names.SHA256([]byte(token))[:40] }

func (s *Stacks) prepare(ctx context.Context, in *cloudformation.CreateChangeSetInput) (stack.ChangeSet, error) {
	stackName, name := *in.StackName, *in.ChangeSetName
	_, err := s.client.CreateChangeSet(ctx, in)
	var exists *types.AlreadyExistsException
	if errors.As(err, &exists) {
		// One left by an earlier try may have been made from other outputs, and a failed one blocks its name.
		if err := s.deleteChangeSet(ctx, stackName, name); err != nil {
			return stack.ChangeSet{}, err
		}
		_, err = s.client.CreateChangeSet(ctx, in)
	}
	if err != nil {
		return stack.ChangeSet{}, fmt.Errorf("making a change set for stack %s: %w", stackName, err)
	}
	return s.read(ctx, stackName, name)
}

func (s *Stacks) deleteChangeSet(ctx context.Context, stackName, name string) error {
	_, err := s.client.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{StackName: &stackName, ChangeSetName: &name})
	if fault.Code(err) == "InvalidChangeSetStatus" { // it is still being made
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
				// The next try asks with the same token, and would be given the failed one.
				if err := s.deleteChangeSet(ctx, stackName, name); err != nil {
					return set, err
				}
				return set, &fault.Transient{Cause: fmt.Errorf("CloudFormation could not make change set %s of stack %s: %s", name, stackName, reason)}
			}
			return set, &fault.ChangeRefused{
				Cause: fmt.Errorf("CloudFormation refused the change of stack %s: %s", stackName, aws.ToString(out.StatusReason)),
			}
		}
	}
}

// passing recognises a change set that failed for what may be over the next time; CloudFormation has only words for that, too. Whatever
// else it says is about the template or the account, and would be said again.
var passing = regexp.MustCompile(`(?i)\b(rate exceeded|throttl\w+|internal ?(failure|error)|service ?unavailable|timed out)\b`)

// nothingToDo recognises a change set that failed because nothing differs; CloudFormation has only words for it.
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

// ContinueRollback tries a rollback that failed again, with every resource.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html
func (s *Stacks) ContinueRollback(ctx context.Context, stackName, token string) error {
	_, err := s.client.ContinueUpdateRollback(ctx, &cloudformation.ContinueUpdateRollbackInput{
		StackName: &stackName, ClientRequestToken: &token, RoleARN: &s.roleARN,
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

// Signal tells CloudFormation that an instance of a pool's group is what it should be, or will never be. A stack that waits for no signal
// is no error: instances also come when nobody changes the stack.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_SignalResource.html
func (s *Stacks) Signal(ctx context.Context, stackName, resource, instance string, success bool) error {
	is := types.ResourceSignalStatusSuccess
	if !success {
		is = types.ResourceSignalStatusFailure
	}
	_, err := s.client.SignalResource(ctx, &cloudformation.SignalResourceInput{
		StackName: &stackName, LogicalResourceId: &resource, UniqueId: &instance, Status: is,
	})
	// CloudFormation has only words for it.
	if fault.Code(err) == "ValidationError" && strings.Contains(err.Error(), "cannot be signaled") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("signalling %s of stack %s for %s: %w", resource, stackName, instance, err)
	}
	return nil
}
