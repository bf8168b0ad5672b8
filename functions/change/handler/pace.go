package handler

// A pool's nodes are replaced at a pace that depends on how many there are just then. The pace goes first, by itself: when nodes
// are replaced and that fails, CloudFormation goes back to what was before, and by the pace that was before.

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
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/roll"
)

// replaces reports whether a change set may replace a pool's nodes: it changes what they are launched from, or where.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func replaces(changes []stack.ResourceChange) bool {
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

// mostLooks at a group whose desired capacity is another each time: an autoscaler that never rests must not keep a roll from beginning.
const mostLooks = 3

// mostPaces by themselves, of one change and for the same reason: each takes a minute or so. After them the roll
// begins, and a rollback goes by the last of them. Those that a rollback before needs are the first two.
const mostPaces = 10

// MostChangeSets of one call: that of the change, one a look, and one of the pace by itself or of a stack that is to settle.
const MostChangeSets = 1 + mostLooks + 1

// pace gives a change that replaces nodes the parameters for as many as the pool has now. While others of its nodes
// are still drained, it changes nothing, and when the parameters that a rollback needs are not deployed, nothing but
// those; later is true then: the step looks again after that. Otherwise it returns the change set to execute. Making
// one takes up to a minute, so the group is looked at again after that, too.
func (s *step) pace(ctx context.Context, now stack.Deployed, parameters map[string]string,
	set stack.ChangeSet) (_ stack.ChangeSet, later bool, err error) {
	pace := s.change.Pace
	for looks := 0; ; looks++ {
		group, _, err := s.Groups.Describe(ctx, pace.Group)
		if err != nil {
			return set, false, err
		}
		want := replacing(pace, group, now, group.Desired)
		if held, err := s.waitForDrains(ctx, aRoll, group, now.Status, s.isUpdate() && roll.AddsFirst(group, want)); err != nil || held {
			return set, held, err
		}
		logging.From(ctx).Info("replacing nodes", "stack", s.change.StackName, "desired", group.Desired, "pace", want)
		if back := s.back(group, now, want); !within(now.Parameters, back) && s.paced(now) < mostPaces {
			// A rollback left another version of the launch template, which this would bring to the nodes, and go back without
			// the room that it makes. The change replaces them anyway. Going back itself replaces those of another try, if
			// there are any.
			if !stack.Settled(now.Status) && replaces(set.Changes) && now.Parameters[render.ReplaceNodes] == "true" {
				back[render.ReplaceNodes] = "false"
			}
			began, err := s.first(ctx, now, back)
			if err != nil || began {
				return set, began, err
			}
		}
		if within(parameters, want) || looks == mostLooks {
			return set, false, nil // made with them already
		}
		maps.Copy(parameters, want)
		if set, err = s.prepare(ctx, now, parameters, s.tokenOf(parameters)); err != nil {
			return set, false, err
		}
	}
}

// shrinks says whether a change must wait that leaves a pool less room than it fills: Auto Scaling ends instances for
// it at once, and those that the roll before replaced may still be drained. A rollback leaves a pool as large as the
// roll had raised it.
func (s *step) shrinks(ctx context.Context, now stack.Deployed, parameters map[string]string) (later bool, err error) {
	if s.change.Pace == nil || larger(parameters[render.MaxSize], now.Parameters[render.MaxSize]) == parameters[render.MaxSize] {
		return false, nil
	}
	group, _, err := s.Groups.Describe(ctx, s.change.Pace.Group)
	if err != nil || larger(parameters[render.MaxSize], strconv.Itoa(group.Desired)) == parameters[render.MaxSize] {
		return false, err
	}
	return s.waitForDrains(ctx, lessRoom, group, now.Status, false)
}

// first changes the parameters and nothing else; after that the step looks again. It says whether there was anything to change.
func (s *step) first(ctx context.Context, now stack.Deployed, want map[string]string) (bool, error) {
	// Another each time: when an autoscaler has changed its mind twice, the same pace is another operation than the one before.
	token := "pace-" + names.SHA256([]byte(s.in.TaskToken + s.tokenOf(want)))[:40]
	address, err := url.JoinPath(s.TemplateBase, now.Tags[names.TagTemplate])
	if err != nil {
		return false, err
	}
	note := fmt.Sprintf("%d of %s", s.paced(now)+1, s.token)
	set, err := s.Stacks.PrepareParameters(ctx, s.change, now, address, want, note, token)
	if err != nil || set.Empty {
		return false, err
	}
	if err := s.register(ctx, token, true); err != nil {
		return false, err
	}
	return true, s.Stacks.Execute(ctx, s.change, set, token)
}

// paced is how often the change has changed the pace by itself: the stack has it, whichever call that was.
func (s *step) paced(now stack.Deployed) int {
	times, of, _ := strings.Cut(now.Tags[names.TagPace], " of ")
	if n, err := strconv.Atoi(times); err == nil && of == s.token {
		return n
	}
	return 0
}

// replacing are the parameters of a pace for replacing the nodes of a group that may have grown by then. While the pace is deployed by
// itself, it may be for what a rollback left. A group that is larger than the spec lets it be was left so, too, or an autoscaler has filled
// the room of a roll that has not been taken back yet.
func replacing(pace *render.Pace, group pool.Group, now stack.Deployed, grown int) map[string]string {
	if stack.Settled(now.Status) && now.Tags[names.TagPace] == "" && group.Desired <= pace.MaxSize {
		return pace.Grown(group.Desired, grown)
	}
	return pace.Again(group.Desired, grown, now.Parameters)
}

// back are the parameters that the deployed stack must have before its nodes are replaced, since a rollback goes by them and by its
// template, whose strategy may be another than that of the change. A rolling update that is rolled back leaves the group as large as it
// had made it: with less room the rollback would first end an instance, and one in service rather than one that never joined. If it goes
// back by a refresh, that takes its percentages of the larger group: for fewer nodes they would let more go at once than the spec does.
// There are none when the parameters cannot be changed alone: the template has none, or is not to be found.
func (s *step) back(group pool.Group, now stack.Deployed, want map[string]string) map[string]string {
	deployed := s.change.Pace.Deployed(now.Parameters)
	if deployed == nil || now.Tags[names.TagTemplate] == "" {
		return nil
	}
	values := replacing(deployed, group, now, render.Grows(group.Desired, want))
	values[render.MaxSize] = larger(values[render.MaxSize], want[render.MaxSize])
	return values
}

// larger of two numbers as parameters have them.
func larger(a, b string) string {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return strconv.Itoa(max(x, y))
}

// within says whether values has all of part.
func within(values, part map[string]string) bool {
	for key, value := range part {
		if values[key] != value {
			return false
		}
	}
	return true
}
