package cloudformation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// A small service of things, and an account with it and CloudFormation. Things exist after Create, are changed after Update, and do not
// exist after Delete.

const thingType = "AWS::Test::Thing"

// shelf keeps things by physical id.
type shelf struct {
	mu     sync.Mutex
	next   int
	things map[string]map[string]any
	// busy and most count the running operations, now and at most.
	busy, most int
	// calls in the order of their ends: "create A".
	calls []string
	// requests has the last request of each logical ID.
	requests map[string]resource.Request
}

func newShelf() *shelf {
	return &shelf{things: map[string]map[string]any{}, requests: map[string]resource.Request{}}
}

func (*shelf) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Name": resource.Replaces, "Size": resource.InPlace, "Needs": resource.InPlace, "Home": resource.Replaces, "Seconds": resource.InPlace,
			"Fail": resource.InPlace, "Signals": resource.InPlace, "Tags": resource.InPlace,
		},
		Attributes: []string{"Arn", "Version", "Endpoint.Address"},
	}
}

// work takes the time of the thing's property and fails at the step of its property.
func (s *shelf) work(ctx context.Context, r resource.Request, step string) error {
	s.mu.Lock()
	s.busy++
	s.most = max(s.most, s.busy)
	s.requests[r.LogicalID] = r
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.busy--
		s.calls = append(s.calls, step+" "+r.LogicalID)
		s.mu.Unlock()
	}()
	if err := r.Caller.Authorize("things:"+step, "*", nil); err != nil {
		return err
	}
	if seconds, ok := r.Properties["Seconds"].(float64); ok {
		if err := (&clock.Clock{}).Timer(ctx, time.Duration(seconds)*time.Second); err != nil {
			return err
		}
	}
	if count, ok := r.Properties["Signals"].(float64); ok && step != "delete" {
		for range int(count) {
			select {
			case signal := <-r.Signals:
				if !signal.Success {
					return fmt.Errorf("%s failed", signal.UniqueID)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	fail, _ := r.Properties["Fail"].(string)
	switch {
	case fail == step:
		return wire.Errorf("ThingLimitExceeded", "The shelf is \"full\"")
	case fail == "panic":
		panic("the shelf broke")
	}
	return nil
}

func (s *shelf) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	s.mu.Lock()
	s.next++
	id := fmt.Sprintf("thing-%d", s.next)
	if name, ok := r.Properties["Name"].(string); ok && !strings.HasPrefix(name, "any") {
		id = name
	}
	if s.things[id] != nil {
		s.mu.Unlock()
		return resource.Result{}, wire.Errorf("ThingAlreadyExists", "%s already exists", id)
	}
	s.things[id] = r.Properties
	s.mu.Unlock()
	return s.result(id, 1), s.work(ctx, r, "create")
}

func (s *shelf) result(id string, version int) resource.Result {
	return resource.Result{PhysicalID: id, Attributes: map[string]any{
		"Arn": "arn:thing/" + id, "Version": fmt.Sprint(version), "Endpoint": map[string]any{"Address": id + ".local"},
	}}
}

func (s *shelf) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	s.mu.Lock()
	if s.things[r.PhysicalID] == nil {
		s.mu.Unlock()
		return resource.Result{}, wire.Errorf("ThingNotFound", "%s is not there", r.PhysicalID)
	}
	s.things[r.PhysicalID] = r.Properties
	s.next++
	version := s.next
	s.mu.Unlock()
	return s.result(r.PhysicalID, version), s.work(ctx, r, "update")
}

func (s *shelf) Delete(ctx context.Context, r resource.Request) error {
	if err := s.work(ctx, r, "delete"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.things, r.PhysicalID)
	return nil
}

func (s *shelf) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.things))
}

func (s *shelf) order() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *shelf) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.most = nil, 0
}

// bus records the events that CloudFormation sends to EventBridge.
type bus struct {
	mu     sync.Mutex
	events []string
}

func (b *bus) Emit(_ context.Context, source, detailType string, resources []string, detail any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, fmt.Sprint(source, "|", detailType, "|", resources, "|", detail))
}

type objects map[string]string

func (o objects) ReadObject(_ context.Context, caller iam.Caller, bucket, key, version string) ([]byte, error) {
	if err := caller.Authorize("s3:GetObject", "arn:aws:s3:::"+bucket+"/"+key, nil); err != nil {
		return nil, err
	}
	body, found := o[bucket+"/"+key+version]
	if !found {
		return nil, wire.Errorf("NoSuchKey", "The specified key does not exist.")
	}
	return []byte(body), nil
}

type account struct {
	*Service
	t       *testing.T
	ctx     context.Context
	shelf   *shelf
	bus     *bus
	objects objects
	roles   *iam.Service
	admin   iam.Caller
}

const (
	testRegion  = "eu-west-1"
	testAccount = "111122223333"
)

// inAccount runs a test in a new account with virtual time.
func inAccount(t *testing.T, test func(t *testing.T, a *account)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		defer a.Close()
		test(t, a)
	})
}

func newAccount(t *testing.T) *account {
	t.Helper()
	c := &clock.Clock{}
	a := &account{t: t, ctx: t.Context(), shelf: newShelf(), bus: &bus{}, objects: objects{}, roles: iam.New(testAccount, testRegion, c)}
	a.admin, _ = a.roles.Admin()
	a.Service = New(Config{Region: testRegion, Account: testAccount, Clock: c, Roles: a.roles, Objects: a.objects, Events: a.bus})
	a.Register(map[string]resource.Provider{thingType: a.shelf, "AWS::Test::Other": newShelf(), "AWS::IAM::Role": newShelf()})
	return a
}

// things returns a template of things: "A: {Size: 1}".
func things(resources ...string) string {
	body := "Resources:\n"
	for _, r := range resources {
		name, properties, _ := strings.Cut(r, ": ")
		body += "  " + name + ":\n    Type: " + thingType + "\n    Properties: " + properties + "\n"
	}
	return body
}

func (a *account) create(name, body string) Stack {
	a.t.Helper()
	return a.createWith(&CreateStackInput{StackName: name, TemplateBody: body})
}

func (a *account) createWith(in *CreateStackInput) Stack {
	a.t.Helper()
	_, err := a.CreateStack(a.ctx, a.admin, in)
	require.NoError(a.t, err)
	return a.wait(in.StackName)
}

func (a *account) update(name, body string) Stack {
	a.t.Helper()
	return a.updateWith(&UpdateStackInput{StackName: name, TemplateBody: body})
}

func (a *account) updateWith(in *UpdateStackInput) Stack {
	a.t.Helper()
	_, err := a.UpdateStack(a.ctx, a.admin, in)
	require.NoError(a.t, err)
	return a.wait(in.StackName)
}

func (a *account) wait(name string) Stack {
	a.t.Helper()
	st, err := a.Wait(a.ctx, name)
	require.NoError(a.t, err)
	return st
}

// delete deletes a stack and describes it by its ID.
func (a *account) delete(in *DeleteStackInput) Stack {
	a.t.Helper()
	st := a.wait(in.StackName)
	_, err := a.DeleteStack(a.ctx, a.admin, in)
	require.NoError(a.t, err)
	return a.wait(st.StackId)
}

// trail returns the events of a stack, oldest first: "A CREATE_COMPLETE", with the reason after a colon.
func (a *account) trail(name string) []string {
	a.t.Helper()
	var events []StackEvent
	for in := (&StackPageInput{StackName: name}); ; {
		out, err := a.DescribeStackEvents(a.ctx, a.admin, in)
		require.NoError(a.t, err)
		events = append(events, out.StackEvents...)
		if in.NextToken = out.NextToken; in.NextToken == "" {
			break
		}
	}
	var trail []string
	for _, event := range slices.Backward(events) {
		line := event.LogicalResourceId + " " + event.ResourceStatus
		if event.ResourceStatusReason != "" {
			line += ": " + event.ResourceStatusReason
		}
		trail = append(trail, line)
	}
	return trail
}

// statuses returns the trail of one resource or of the stack, without reasons.
func (a *account) statuses(name, logicalID string) []string {
	a.t.Helper()
	var found []string
	for _, line := range a.trail(name) {
		if id, rest, _ := strings.Cut(line, " "); id == logicalID {
			status, _, _ := strings.Cut(rest, ":")
			found = append(found, status)
		}
	}
	return found
}

// reason returns the last reason of a resource's status.
func (a *account) reason(name, logicalID, status string) string {
	a.t.Helper()
	for _, line := range slices.Backward(a.trail(name)) {
		if rest, found := strings.CutPrefix(line, logicalID+" "+status+": "); found {
			return rest
		}
	}
	return ""
}

func (a *account) physicalID(name, logicalID string) string {
	a.t.Helper()
	out, err := a.DescribeStackResource(a.ctx, a.admin, &DescribeStackResourceInput{StackName: name, LogicalResourceId: logicalID})
	require.NoError(a.t, err)
	return out.StackResourceDetail.PhysicalResourceId
}

func (a *account) requireRefused(err error, code, text string) {
	a.t.Helper()
	var known *wire.Error
	require.ErrorAs(a.t, err, &known)
	require.Equal(a.t, code, known.Code, known.Message)
	require.Contains(a.t, known.Message, text)
}
