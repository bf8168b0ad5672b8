package scheduler

// The API. https://docs.aws.amazon.com/scheduler/latest/APIReference/API_Operations.html

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/wire"
)

// Wire is the service on the wire.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "scheduler", Protocol: wire.RESTJSON,
		Operations: map[string]wire.Operation{
			"CreateSchedule": s.putSchedule, "UpdateSchedule": s.putSchedule, "GetSchedule": s.getSchedule, "DeleteSchedule": s.deleteSchedule,
			"ListSchedules": s.listSchedules, "CreateScheduleGroup": s.createScheduleGroup, "GetScheduleGroup": s.getScheduleGroup,
			"DeleteScheduleGroup": s.deleteScheduleGroup, "ListScheduleGroups": s.listScheduleGroups,
		},
		Routes: map[string]string{
			"POST /schedules/{Name}": "CreateSchedule", "PUT /schedules/{Name}": "UpdateSchedule", "GET /schedules/{Name}": "GetSchedule",
			"DELETE /schedules/{Name}": "DeleteSchedule", "GET /schedules": "ListSchedules",
			"POST /schedule-groups/{Name}": "CreateScheduleGroup", "GET /schedule-groups/{Name}": "GetScheduleGroup",
			"DELETE /schedule-groups/{Name}": "DeleteScheduleGroup", "GET /schedule-groups": "ListScheduleGroups",
		},
	}
}

func (s *Service) putSchedule(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		settings
		ClientToken string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.GroupName == "" {
		in.GroupName = "default"
	}
	c.Resource = s.arn(in.GroupName, in.Name)
	arn, err := s.put(c.Caller, in.settings, c.IAMAction())
	if err != nil {
		return nil, err
	}
	return struct{ ScheduleArn string }{arn}, nil
}

// reference to a schedule or a group.
type reference struct{ Name, GroupName, ClientToken string }

func (s *Service) getSchedule(_ context.Context, c *wire.Call) (any, error) {
	var in reference
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.GroupName == "" {
		in.GroupName = "default"
	}
	if err := c.Authorize(s.arn(in.GroupName, in.Name)); err != nil {
		return nil, err
	}
	found, err := s.get(in.GroupName, in.Name)
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (s *Service) deleteSchedule(_ context.Context, c *wire.Call) (any, error) {
	var in reference
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	return struct{}{}, s.remove(c.Caller, in.GroupName, in.Name)
}

func (s *Service) listSchedules(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		GroupName  string `json:"ScheduleGroup"`
		NamePrefix string
		State      string
		NextToken  string
		MaxResults int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.arn("*", "*")); err != nil {
		return nil, err
	}
	type item struct {
		Arn, Name, GroupName, State        string
		CreationDate, LastModificationDate time.Time
		Target                             struct{ Arn string }
	}
	out := struct{ Schedules []item }{[]item{}}
	s.mu.Lock()
	for _, sc := range s.schedules {
		if in.GroupName != "" && in.GroupName != sc.GroupName || !strings.HasPrefix(sc.Name, in.NamePrefix) || in.State != "" && in.State != sc.State {
			continue
		}
		out.Schedules = append(out.Schedules, item{sc.arn, sc.Name, sc.GroupName, sc.State, sc.created, sc.modified, struct{ Arn string }{sc.Target.Arn}})
	}
	s.mu.Unlock()
	slices.SortFunc(out.Schedules, func(a, b item) int { return strings.Compare(a.Arn, b.Arn) })
	return out, nil
}

func (s *Service) createScheduleGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name, ClientToken string
		Tags              []struct{ Key, Value string }
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, t := range in.Tags {
		tags[t.Key] = t.Value
	}
	c.Resource = s.groupARN(in.Name)
	arn, err := s.createGroup(c.Caller, in.Name, tags)
	if err != nil {
		return nil, err
	}
	return struct{ ScheduleGroupArn string }{arn}, nil
}

// shownGroup is a group as the API shows it.
type shownGroup struct {
	Arn, Name, State                   string
	CreationDate, LastModificationDate time.Time
}

func (g *group) shown() shownGroup { return shownGroup{g.arn, g.name, "ACTIVE", g.created, g.modified} }

func (s *Service) getScheduleGroup(_ context.Context, c *wire.Call) (any, error) {
	var in reference
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.groupARN(in.Name)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[in.Name]
	if g == nil {
		return nil, notFound("Schedule group", in.Name)
	}
	return g.shown(), nil
}

func (s *Service) deleteScheduleGroup(_ context.Context, c *wire.Call) (any, error) {
	var in reference
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.groupARN(in.Name)
	return struct{}{}, s.removeGroup(c.Caller, in.Name)
}

func (s *Service) listScheduleGroups(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		NamePrefix, NextToken string
		MaxResults            int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.groupARN("*")); err != nil {
		return nil, err
	}
	out := struct{ ScheduleGroups []shownGroup }{[]shownGroup{}}
	s.mu.Lock()
	for _, g := range s.groups {
		if strings.HasPrefix(g.name, in.NamePrefix) {
			out.ScheduleGroups = append(out.ScheduleGroups, g.shown())
		}
	}
	s.mu.Unlock()
	slices.SortFunc(out.ScheduleGroups, func(a, b shownGroup) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
