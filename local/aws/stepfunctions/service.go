package stepfunctions

// The service, its machines and executions, and what it needs from other services.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/wire"
)

// Roles provides the credentials of executions; a subset of *iam.Service.
type Roles interface {
	AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (iam.Caller, iam.Credentials, error)
}

// Functions runs functions; a subset of *lambda.Service.
type Functions interface {
	Invoke(ctx context.Context, caller iam.Caller, in lambda.Invocation) (lambda.Result, error)
	InvokeAsync(ctx context.Context, caller iam.Caller, in lambda.Invocation) (requestID string, err error)
}

// Logs is CloudWatch Logs.
type Logs interface {
	// WriteLog appends one line, and creates the stream if needed. If the group does not exist, the line is lost.
	WriteLog(group, stream, line string)
}

// SDK performs an aws-sdk task. service is a name such as "autoscaling", action such as "CompleteLifecycleAction".
// Parameters have the API's spelling. Errors are *iam.Error.
type SDK func(ctx context.Context, caller iam.Caller, service, action string, parameters map[string]any) (any, error)

// Emit sends an event to the account's default bus.
type Emit func(ctx context.Context, source, detailType string, resources []string, detail any)

// Metric records a value, such as 1 of AWS/States ExecutionsStarted.
type Metric func(namespace, name string, dimensions map[string]string, value float64, unit string)

// Config of the service. Only the names and Roles are required. A task that needs a missing service fails.
type Config struct {
	// Account is the twelve-digit id; Region such as us-east-1; Partition defaults to aws.
	Account, Region, Partition string
	Clock                      *clock.Clock
	Roles                      Roles
	Functions                  Functions
	SDK                        SDK
	Emit                       Emit
	Metric                     Metric
	Logs                       Logs
	// Observe receives each event of each execution as it happens. It must not block.
	Observe func(Execution, asl.Event)
	// Random returns numbers from 0 up to 1 for the jitter of retries. nil means real random numbers.
	Random func() float64
}

// Service is Step Functions in one region of one account.
type Service struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	tokens asl.Tokens

	mu         sync.Mutex
	closed     bool
	machines   map[string]*machine   // by ARN
	executions map[string]*execution // by ARN
	order      []*execution          // oldest first
	waiting    map[string]string     // machine ARN by task token
}

// New returns a Step Functions without machines. Close aborts all executions.
func New(config Config) *Service {
	if config.Partition == "" {
		config.Partition = "aws"
	}
	if config.Clock == nil {
		config.Clock = &clock.Clock{}
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Service{
		config: config, ctx: ctx, stop: stop,
		machines: map[string]*machine{}, executions: map[string]*execution{}, waiting: map[string]string{},
	}
}

// SetFunctions sets the functions that tasks invoke, for accounts in which services depend on each other.
func (s *Service) SetFunctions(f Functions) { s.config.Functions = f }

// Close aborts all executions and waits until they end.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
}

// machine is a state machine.
type machine struct {
	name, arn, role, definition, revision string
	parsed                                *asl.Machine
	logging                               loggingConfiguration
	tracing                               tracingConfiguration
	tags                                  map[string]string
	created                               time.Time
}

type loggingConfiguration struct {
	Level                string           `json:"level"`
	IncludeExecutionData bool             `json:"includeExecutionData"`
	Destinations         []logDestination `json:"destinations,omitempty"`
}

type logDestination struct {
	CloudWatchLogsLogGroup *logGroup `json:"cloudWatchLogsLogGroup,omitempty"`
}

type logGroup struct {
	LogGroupArn string `json:"logGroupArn"`
}

type tracingConfiguration struct {
	Enabled bool `json:"enabled"`
}

// check sets defaults and validates.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_LoggingConfiguration.html
func (l *loggingConfiguration) check() error {
	if l.Level == "" {
		l.Level = "OFF"
	}
	if !slices.Contains([]string{"ALL", "ERROR", "FATAL", "OFF"}, l.Level) {
		return wire.Errorf("InvalidLoggingConfiguration", "Level %q is none of ALL, ERROR, FATAL and OFF", l.Level)
	}
	if len(l.Destinations) > 1 || l.Level != "OFF" && len(l.Destinations) == 0 {
		return wire.Errorf("InvalidLoggingConfiguration", "There must be exactly one log destination")
	}
	for _, d := range l.Destinations {
		if d.CloudWatchLogsLogGroup == nil || !strings.HasPrefix(d.CloudWatchLogsLogGroup.LogGroupArn, "arn:") ||
			!strings.HasSuffix(d.CloudWatchLogsLogGroup.LogGroupArn, ":*") {
			return wire.Errorf("InvalidLoggingConfiguration", "The log destination must be the ARN of a log group that ends in :*")
		}
	}
	return nil
}

// group returns the name of the log group, or "".
func (l loggingConfiguration) group() string {
	for _, d := range l.Destinations {
		_, name, _ := strings.Cut(strings.TrimSuffix(d.CloudWatchLogsLogGroup.LogGroupArn, ":*"), ":log-group:")
		return name
	}
	return ""
}

// Execution is one execution, as the API describes it.
type Execution struct {
	ARN, Name, MachineARN, MachineName string
	// Status is RUNNING or an asl.Status.
	Status string
	Input  string
	// Output is set after success, Error and Cause after any other end.
	Output, Error, Cause string
	Started, Stopped     time.Time
	// Transitions as AWS bills them. The count is set when the execution ends.
	Transitions int
}

type execution struct {
	Execution
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when the execution has ended and its end is announced
	events []asl.Event

	// caller is the machine's role. It is assumed again well before its credentials expire.
	caller   iam.Caller
	callerAt time.Time
	role     string
	session  string
}

// maxCaller is the maximum age of an assumed role.
const maxCaller = 6 * time.Hour

func (s *Service) machineARN(name string) string {
	return fmt.Sprintf("arn:%s:states:%s:%s:stateMachine:%s", s.config.Partition, s.config.Region, s.config.Account, name)
}

func (s *Service) executionARN(machine, name string) string {
	return fmt.Sprintf("arn:%s:states:%s:%s:execution:%s:%s", s.config.Partition, s.config.Region, s.config.Account, machine, name)
}

// checkName: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
func checkName(name string) error {
	bad := strings.IndexFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r <= 0x9f || strings.ContainsRune("<>{}[]?*\"#%\\^|~`$&,;:/", r)
	})
	if name == "" || len(name) > 80 || bad >= 0 {
		return wire.Errorf("InvalidName", "Invalid Name: '%s'", name)
	}
	return nil
}

// Start starts an execution as the caller and returns its ARN. An empty name is generated.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
func (s *Service) Start(_ context.Context, caller iam.Caller, machineARN, name, input string) (string, error) {
	if err := caller.Authorize("states:StartExecution", machineARN, nil); err != nil {
		return "", err
	}
	x, err := s.start(machineARN, name, input)
	if err != nil {
		return "", err
	}
	return x.ARN, nil
}

func (s *Service) start(machineARN, name, input string) (Execution, error) {
	if name == "" {
		name = uuid.NewString()
	}
	if err := checkName(name); err != nil {
		return Execution{}, err
	}
	if input == "" {
		input = "{}"
	}
	if err := checkInput(input); err != nil {
		return Execution{}, err
	}
	s.mu.Lock()
	m := s.machines[machineARN]
	if m == nil {
		s.mu.Unlock()
		return Execution{}, noMachine(machineARN)
	}
	arn := s.executionARN(m.name, name)
	if x := s.executions[arn]; x != nil {
		defer s.mu.Unlock()
		if x.Status == "RUNNING" && x.Input == input {
			return x.Execution, nil
		}
		return Execution{}, wire.Errorf("ExecutionAlreadyExists", "Execution Already Exists: '%s'", arn)
	}
	if s.closed {
		s.mu.Unlock()
		return Execution{}, context.Canceled
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	x := &execution{
		Execution: Execution{
			ARN: arn, Name: name, MachineARN: m.arn, MachineName: m.name, Status: "RUNNING", Input: input, Started: s.config.Clock.Now(),
		},
		cancel: cancel, ended: make(chan struct{}), role: m.role, session: strings.ReplaceAll(uuid.NewString(), "-", ""),
	}
	s.executions[arn] = x
	s.order = append(s.order, x)
	seen := x.Execution
	turn := s.config.Clock.Ticket("states: " + m.name)
	s.work.Go(func() {
		turn()
		s.run(ctx, m, x)
	})
	s.mu.Unlock()
	return seen, nil
}

// Executions returns all executions, oldest first.
func (s *Service) Executions() []Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Execution, len(s.order))
	for i, x := range s.order {
		all[i] = x.Execution
	}
	return all
}

// Stop aborts a running execution, without permissions and without waiting for its end.
func (s *Service) Stop(arn, name, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.executions[arn]; x != nil {
		x.cancel(&asl.Failure{Name: name, Cause: cause})
	}
}

// StopAll aborts all running executions without waiting for their ends.
func (s *Service) StopAll(name, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.order {
		x.cancel(&asl.Failure{Name: name, Cause: cause})
	}
}

func noMachine(arn string) error {
	return wire.Errorf("StateMachineDoesNotExist", "State Machine Does Not Exist: '%s'", arn)
}

func noExecution(arn string) error {
	return wire.Errorf("ExecutionDoesNotExist", "Execution Does Not Exist: '%s'", arn)
}
