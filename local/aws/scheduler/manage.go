package scheduler

// Creation, update and deletion of schedules and groups, shared by the API and templates.

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/eventbridge/delivery"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

var (
	nameForm = regexp.MustCompile(`^[0-9a-zA-Z\-_.]{1,64}$`)
	// queueForm excludes dots, because a FIFO queue cannot be a dead-letter queue.
	queueForm = regexp.MustCompile(`^arn:aws[a-z-]*:sqs:[a-z0-9-]+:\d{12}:[a-zA-Z0-9_-]+$`)
)

func invalid(format string, args ...any) error {
	return wire.Errorf("ValidationException", format, args...)
}

func notFound(kind, name string) error {
	e := wire.Errorf("ResourceNotFoundException", "%s %s does not exist.", kind, name)
	e.Status = http.StatusNotFound
	return e
}

func conflict(kind, name string) error {
	e := wire.Errorf("ConflictException", "%s %s already exists.", kind, name)
	e.Status = http.StatusConflict
	return e
}

// complete sets defaults and validates.
// https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
func (c *settings) complete() (expression, error) {
	if c.GroupName == "" {
		c.GroupName = defaultGroup
	}
	if c.State == "" {
		c.State = "ENABLED"
	}
	if c.ActionAfterCompletion == "" {
		c.ActionAfterCompletion = "NONE"
	}
	x, err := parseExpression(c.ScheduleExpression, c.ScheduleExpressionTimezone)
	if err != nil {
		return x, invalid("Invalid Schedule Expression %s. %v", c.ScheduleExpression, err)
	}
	w := c.FlexibleTimeWindow
	switch {
	case !nameForm.MatchString(c.Name) || !nameForm.MatchString(c.GroupName):
		return x, invalid("the name %s/%s does not satisfy %s", c.GroupName, c.Name, nameForm)
	case c.State != "ENABLED" && c.State != "DISABLED":
		return x, invalid("State %q is neither ENABLED nor DISABLED", c.State)
	case c.ActionAfterCompletion != "NONE" && c.ActionAfterCompletion != "DELETE":
		return x, invalid("ActionAfterCompletion %q is neither NONE nor DELETE", c.ActionAfterCompletion)
	case w.Mode != "OFF" && w.Mode != "FLEXIBLE":
		return x, invalid("FlexibleTimeWindow.Mode %q is neither OFF nor FLEXIBLE", w.Mode)
	case w.Mode == "OFF" && w.MaximumWindowInMinutes != 0:
		return x, invalid("MaximumWindowInMinutes must not be set when FlexibleTimeWindow is OFF")
	case w.Mode == "FLEXIBLE" && (w.MaximumWindowInMinutes < 1 || w.MaximumWindowInMinutes > 1440):
		return x, invalid("MaximumWindowInMinutes %d: between 1 and 1440", w.MaximumWindowInMinutes)
	case !c.EndDate.IsZero() && !c.EndDate.After(c.StartDate):
		return x, invalid("The StartDate you specify must come before the EndDate")
	case !strings.HasPrefix(c.Target.RoleArn, "arn:"):
		return x, invalid("Target.RoleArn is no ARN")
	case c.Target.DeadLetterConfig != nil && c.Target.DeadLetterConfig.Arn != "" && !queueForm.MatchString(c.Target.DeadLetterConfig.Arn):
		return x, invalid("Target.DeadLetterConfig.Arn is not the ARN of a standard queue")
	}
	if err := delivery.Check(c.Target.Arn); err != nil {
		return x, err
	}
	service := strings.Split(c.Target.Arn, ":")[2]
	if c.Target.Input != "" && (service == "lambda" || service == "states") && !json.Valid([]byte(c.Target.Input)) {
		return x, invalid("Target.Input must be well-formed JSON for the target %s", c.Target.Arn)
	}
	return x, c.Target.RetryPolicy.Check()
}

// put creates or replaces a schedule. A creation with the token of an earlier one changes nothing.
func (s *Service) put(caller iam.Caller, c settings, action, token string) (string, error) {
	x, err := c.complete()
	if err != nil {
		return "", err
	}
	arn := s.arn(c.GroupName, c.Name)
	if err := caller.Authorize(action, arn, nil); err != nil {
		return "", err
	}
	if err := caller.PassRole(c.Target.RoleArn, principal); err != nil {
		return "", err
	}
	if x.oneTime() && !x.at.After(s.config.Clock.Now()) {
		return "", invalid("Invalid Schedule Expression %s. It is in the past.", c.ScheduleExpression)
	}
	if _, err := s.assume(c.Target.RoleArn); err != nil {
		return "", invalid("The execution role you provide must allow AWS EventBridge Scheduler to assume the role.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[c.GroupName] == nil {
		return "", notFound("Schedule group", c.GroupName)
	}
	old := s.schedules[arn]
	now := s.config.Clock.Now().Round(0) // wall clock time, which continues while the machine sleeps
	sc := &schedule{settings: c, arn: arn, expression: x, created: now, modified: now, token: token}
	switch create := action == "scheduler:CreateSchedule"; {
	case create && old != nil && token != "" && old.token == token:
		return arn, nil
	case create && old != nil:
		return "", conflict("Schedule", c.Name)
	case !create && old == nil:
		return "", notFound("Schedule", c.Name)
	case !create:
		sc.created, sc.token = old.created, old.token
		old.cancel()
	}
	s.schedules[arn] = sc
	s.runLoop(sc)
	return arn, nil
}

func (s *Service) remove(caller iam.Caller, group, name string) error {
	if group == "" {
		group = defaultGroup
	}
	arn := s.arn(group, name)
	if err := caller.Authorize("scheduler:DeleteSchedule", arn, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.schedules[arn]
	if sc == nil {
		return notFound("Schedule", name)
	}
	sc.cancel()
	delete(s.schedules, arn)
	return nil
}

func (s *Service) createGroup(caller iam.Caller, name string, tags map[string]string, token string) (string, error) {
	if !nameForm.MatchString(name) {
		return "", invalid("the name %s does not satisfy %s", name, nameForm)
	}
	arn := s.groupARN(name)
	if err := caller.Authorize("scheduler:CreateScheduleGroup", arn, nil); err != nil {
		return "", err
	}
	if len(tags) > 0 {
		if err := caller.Authorize("scheduler:TagResource", arn, nil); err != nil {
			return "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.groups[name]; old != nil {
		if token != "" && old.token == token {
			return arn, nil
		}
		return "", conflict("Schedule group", name)
	}
	now := s.config.Clock.Now()
	s.groups[name] = &group{name: name, arn: arn, created: now, modified: now, token: token, tags: tags}
	return arn, nil
}

// removeGroup removes a group and all its schedules.
func (s *Service) removeGroup(caller iam.Caller, name string) error {
	if err := caller.Authorize("scheduler:DeleteScheduleGroup", s.groupARN(name), nil); err != nil {
		return err
	}
	if err := caller.Authorize("scheduler:DeleteSchedule", s.arn(name, "*"), nil); err != nil {
		return err
	}
	if name == defaultGroup {
		return invalid("The default schedule group cannot be deleted.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[name] == nil {
		return notFound("Schedule group", name)
	}
	delete(s.groups, name)
	for arn, sc := range s.schedules {
		if sc.GroupName == name {
			sc.cancel()
			delete(s.schedules, arn)
		}
	}
	return nil
}

// setTags changes the tags of a group.
func (s *Service) setTags(caller iam.Caller, action, arn string, change func(tags map[string]string)) error {
	if err := caller.Authorize(action, arn, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.groupOfARN(arn)
	if err != nil {
		return err
	}
	tags := maps.Clone(g.tags)
	if tags == nil {
		tags = map[string]string{}
	}
	change(tags)
	g.tags = tags // a new map, because callers hold the old one
	return nil
}

// groupOfARN returns the group with an ARN. Only groups have tags. The caller holds mu.
func (s *Service) groupOfARN(arn string) (*group, error) {
	for _, g := range s.groups {
		if g.arn == arn {
			return g, nil
		}
	}
	return nil, notFound("Schedule group", arn)
}

// scheduleView is a schedule as GetSchedule returns it.
type scheduleView struct {
	settings
	Arn                                string
	CreationDate, LastModificationDate time.Time
}

func (s *Service) get(group, name string) (scheduleView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.schedules[s.arn(group, name)]
	if sc == nil {
		return scheduleView{}, notFound("Schedule", name)
	}
	return scheduleView{sc.settings, sc.arn, sc.created, sc.modified}, nil
}
