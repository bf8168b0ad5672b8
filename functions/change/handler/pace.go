package handler

// The pace of a roll: stack parameters that depend on the group's desired capacity at the time of the change. drover deploys them before
// the change itself, because a rollback uses the parameters that were deployed before the update.

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/roll"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// mayReplaceNodes reports whether a change set may replace a pool's nodes. It does if it changes the launch template, the instance types
// or the subnets.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func mayReplaceNodes(changes []stack.ResourceChange) bool {
	return slices.ContainsFunc(changes, func(change stack.ResourceChange) bool {
		switch change.Type {
		case "AWS::EC2::LaunchTemplate":
			return true
		case "AWS::AutoScaling::AutoScalingGroup":
			return slices.ContainsFunc(change.Details, func(detail stack.ChangeDetail) bool {
				return slices.Contains([]string{"MixedInstancesPolicy", "VPCZoneIdentifier"}, detail.Property)
			})
		}
		return false
	})
}

// An autoscaler that keeps changing the desired capacity must not delay a roll forever.
const (
	// maxCapacityChanges is how often one call creates the change set again because the desired capacity has changed.
	maxCapacityChanges = 3
	// maxPaceChanges is how often one change deploys the pace alone. Each takes about a minute. Then the roll begins, and a rollback uses the
	// last deployed pace. After an earlier rollback, the first two are needed.
	maxPaceChanges = 10
)

// MaxChangeSets is how many change sets one call may create: the first one, one for each change of the desired capacity, and one for the
// pace alone or for settling the stack.
const MaxChangeSets = 1 + maxCapacityChanges + 1

// applyPace sets the parameters of a change that replaces nodes, for the group's present desired capacity. later reports whether the task
// must run again first:
//
//  1. Other nodes of the pool are still being drained. The call changes nothing.
//  2. The parameters that a rollback needs are not deployed. They are changed alone.
//
// Otherwise applyPace returns the change set to execute. Creating one takes up to a minute, so applyPace reads the group again afterwards.
func (c *call) applyPace(ctx context.Context, deployed stack.Deployed, parameters map[string]string,
	set stack.ChangeSet) (_ stack.ChangeSet, later bool, err error) {
	pace := c.change.Pace
	for capacityChanges := 0; ; capacityChanges++ {
		group, _, err := c.Groups.Describe(ctx, pace.Group)
		if err != nil {
			return set, false, err
		}
		want := replacementPace(pace, group, deployed, group.Desired)
		waits, err := c.waitForDrains(ctx, rollMessage, group, deployed.Status, c.isUpdate() && roll.AddsFirst(group, want))
		if err != nil || waits {
			return set, waits, err
		}
		logging.From(ctx).Info("replacing nodes", "stack", c.change.StackName, "desired", group.Desired, "pace", want)
		if rollback := c.rollbackPace(group, deployed, want); !hasAll(deployed.Parameters, rollback) && c.paceChanges(deployed) < maxPaceChanges {
			// An earlier rollback left another version of the launch template. Changing the pace would replace nodes with it, and a rollback
			// of that would lack the capacity that the change adds. The change replaces the nodes anyway. A rollback replaces those of another
			// attempt, if there are any.
			if !stack.Settled(deployed.Status) && mayReplaceNodes(set.Changes) {
				rollback[render.ReplaceNodes] = "false"
			}
			started, err := c.changePace(ctx, deployed, rollback)
			if err != nil || started {
				return set, started, err
			}
		}
		if hasAll(parameters, want) || capacityChanges == maxCapacityChanges {
			return set, false, nil // the change set has these parameters
		}
		maps.Copy(parameters, want)
		if set, err = c.prepare(ctx, deployed, parameters, c.tokenOf(parameters)); err != nil {
			return set, false, err
		}
	}
}

// isInPlace reports whether a change leaves the nodes of a pool as they are. The last update may have failed:
//
//  1. It replaced nodes. If its rollback did not restore all nodes, the change must replace them.
//  2. It was in place, without an update policy. The nodes are as before.
//  3. It switched the update policy off. The nodes are as before, and the policy is on: as after a rollback that restored all nodes.
func (c *call) isInPlace(ctx context.Context, deployed stack.Deployed, parameters map[string]string) (bool, error) {
	switch {
	case c.change.Nodes == nil || plan.NodesEffect(c.change.Nodes, deployed, parameters) != status.InPlace:
		return false, nil
	case stack.Settled(deployed.Status), deployed.Parameters[render.ReplaceNodes] == "false":
		return true, nil
	}
	group, _, err := c.Groups.Describe(ctx, c.change.Pace.Group)
	if err != nil {
		return false, err
	}
	now := deployed.Outputs[render.LaunchTemplateVersion]
	current, _ := strconv.Atoi(now)
	other := func(i pool.Instance) bool {
		version, err := strconv.Atoi(i.TemplateVersion)
		return err != nil || version > current || !group.IsCurrent(i, deployed.Outputs[render.NodesSince])
	}
	return group.TemplateVersion == now && !slices.ContainsFunc(group.Instances, other), nil
}

// keepNodes makes sure that a change in place replaces no node, and that its rollback does not either. Both would replace nodes by the
// update policy. A rollback uses the policy that was deployed before. So the policy is switched off alone first. It stays off until a
// change replaces nodes, because any update of a group may replace the instances with another version of the launch template:
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
// The same update fixes NodesSince: a rollback adds a version of the launch template, and may compute the output again.
func (c *call) keepNodes(ctx context.Context, deployed stack.Deployed, parameters map[string]string,
	set stack.ChangeSet) (_ stack.ChangeSet, later bool, err error) {
	if later, err := c.waitBeforeShrinking(ctx, deployed, parameters); err != nil || later {
		return set, later, err
	}
	if parameters[render.ReplaceNodes] == "false" {
		return set, false, nil
	}
	off := map[string]string{render.ReplaceNodes: "false", render.NodesSince: parameters[render.NodesSince]}
	if deployed.Parameters[render.ReplaceNodes] != "" && deployed.Tags[names.TagTemplate] != "" {
		started, err := c.changePace(ctx, deployed, off)
		if err != nil || started {
			return set, started, err
		}
	}
	maps.Copy(parameters, off)
	set, err = c.prepare(ctx, deployed, parameters, c.tokenOf(parameters))
	return set, false, err
}

// waitBeforeShrinking reports whether a change that lowers the maximum size below the desired capacity has to wait for drains. Auto Scaling
// terminates instances at once, while nodes that the last roll replaced may still be drained. A rollback leaves a pool at the size to which
// the roll had grown it.
func (c *call) waitBeforeShrinking(ctx context.Context, deployed stack.Deployed, parameters map[string]string) (later bool, err error) {
	if c.change.Pace == nil || larger(parameters[render.MaxSize], deployed.Parameters[render.MaxSize]) == parameters[render.MaxSize] {
		return false, nil
	}
	group, _, err := c.Groups.Describe(ctx, c.change.Pace.Group)
	if err != nil || larger(parameters[render.MaxSize], strconv.Itoa(group.Desired)) == parameters[render.MaxSize] {
		return false, err
	}
	return c.waitForDrains(ctx, shrinkMessage, group, deployed.Status, false)
}

// changePace changes these parameters alone, after which the task runs again. It returns false if CloudFormation finds nothing to change.
func (c *call) changePace(ctx context.Context, deployed stack.Deployed, want map[string]string) (bool, error) {
	// Each attempt has its own token: an autoscaler may change the capacity and back, and then the same pace is a new operation.
	token := "pace-" + names.SHA256([]byte(c.in.TaskToken + c.tokenOf(want)))[:40]
	address, err := url.JoinPath(c.TemplateBase, deployed.Tags[names.TagTemplate])
	if err != nil {
		return false, err
	}
	note := fmt.Sprintf("%d of %s", c.paceChanges(deployed)+1, c.token)
	set, err := c.Stacks.PrepareParameters(ctx, c.change, deployed, address, want, note, token)
	if err != nil || set.Empty {
		return false, err
	}
	if err := c.register(ctx, token, true); err != nil {
		return false, err
	}
	return true, c.Stacks.Execute(ctx, c.change, set, token)
}

// paceChanges returns how often this change has deployed the pace alone, in any call. A tag of the stack counts it.
func (c *call) paceChanges(deployed stack.Deployed) int {
	times, of, _ := strings.Cut(deployed.Tags[names.TagPace], " of ")
	if n, err := strconv.Atoi(times); err == nil && of == c.token {
		return n
	}
	return 0
}

// replacementPace returns the parameters for replacing the nodes of a group that may have grown to a size by then. It
// uses the parameters for the time after a rollback in three cases:
//
//  1. The stack is not settled.
//  2. The pace was deployed alone, which may have been after a rollback.
//  3. The group is larger than the spec allows. A rollback left it so, or an autoscaler has used the capacity that a roll added.
func replacementPace(pace *render.Pace, group pool.Group, deployed stack.Deployed, grown int) map[string]string {
	if stack.Settled(deployed.Status) && deployed.Tags[names.TagPace] == "" && group.Desired <= pace.MaxSize {
		return pace.ForReplacementAtSize(group.Desired, grown)
	}
	return pace.ForReplacementAfterRollback(group.Desired, grown, deployed.Parameters)
}

// rollbackPace returns the parameters that the deployed stack must have before its nodes are replaced, because a rollback uses them with
// the deployed template. That template's strategy may differ from the change's. A rollback of a rolling update finds the group grown:
//
//   - If the maximum size were lower, the rollback would first terminate an instance. Auto Scaling might choose one in service, not one
//     that never joined.
//   - An instance refresh takes its percentages of the larger group. Percentages for fewer nodes would let more nodes leave at once than
//     the spec allows.
//
// rollbackPace returns nil if the parameters cannot be changed alone: the template has none, or its key is unknown.
func (c *call) rollbackPace(group pool.Group, deployed stack.Deployed, want map[string]string) map[string]string {
	deployedPace := c.change.Pace.Deployed(deployed.Parameters)
	if deployedPace == nil || deployed.Tags[names.TagTemplate] == "" {
		return nil
	}
	values := replacementPace(deployedPace, group, deployed, render.GrownSize(group.Desired, want))
	values[render.MaxSize] = larger(values[render.MaxSize], want[render.MaxSize])
	return values
}

// larger returns the larger of two numbers in the form of parameters.
func larger(a, b string) string {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return strconv.Itoa(max(x, y))
}

// hasAll reports whether values has all keys of part with the same values.
func hasAll(values, part map[string]string) bool {
	for key, value := range part {
		if values[key] != value {
			return false
		}
	}
	return true
}
