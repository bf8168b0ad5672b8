package scheduler

// The resource types that CloudFormation makes here.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_Scheduler.html

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/iam"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/local/tagging"
)

// Resources are the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::Scheduler::Schedule": scheduleResource{s}, "AWS::Scheduler::ScheduleGroup": groupResource{s}}
}

// Tagged lists the groups and their tags; schedules have none.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []tagging.Tagged
	for _, g := range s.groups {
		all = append(all, tagging.Tagged{ARN: g.arn, Tags: g.tags})
	}
	return all
}

// generated names a resource after its stack and logical id, within 64 characters.
func generated(r resource.Request) string {
	cut := func(s string, n int) string { return s[:min(len(s), n)] }
	return cut(r.StackName, 24) + "-" + cut(r.LogicalID, 24) + "-" + uuid.NewString()[:12]
}

// gone forgives that what is to be removed is not there.
func gone(err error) error {
	var e *iam.Error
	if errors.As(err, &e) && e.HTTPStatus() == http.StatusNotFound {
		return nil
	}
	return err
}

type scheduleResource struct{ s *Service }

func (scheduleResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehaviour{
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
		c.Name = generated(r)
	}
	return c, nil
}

func (p scheduleResource) put(r resource.Request, action string) (resource.Result, error) {
	c, err := decodeSchedule(r)
	if err != nil {
		return resource.Result{}, err
	}
	arn, err := p.s.put(r.Caller, c, action)
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
	return gone(p.s.remove(r.Caller, group, r.PhysicalID))
}

type groupResource struct{ s *Service }

func (groupResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehaviour{"Name": resource.Replaces, "Tags": resource.InPlace},
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
		in.Name = generated(r)
	}
	return in.Name, tagging.Merge(r.Tags, in.Tags), nil
}

func groupResult(g *group) resource.Result {
	return resource.Result{PhysicalID: g.name, Attributes: map[string]any{
		"Arn": g.arn, "CreationDate": g.created.Format(time.RFC3339), "LastModificationDate": g.modified.Format(time.RFC3339), "State": "ACTIVE",
	}}
}

func (p groupResource) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	name, tags, err := p.decode(r)
	if err != nil {
		return resource.Result{}, err
	}
	if _, err := p.s.createGroup(r.Caller, name, tags); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return groupResult(p.s.groups[name]), nil
}

func (p groupResource) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	_, tags, err := p.decode(r)
	if err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	g := p.s.groups[r.PhysicalID]
	if g == nil {
		return resource.Result{}, notFound("Schedule group", strings.TrimSpace(r.PhysicalID))
	}
	g.tags = tags
	return groupResult(g), nil
}

func (p groupResource) Delete(_ context.Context, r resource.Request) error {
	return gone(p.s.removeGroup(r.Caller, r.PhysicalID))
}
