package scheduler

// The API operations. https://docs.aws.amazon.com/scheduler/latest/APIReference/API_Operations.html

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "scheduler", Protocol: wire.RESTJSON,
		Operations: map[string]wire.Operation{
			"CreateSchedule": s.putSchedule, "UpdateSchedule": s.putSchedule, "GetSchedule": s.getSchedule, "DeleteSchedule": s.deleteSchedule,
			"ListSchedules": s.listSchedules, "CreateScheduleGroup": s.createScheduleGroup, "GetScheduleGroup": s.getScheduleGroup,
			"DeleteScheduleGroup": s.deleteScheduleGroup, "ListScheduleGroups": s.listScheduleGroups,
			"TagResource": s.tagResource, "UntagResource": s.untagResource, "ListTagsForResource": s.listTags,
		},
		Routes: map[string]string{
			"POST /schedules/{Name}": "CreateSchedule", "PUT /schedules/{Name}": "UpdateSchedule", "GET /schedules/{Name}": "GetSchedule",
			"DELETE /schedules/{Name}": "DeleteSchedule", "GET /schedules": "ListSchedules",
			"POST /schedule-groups/{Name}": "CreateScheduleGroup", "GET /schedule-groups/{Name}": "GetScheduleGroup",
			"DELETE /schedule-groups/{Name}": "DeleteScheduleGroup", "GET /schedule-groups": "ListScheduleGroups",
			"POST /tags/{ResourceArn}": "TagResource", "DELETE /tags/{ResourceArn}": "UntagResource",
			"GET /tags/{ResourceArn}": "ListTagsForResource",
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
		in.GroupName = defaultGroup
	}
	c.Resource = s.arn(in.GroupName, in.Name)
	arn, err := s.put(c.Caller, in.settings, c.IAMAction(), in.ClientToken)
	if err != nil {
		return nil, err
	}
	return struct{ ScheduleArn string }{arn}, nil
}

// reference identifies a schedule.
type reference struct{ Name, GroupName, ClientToken string }

func (s *Service) getSchedule(_ context.Context, c *wire.Call) (any, error) {
	var in reference
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.GroupName == "" {
		in.GroupName = defaultGroup
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
	if in.GroupName == "" {
		in.GroupName = defaultGroup
	}
	c.Resource = s.arn(in.GroupName, in.Name)
	return struct{}{}, s.remove(c.Caller, in.GroupName, in.Name)
}

// page has the parameters of a list operation.
type page struct {
	NextToken  string
	MaxResults *int
}

// pageOf returns a page of a sorted list. The token is the key of the last item of the previous page.
func pageOf[T any](p page, list []T, key func(T) string) (items []T, next string, err error) {
	most := 100
	if p.MaxResults != nil {
		most = *p.MaxResults
	}
	if most < 1 || most > 100 {
		return nil, "", invalid("MaxResults %d: between 1 and 100", most)
	}
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if p.NextToken != "" {
		list = slices.DeleteFunc(list, func(item T) bool { return key(item) <= p.NextToken })
	}
	if len(list) > most {
		list, next = list[:most], key(list[most-1])
	}
	return list, next, nil
}

func (s *Service) listSchedules(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		page
		GroupName         string `json:"ScheduleGroup"`
		NamePrefix, State string
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
	found := []item{}
	s.mu.Lock()
	for _, sc := range s.schedules {
		if in.GroupName != "" && in.GroupName != sc.GroupName || !strings.HasPrefix(sc.Name, in.NamePrefix) || in.State != "" &&
			in.State != sc.State {
			continue
		}
		found = append(found, item{sc.arn, sc.Name, sc.GroupName, sc.State, sc.created, sc.modified, struct{ Arn string }{sc.Target.Arn}})
	}
	s.mu.Unlock()
	found, next, err := pageOf(in.page, found, func(i item) string { return i.Arn })
	if err != nil {
		return nil, err
	}
	return struct {
		Schedules []item
		NextToken string `json:",omitempty"`
	}{found, next}, nil
}

func (s *Service) createScheduleGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name, ClientToken string
		Tags              []resource.Tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.groupARN(in.Name)
	arn, err := s.createGroup(c.Caller, in.Name, tagging.Merge(nil, in.Tags), in.ClientToken)
	if err != nil {
		return nil, err
	}
	return struct{ ScheduleGroupArn string }{arn}, nil
}

// shownGroup is a group as the API returns it.
type shownGroup struct {
	Arn, Name, State                   string
	CreationDate, LastModificationDate time.Time
}

func (g *group) view() shownGroup { return shownGroup{g.arn, g.name, "ACTIVE", g.created, g.modified} }

func (s *Service) getScheduleGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ Name string }
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
	return g.view(), nil
}

func (s *Service) deleteScheduleGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ Name, ClientToken string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.groupARN(in.Name)
	return struct{}{}, s.removeGroup(c.Caller, in.Name)
}

func (s *Service) listScheduleGroups(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		page
		NamePrefix string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.groupARN("*")); err != nil {
		return nil, err
	}
	found := []shownGroup{}
	s.mu.Lock()
	for _, g := range s.groups {
		if strings.HasPrefix(g.name, in.NamePrefix) {
			found = append(found, g.view())
		}
	}
	s.mu.Unlock()
	found, next, err := pageOf(in.page, found, func(g shownGroup) string { return g.Name })
	if err != nil {
		return nil, err
	}
	return struct {
		ScheduleGroups []shownGroup
		NextToken      string `json:",omitempty"`
	}{found, next}, nil
}

func (s *Service) tagResource(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ResourceArn string
		Tags        []resource.Tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = in.ResourceArn
	return struct{}{}, s.setTags(c.Caller, c.IAMAction(), in.ResourceArn, func(tags map[string]string) {
		maps.Copy(tags, tagging.Merge(nil, in.Tags))
	})
}

func (s *Service) untagResource(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ResourceArn string
		TagKeys     []string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = in.ResourceArn
	return struct{}{}, s.setTags(c.Caller, c.IAMAction(), in.ResourceArn, func(tags map[string]string) {
		for _, key := range in.TagKeys {
			delete(tags, key)
		}
	})
}

func (s *Service) listTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ ResourceArn string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(in.ResourceArn); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.groupOfARN(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	return struct{ Tags []resource.Tag }{tagging.List(g.tags)}, nil
}
