package steps

// The experiments with Auto Scaling groups of small instances, which do nothing.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/drover-run/drover/cmd/verify/runner"
)

const (
	// smallType is the instance type of the groups, which has two vCPUs.
	smallType = "t3.micro"
	// groupTime limits each wait of an experiment, and settled is how long nothing may happen until that counts as an answer.
	groupTime, settleTime = 15 * time.Minute, 3 * time.Minute
	// hookTimeout is longer than an experiment. Its end deletes the hook.
	hookTimeout = 3600
	hookName    = "wait"
	groupID     = "Group"
)

// trial is an experiment with a group. Its stack is removed at the end.
type trial struct {
	*Target
	stackName, role string
	template        string
	group           string
	began           time.Time
}

// groupTemplate is a group. VERSION changes its launch template. POLICY is its update policy.
const groupTemplate = `
Conditions:
  Always: !Equals [a, a]
Resources:
  Template:
    Type: AWS::EC2::LaunchTemplate
    Properties:
      LaunchTemplateData:
        ImageId: IMAGE
        InstanceType: ` + smallType + `
        MetadataOptions: {HttpTokens: required}
        TagSpecifications:
          - {ResourceType: instance, Tags: [{Key: ` + tagKey + `, Value: SUFFIX}, {Key: version, Value: "VERSION"}]}
          - {ResourceType: volume, Tags: [{Key: ` + tagKey + `, Value: SUFFIX}]}
  Group:
    Type: AWS::AutoScaling::AutoScalingGroup
    UpdatePolicy: POLICY
    Properties:
      MinSize: "SIZE"
      MaxSize: "3"
      VPCZoneIdentifier: [SUBNET]
      LaunchTemplate: {LaunchTemplateId: !Ref Template, Version: !GetAtt Template.LatestVersionNumber}
      LifecycleHookSpecificationList: HOOKS
      Tags: [{Key: ` + tagKey + `, Value: SUFFIX, PropagateAtLaunch: true}]
Outputs:
  Group: {Value: !Ref Group}
`

// rollingPolicy replaces one instance after the other.
const rollingPolicy = `{AutoScalingRollingUpdate: {MaxBatchSize: 1, MinInstancesInService: 0, PauseTime: PAUSE, ` +
	`WaitOnResourceSignals: SIGNALS}}`

// terminateHook keeps an instance that terminates waiting.
var terminateHook = fmt.Sprintf("[{LifecycleHookName: %s, LifecycleTransition: \"autoscaling:EC2_INSTANCE_TERMINATING\", "+
	"HeartbeatTimeout: %d, DefaultResult: CONTINUE}]", hookName, hookTimeout)

// begin creates the group of an experiment, and then starts to replace its instances. It returns the old ones. prepare is called in
// between, unless it is nil.
func (t *Target) begin(ctx context.Context, name, role, policy, hooks string, size int, prepare func(*trial) error) (
	_ *trial, old []string, err error) {
	r := &trial{Target: t, stackName: t.ownPrefix() + name, role: role, template: strings.NewReplacer(
		"IMAGE", t.older.image, "SUFFIX", t.Suffix, "POLICY", policy, "SIZE", fmt.Sprint(size), "SUBNET", t.experiments["SubnetA"],
		"HOOKS", hooks).Replace(groupTemplate)}
	t.Meter.Start(name, time.Now(), smallPrice)
	if err := t.beginStack(ctx, name, strings.ReplaceAll(r.template, "VERSION", "1"), role); err != nil {
		return r, nil, err
	}
	if reason, err := t.waitForCreation(ctx, name); err != nil || reason != "" {
		return r, nil, errors.Join(err, fmt.Errorf("the group was not created: %s", reason))
	}
	stack, err := t.stack(ctx, r.stackName)
	if err != nil {
		return r, nil, err
	}
	for _, output := range stack.Outputs {
		r.group = aws.ToString(output.OutputValue)
	}
	members, err := r.members(ctx)
	for _, m := range members {
		old = append(old, aws.ToString(m.InstanceId))
	}
	if err == nil && len(old) != size {
		err = fmt.Errorf("the group has %d instances, not %d", len(old), size)
	}
	if err == nil && prepare != nil {
		err = prepare(r)
	}
	if err != nil {
		return r, old, err
	}
	r.began = time.Now()
	template := strings.ReplaceAll(r.template, "VERSION", "2")
	in := &cloudformation.UpdateStackInput{StackName: &r.stackName, TemplateBody: &template}
	if role != "" {
		in.RoleARN = &role
	}
	if _, err := cloudformation.NewFromConfig(t.cfg).UpdateStack(ctx, in); err != nil {
		return r, old, fmt.Errorf("updating stack %s: %w", r.stackName, err)
	}
	return r, old, nil
}

// end deletes the hook, which lets all waiting instances go, and removes the stack.
func (r *trial) end(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*groupTime)
	defer cancel()
	var failed error
	if r.group != "" {
		_, err := autoscaling.NewFromConfig(r.cfg).DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{
			AutoScalingGroupName: &r.group, LifecycleHookName: aws.String(hookName),
		})
		if err != nil && !strings.Contains(err.Error(), "ValidationError") { // there is no such hook
			failed = fmt.Errorf("deleting the hook of group %s: %w", r.group, err)
		}
	}
	_, err := r.stackResult(ctx, r.stackName)
	failed = errors.Join(failed, err, r.removeStack(ctx, r.stackName))
	if failed == nil {
		r.Meter.Stop(name, time.Now())
	}
	return failed
}

// members are the instances of the group.
func (r *trial) members(ctx context.Context) ([]autoscalingtypes.Instance, error) {
	out, err := autoscaling.NewFromConfig(r.cfg).DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{
		AutoScalingGroupNames: []string{r.group},
	})
	if err != nil {
		return nil, fmt.Errorf("reading group %s: %w", r.group, err)
	}
	if len(out.AutoScalingGroups) == 0 {
		return nil, fmt.Errorf("group %s does not exist", r.group)
	}
	return out.AutoScalingGroups[0].Instances, nil
}

// matching are the instances among some, or among all others, that match.
func matching(members []autoscalingtypes.Instance, ids []string, among bool, matches func(autoscalingtypes.LifecycleState) bool) (
	found []string) {
	for _, m := range members {
		if slices.Contains(ids, aws.ToString(m.InstanceId)) == among && matches(m.LifecycleState) {
			found = append(found, aws.ToString(m.InstanceId))
		}
	}
	return found
}

func isWaiting(s autoscalingtypes.LifecycleState) bool {
	return s == autoscalingtypes.LifecycleStateTerminatingWait
}

func isPending(s autoscalingtypes.LifecycleState) bool {
	return s == autoscalingtypes.LifecycleStatePendingWait
}

func isInService(s autoscalingtypes.LifecycleState) bool {
	return s == autoscalingtypes.LifecycleStateInService
}

// await polls the group until ready returns true, for a limited time. It returns false after that time.
func (r *trial) await(ctx context.Context, limit time.Duration, ready func([]autoscalingtypes.Instance) (bool, error)) (bool, error) {
	if r.Simulated && limit < groupTime {
		limit /= simulatedHaste
	}
	deadline, met := time.Now().Add(limit), false
	err := r.until(ctx, stackPoll, "the group of the experiment", func() (bool, error) {
		members, err := r.members(ctx)
		if err == nil {
			met, err = ready(members)
		}
		return met || time.Now().After(deadline), err
	})
	return met, err
}

// isUpdating reports whether the update of the stack runs.
func (r *trial) isUpdating(ctx context.Context) (bool, error) {
	stack, err := r.stack(ctx, r.stackName)
	return stack != nil && stack.StackStatus == types.StackStatusUpdateInProgress, err
}

// askTerminateHooks rolls two instances, one after the other. The first one waits at its termination hook.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (t *Target) askTerminateHooks(ctx context.Context, log *runner.Log) (yes bool, evidence string, err error) {
	const name = "terminate-hooks"
	policy := strings.NewReplacer("PAUSE", "PT0S", "SIGNALS", "false").Replace(rollingPolicy)
	r, old, err := t.begin(ctx, name, "", policy, terminateHook, 2, nil)
	defer func() { err = errors.Join(err, r.end(ctx, name)) }()
	if err != nil {
		return false, "", err
	}
	var first []string
	started, err := r.await(ctx, groupTime, func(all []autoscalingtypes.Instance) (bool, error) {
		first = matching(all, old, true, isWaiting)
		return len(first) > 0 && len(matching(all, old, false, isInService)) > 0, nil
	})
	if err != nil || !started {
		return false, "", errors.Join(err, errors.New("the first batch did not begin"))
	}
	log.Show("%s waits at its hook, and its replacement is in service", first[0])
	both := func(all []autoscalingtypes.Instance) (bool, error) {
		return len(matching(all, old, true, isWaiting)) == 2, nil
	}
	overtaken, err := r.await(ctx, settleTime, both)
	if err != nil {
		return false, "", err
	}
	if overtaken {
		return false, "the second batch began while the instance of the first one waited at its hook", nil
	}
	running, err := r.isUpdating(ctx)
	if err != nil || !running {
		return false, "", errors.Join(err, errors.New("the update ended before its second batch"))
	}
	_, err = autoscaling.NewFromConfig(r.cfg).CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: &r.group, LifecycleHookName: aws.String(hookName), InstanceId: &first[0],
		LifecycleActionResult: aws.String("CONTINUE"),
	})
	if err != nil {
		return false, "", fmt.Errorf("completing the hook of %s: %w", first[0], err)
	}
	followed, err := r.await(ctx, groupTime, func(all []autoscalingtypes.Instance) (bool, error) {
		return len(matching(all, slices.DeleteFunc(slices.Clone(old), func(id string) bool { return id == first[0] }), true, isWaiting)) > 0, nil
	})
	if err != nil || !followed {
		return false, "", errors.Join(err, errors.New("the second batch did not begin"))
	}
	return true, "the second batch began only after the hook of the first one was completed", nil
}

// askOtherSignals replaces one instance, adds another instance to the group, and sends the signal of that one only.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (t *Target) askOtherSignals(ctx context.Context, log *runner.Log) (yes bool, evidence string, err error) {
	const name = "other-signals"
	policy := strings.NewReplacer("PAUSE", "PT30M", "SIGNALS", "true").Replace(rollingPolicy)
	r, old, err := t.begin(ctx, name, "", policy, "[]", 1, nil)
	defer func() { err = errors.Join(err, r.end(ctx, name)) }()
	if err != nil {
		return false, "", err
	}
	var batch, added []string
	started, err := r.await(ctx, groupTime, func(all []autoscalingtypes.Instance) (bool, error) {
		batch = matching(all, old, false, isInService)
		return len(batch) == 1, nil
	})
	if err != nil || !started {
		return false, "", errors.Join(err, errors.New("the batch did not begin"))
	}
	defer func() { err = errors.Join(err, r.signal(ctx, batch[0])) }() // so that the update ends
	client := autoscaling.NewFromConfig(r.cfg)
	_, err = client.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: &r.group, DesiredCapacity: aws.Int32(2),
	})
	if err != nil {
		return false, "", fmt.Errorf("adding an instance to group %s: %w", r.group, err)
	}
	grown, err := r.await(ctx, groupTime, func(all []autoscalingtypes.Instance) (bool, error) {
		added = matching(all, append(slices.Clone(old), batch...), false, isInService)
		return len(added) == 1, nil
	})
	if err != nil || !grown {
		return false, "", errors.Join(err, errors.New("no instance was added to the group"))
	}
	log.Show("%s is the batch, and %s was added: signalling %s", batch[0], added[0], added[0])
	if err := r.signal(ctx, added[0]); err != nil {
		return false, "", err
	}
	ended := func([]autoscalingtypes.Instance) (bool, error) {
		running, err := r.isUpdating(ctx)
		return !running, err
	}
	counted, err := r.await(ctx, settleTime, ended)
	if err != nil {
		return false, "", err
	}
	if counted {
		return false, "the update ended with the signal of an instance that a user had added to the group", nil
	}
	if err := r.signal(ctx, batch[0]); err != nil {
		return false, "", err
	}
	if counted, err = r.await(ctx, groupTime, ended); err != nil || !counted {
		return false, "", errors.Join(err, errors.New("the update did not end with the signal of its own batch either"))
	}
	return true, "the update ended only with the signal of its own batch", nil
}

// signal sends the success signal of an instance, unless the update has ended.
func (r *trial) signal(ctx context.Context, instance string) error {
	running, err := r.isUpdating(ctx)
	if err != nil || !running {
		return err
	}
	_, err = cloudformation.NewFromConfig(r.cfg).SignalResource(ctx, &cloudformation.SignalResourceInput{
		StackName: &r.stackName, LogicalResourceId: aws.String(groupID), UniqueId: &instance, Status: types.ResourceSignalStatusSuccess,
	})
	if err != nil && !strings.Contains(err.Error(), "cannot be signaled") {
		return fmt.Errorf("signalling %s: %w", instance, err)
	}
	return nil
}

// askRefreshRollback cancels the update of a group during its instance refresh. The policy is within a condition, as in drover's templates.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (t *Target) askRefreshRollback(ctx context.Context, log *runner.Log) (yes bool, evidence string, err error) {
	const name, action = "refresh-rollback", "autoscaling:RollbackInstanceRefresh"
	const policy = `!If [Always, {AutoScalingInstanceRefresh: {Strategy: Rolling, ` +
		`Preferences: {MinHealthyPercentage: 0, SkipMatching: true}}}, !Ref "AWS::NoValue"]`
	r, old, err := t.begin(ctx, name, t.experiments["RefreshRollback"], policy, "[]", 1, func(r *trial) error {
		// The new instance waits, so that the refresh lasts.
		_, err := autoscaling.NewFromConfig(r.cfg).PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{
			AutoScalingGroupName: &r.group, LifecycleHookName: aws.String(hookName), HeartbeatTimeout: aws.Int32(hookTimeout),
			LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"), DefaultResult: aws.String("CONTINUE"),
		})
		if err != nil {
			return fmt.Errorf("adding a hook to group %s: %w", r.group, err)
		}
		return nil
	})
	defer func() { err = errors.Join(err, r.end(ctx, name)) }()
	if err != nil {
		return false, "", err
	}
	started, err := r.await(ctx, groupTime, func(all []autoscalingtypes.Instance) (bool, error) {
		return len(matching(all, old, false, isPending)) > 0, nil
	})
	if err != nil || !started {
		return false, "", errors.Join(err, errors.New("the instance refresh did not begin"))
	}
	log.Show("the instance refresh replaces %s: cancelling the update", old[0])
	_, err = cloudformation.NewFromConfig(r.cfg).CancelUpdateStack(ctx, &cloudformation.CancelUpdateStackInput{StackName: &r.stackName})
	if err != nil {
		return false, "", fmt.Errorf("cancelling the update of %s: %w", r.stackName, err)
	}
	_, err = autoscaling.NewFromConfig(r.cfg).DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{
		AutoScalingGroupName: &r.group, LifecycleHookName: aws.String(hookName),
	})
	if err != nil {
		return false, "", fmt.Errorf("deleting the hook of group %s: %w", r.group, err)
	}
	stack, err := r.stackResult(ctx, r.stackName)
	if err != nil || stack == nil {
		return false, "", errors.Join(err, errors.New("the stack does not exist"))
	}
	reasons, err := r.reasonsSince(ctx, r.stackName, r.began)
	if err != nil {
		return false, "", err
	}
	for _, reason := range reasons {
		if isDenied(reason, action) {
			return false, reason, nil
		}
	}
	if stack.StackStatus == types.StackStatusUpdateRollbackComplete {
		return true, "the rollback of a cancelled update ended with a role that may not call " + action, nil
	}
	return false, "", fmt.Errorf("the experiment failed for another reason: the stack is %s: %s", stack.StackStatus,
		strings.Join(reasons, "; "))
}

// askOtherInstances changes the launch template of a group that has no update policy. Then it adds the policy, and changes only the maximum
// size of the group.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (t *Target) askOtherInstances(ctx context.Context, log *runner.Log) (yes bool, evidence string, err error) {
	const name, without = "other-instances", `{AutoScalingRollingUpdate: !If [Always, !Ref "AWS::NoValue", `
	rolling := strings.NewReplacer("PAUSE", "PT0S", "SIGNALS", "false").Replace(rollingPolicy)
	policy := strings.Replace(rolling, "{AutoScalingRollingUpdate: ", without, 1)
	policy = strings.TrimSuffix(policy, "}") + "]}"
	r, old, err := t.begin(ctx, name, "", policy, "[]", 1, nil)
	defer func() { err = errors.Join(err, r.end(ctx, name)) }()
	if err != nil {
		return false, "", err
	}
	stays, err := r.keeps(ctx, old)
	if err != nil || !stays {
		return false, "", errors.Join(err, errors.New("the update without an update policy replaced an instance"))
	}
	log.Show("%s has an earlier version of the launch template: adding the update policy and changing the maximum size", old[0])
	template := strings.NewReplacer(policy, rolling, "VERSION", "2", `MaxSize: "3"`, `MaxSize: "4"`).Replace(r.template)
	_, err = cloudformation.NewFromConfig(r.cfg).UpdateStack(ctx, &cloudformation.UpdateStackInput{
		StackName: &r.stackName, TemplateBody: &template,
	})
	if err != nil {
		return false, "", fmt.Errorf("updating stack %s: %w", r.stackName, err)
	}
	if stays, err = r.keeps(ctx, old); err != nil {
		return false, "", err
	}
	if stays {
		return false, "the update left " + old[0] + " in service", nil
	}
	return true, "the update replaced " + old[0], nil
}

// keeps waits for the end of an update of the stack, and reports whether the instances are still in service.
func (r *trial) keeps(ctx context.Context, instances []string) (bool, error) {
	stack, err := r.stackResult(ctx, r.stackName)
	if err != nil {
		return false, err
	}
	if stack == nil || stack.StackStatus != types.StackStatusUpdateComplete {
		return false, fmt.Errorf("the update of %s failed: %+v", r.stackName, stack)
	}
	members, err := r.members(ctx)
	return len(matching(members, instances, true, isInService)) == len(instances), err
}
