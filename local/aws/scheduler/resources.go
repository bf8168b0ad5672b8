package scheduler

// CloudFormation resource types.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_Scheduler.html

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
)

// Resources returns the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::Scheduler::Schedule": scheduleResource{s}, "AWS::Scheduler::ScheduleGroup": groupResource{s}}
}

// Tagged returns the groups and their tags. Schedules have no tags.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []tagging.Tagged
	for _, g := range s.groups {
		all = append(all, tagging.Tagged{ARN: g.arn, Tags: g.tags})
	}
	return all
}

// ignoreNotFound drops the error that a resource to delete does not exist.
func ignoreNotFound(err error) error {
	var e *iam.Error
	if errors.As(err, &e) && e.HTTPStatus() == http.StatusNotFound {
		return nil
	}
	return err
}

type scheduleResource struct{ s *Service }

func (scheduleResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Description": resource.InPlace, "EndDate": resource.InPlace, "FlexibleTimeWindow": resource.InPlace, "GroupName": resource.Replaces,
			"Name": resource.Replaces, "ScheduleExpression": resource.InPlace, "ScheduleExpressionTimezone": resource.InPlace,
			"StartDate": resource.InPlace, "State": resource.InPlace, "Target": resource.InPlace,
		},
		Required:   []string{"FlexibleTimeWindow", "ScheduleExpression", "Target"},
		Attributes: []string{"Arn"},
	}
}

func decodeSchedule(r resource.Request) (settings, error) {
	var p struct {
		Description, Name, GroupName, ScheduleExpression, ScheduleExpressionTimezone, StartDate, EndDate, State string
		FlexibleTimeWindow                                                                                      window
		Target                                                                                                  target
	}
	if err := resource.Decode(r.Properties, &p); err != nil {
		return settings{}, err
	}
	c := settings{
		Name: p.Name, GroupName: p.GroupName, Description: p.Description, ScheduleExpression: p.ScheduleExpression,
		ScheduleExpressionTimezone: p.ScheduleExpressionTimezone, State: p.State, FlexibleTimeWindow: p.FlexibleTimeWindow, Target: p.Target,
	}
	for _, date := range []struct {
		name, text string
		into       *time.Time
	}{{"StartDate", p.StartDate, &c.StartDate}, {"EndDate", p.EndDate, &c.EndDate}} {
		if date.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, date.text)
		if err != nil {
			return c, invalid("%s %q is no RFC3339 timestamp", date.name, date.text)
		}
		*date.into = at
	}
	if c.Name == "" {
		c.Name = r.PhysicalID
	}
	if c.Name == "" {
		c.Name = r.GeneratedName(64)
	}
	return c, nil
}

func (p scheduleResource) put(r resource.Request, action string) (resource.Result, error) {
	c, err := decodeSchedule(r)
	if err != nil {
		return resource.Result{}, err
	}
	arn, err := p.s.put(r.Caller, c, action, "")
	if err != nil {
		return resource.Result{}, err
	}
	return resource.Result{PhysicalID: c.Name, Attributes: map[string]any{"Arn": arn}}, nil
}

func (p scheduleResource) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.put(r, "scheduler:CreateSchedule")
}

func (p scheduleResource) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.put(r, "scheduler:UpdateSchedule")
}

func (p scheduleResource) Delete(_ context.Context, r resource.Request) error {
	group, _ := r.Properties["GroupName"].(string)
	return ignoreNotFound(p.s.remove(r.Caller, group, r.PhysicalID))
}

type groupResource struct{ s *Service }

func (groupResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{"Name": resource.Replaces, "Tags": resource.InPlace},
		Attributes: []string{"Arn", "CreationDate", "LastModificationDate", "State"},
	}
}

func (p groupResource) decode(r resource.Request) (name string, tags map[string]string, err error) {
	var in struct {
		Name string
		Tags []resource.Tag
	}
	if err := resource.Decode(r.Properties, &in); err != nil {
		return "", nil, err
	}
	if in.Name == "" {
		in.Name = r.GeneratedName(64)
	}
	return in.Name, tagging.Merge(r.Tags, in.Tags), nil
}

func (p groupResource) result(name string) (resource.Result, error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	g := p.s.groups[name]
	if g == nil {
		return resource.Result{}, notFound("Schedule group", name)
	}
	return resource.Result{PhysicalID: name, Attributes: map[string]any{
		"Arn": g.arn, "CreationDate": stamp(g.created), "LastModificationDate": stamp(g.modified), "State": "ACTIVE",
	}}, nil
}

func (p groupResource) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	name, tags, err := p.decode(r)
	if err != nil {
		return resource.Result{}, err
	}
	if _, err := p.s.createGroup(r.Caller, name, tags, ""); err != nil {
		return resource.Result{}, err
	}
	return p.result(name)
}

func (p groupResource) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	_, tags, err := p.decode(r)
	if err != nil {
		return resource.Result{}, err
	}
	err = p.s.setTags(r.Caller, "scheduler:TagResource", p.s.groupARN(r.PhysicalID), func(old map[string]string) {
		clear(old)
		maps.Copy(old, tags)
	})
	if err != nil {
		return resource.Result{}, err
	}
	return p.result(r.PhysicalID)
}

func (p groupResource) Delete(_ context.Context, r resource.Request) error {
	return ignoreNotFound(p.s.removeGroup(r.Caller, r.PhysicalID))
}
