package scheduler

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eventbridge/delivery"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/sqs"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/clock"
)

const (
	account  = "111122223333"
	region   = "eu-central-1"
	function = "arn:aws:lambda:eu-central-1:111122223333:function:drover-sweep"
	queue    = "arn:aws:sqs:eu-central-1:111122223333:work"
	letters  = "arn:aws:sqs:eu-central-1:111122223333:letters"
	trust    = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"scheduler.amazonaws.com"},` +
		`"Action":"sts:AssumeRole"}]}`
	grants = `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":"lambda:InvokeFunction","Resource":"` + function + `"},
		{"Effect":"Allow","Action":"sqs:SendMessage","Resource":["` + queue + `","` + letters + `"]},
		{"Effect":"Allow","Action":"states:StartExecution","Resource":"*"}]}`
)

// functions replace Lambda, which would run processes. failures is how many invocations fail first.
type functions struct {
	mu       sync.Mutex
	began    time.Time
	failures int
	// calls, by the time since the start of the test.
	calls []call
}

type call struct {
	After   time.Duration
	Caller  string
	Payload string
}

func (f *functions) InvokeAsync(_ context.Context, caller iam.Caller, in lambda.Invocation) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call{time.Since(f.began), caller.RoleARN(), string(in.Payload)})
	if f.failures > 0 {
		f.failures--
		return "", &iam.Error{Code: "ServiceException", Message: "out of order", Status: 500}
	}
	return "request", caller.Authorize("lambda:InvokeFunction", in.Function, nil)
}

func (f *functions) times() (all []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		all = append(all, c.After)
	}
	return all
}

// world is Scheduler with the services that it invokes.
type world struct {
	*Service
	identities *iam.Service
	functions  *functions
	queues     *sqs.Service
	machines   *stepfunctions.Service
	admin      iam.Caller
	role       string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := &clock.Clock{}
	w := &world{identities: iam.New(account, region, c), functions: &functions{began: time.Now()}}
	w.queues = sqs.New(w.identities, c)
	require.NoError(t, w.queues.Create("work", nil, nil))
	require.NoError(t, w.queues.Create("letters", nil, nil))
	w.machines = stepfunctions.New(stepfunctions.Config{Account: account, Region: region, Clock: c, Roles: w.identities})
	t.Cleanup(w.machines.Close)
	w.role = w.newRole(t, "schedules", trust, grants)
	w.admin, _ = w.identities.Admin()
	w.Service = New(Config{
		Account: account, Region: region, Clock: c, Roles: w.identities,
		Targets: delivery.Targets{Functions: w.functions, Machines: w.machines, Queues: w.queues},
	})
	t.Cleanup(w.Service.Close)
	return w
}

func (w *world) newRole(t *testing.T, name, trust, policy string) string {
	t.Helper()
	role, err := w.identities.CreateRole(iam.Role{Name: name, TrustDocument: trust})
	require.NoError(t, err)
	require.NoError(t, w.identities.PutRolePolicy(name, "all", policy))
	return w.identities.RoleARN(role)
}

// sweep returns a schedule like drover's own.
func (w *world) sweep(change func(*settings)) settings {
	c := settings{
		Name: "sweep", ScheduleExpression: "rate(5 minutes)", FlexibleTimeWindow: window{Mode: "OFF"},
		Target: target{Arn: function, RoleArn: w.role, Input: `{"scheduledTime":"<aws.scheduler.scheduled-time>"}`},
	}
	if change != nil {
		change(&c)
	}
	return c
}

func (w *world) create(t *testing.T, change func(*settings)) {
	t.Helper()
	_, err := w.put(w.admin, w.sweep(change), "scheduler:CreateSchedule", "")
	require.NoError(t, err)
}

func (w *world) receiveMessages(t *testing.T, queue string) []sqs.Message {
	t.Helper()
	found, err := w.queues.Receive(t.Context(), w.admin, queue, 10, nil, nil)
	require.NoError(t, err)
	return found
}

func retries(attempts, age *int) *delivery.Policy {
	return &delivery.Policy{MaximumRetryAttempts: attempts, MaximumEventAgeInSeconds: age}
}
