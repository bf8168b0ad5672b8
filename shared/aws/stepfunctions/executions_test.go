package stepfunctions_test

// What each answer of Step Functions means: which errors are none, and which executions count.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_Operations.html

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
)

// stepFunctions responds to calls in turn, with a body or with an error code. requests are the operations with their inputs.
type stepFunctions struct {
	answers  []string
	requests []map[string]any
}

func (s *stepFunctions) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	in := map[string]any{"operation": strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AWSStepFunctions.")}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	s.requests = append(s.requests, in)
	if len(s.requests) > len(s.answers) {
		return nil, fmt.Errorf("unexpected call: %v", in)
	}
	code, answer := http.StatusOK, s.answers[len(s.requests)-1]
	if !strings.HasPrefix(answer, "{") {
		code, answer = http.StatusBadRequest, fmt.Sprintf(`{"__type": %q, "message": "no"}`, answer)
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(answer)),
	}, nil
}

func (s *stepFunctions) client() *sfn.Client {
	return sfn.New(sfn.Options{Region: "eu-central-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: s, Retryer: aws.NopRetryer{}})
}

const accessDenied = "AccessDeniedException"

func TestErrorsOfExecutions(t *testing.T) {
	ctx := t.Context()
	const begun, described = `{"executionArn": "x", "startDate": 1}`, `{"executionArn": "x", "status": "RUNNING", "input": "{}"}`
	for name, test := range map[string]struct {
		call func(*sfn.Client) error
		// answer is a successful response. noError are the error codes that also mean success.
		answer  string
		noError []string
	}{
		"starting to converge": {
			func(c *sfn.Client) error { return stepfunctions.New(c, "m").Converge(ctx, "demo", "v", "") }, begun, []string{"ExecutionAlreadyExists"},
		},
		"starting a machine": {
			func(c *sfn.Client) error { return stepfunctions.NewMachine(c, "m").Start(ctx, "a", 1) }, begun, []string{"ExecutionAlreadyExists"},
		},
		"stopping": {
			func(c *sfn.Client) error { return stepfunctions.New(c, "m").Stop(ctx, "x", "why") }, `{"stopDate": 1}`,
			[]string{"ExecutionDoesNotExist"},
		},
		"whether one runs": {
			func(c *sfn.Client) error {
				_, err := stepfunctions.New(c, "m").Running(ctx, "x")
				return err
			}, described, []string{"ExecutionDoesNotExist"},
		},
		"whether one was removed": {
			func(c *sfn.Client) error {
				_, _, err := stepfunctions.New(c, "m").State(ctx, "x")
				return err
			}, described, []string{"ExecutionDoesNotExist"},
		},
		"how one ended": {
			func(c *sfn.Client) error { _, err := stepfunctions.New(c, "m").Ended(ctx, "x"); return err }, described,
			[]string{"ExecutionDoesNotExist"},
		},
		"resuming a task": {
			func(c *sfn.Client) error { return stepfunctions.New(c, "m").Succeed(ctx, "t", events.ChangeResult{}) }, `{}`,
			[]string{"TaskDoesNotExist", "TaskTimedOut", "InvalidToken"},
		},
		"failing a task": {
			func(c *sfn.Client) error { return stepfunctions.New(c, "m").Fail(ctx, "t", "f", events.ChangeResult{}) }, `{}`,
			[]string{"TaskDoesNotExist", "TaskTimedOut", "InvalidToken"},
		},
		"listing": {func(c *sfn.Client) error {
			_, err := stepfunctions.NewMachine(c, "m").Running(ctx)
			return err
		}, `{"executions": []}`, nil},
		"reading an input": {func(c *sfn.Client) error { return stepfunctions.NewMachine(c, "m").Input(ctx, "x", &struct{}{}) }, described, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, answer := range append(test.noError, test.answer) {
				require.NoError(t, test.call((&stepFunctions{answers: []string{answer}}).client()), answer)
			}
			require.ErrorContains(t, test.call((&stepFunctions{answers: []string{accessDenied}}).client()), accessDenied)
		})
	}
	t.Run("rejects an input that is no JSON", func(t *testing.T) {
		client := (&stepFunctions{answers: []string{`{"input": "no"}`}}).client()
		require.Error(t, stepfunctions.NewMachine(client, "m").Input(ctx, "x", &struct{}{}))
	})
}

func TestRunning(t *testing.T) {
	for state, runs := range map[string]bool{
		"RUNNING": true, "PENDING_REDRIVE": true, "SUCCEEDED": false, "FAILED": false, "TIMED_OUT": false, "ABORTED": false,
	} {
		s := &stepFunctions{answers: []string{fmt.Sprintf(`{"executionArn": "x", "status": %q}`, state)}}
		got, err := stepfunctions.New(s.client(), "m").Running(t.Context(), "x")
		require.NoError(t, err)
		require.Equal(t, runs, got, state)
	}
}

func TestState(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		want   bool
	}{
		"by make destroy":  {`{"executionArn": "x", "status": "ABORTED", "error": "DroverRemoved"}`, true},
		"by an operator":   {`{"executionArn": "x", "status": "ABORTED"}`, false},
		"with its error":   {`{"executionArn": "x", "status": "FAILED", "error": "StackFailed"}`, false},
		"with its machine": {"ExecutionDoesNotExist", true},
	} {
		running, removed, err := stepfunctions.New((&stepFunctions{answers: []string{test.answer}}).client(), "m").State(t.Context(), "x")
		require.NoError(t, err)
		require.False(t, running, name)
		require.Equal(t, test.want, removed, name)
	}
}

func TestStop(t *testing.T) {
	s := &stepFunctions{answers: []string{`{"stopDate": 1}`}}
	require.NoError(t, stepfunctions.New(s.client(), "m").Stop(t.Context(), "x", "it stood still"))
	require.Equal(t, []map[string]any{{"operation": "StopExecution", "executionArn": "x", "cause": "it stood still"}}, s.requests)
}

func TestMachine(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	execution := func(arn, state string, started, stopped time.Duration) string {
		return fmt.Sprintf(`{"executionArn": %q, "status": %q, "startDate": %d, "stopDate": %d}`, arn, state, now.Add(-started).Unix(),
			now.Add(-stopped).Unix())
	}
	page := func(next string, all ...string) string {
		body := `{"executions": [` + strings.Join(all, ",") + `]`
		if next != "" {
			body += fmt.Sprintf(`, "nextToken": %q`, next)
		}
		return body + "}"
	}
	t.Run("starts under a name", func(t *testing.T) {
		s := &stepFunctions{answers: []string{`{"executionArn": "x", "startDate": 1}`}}
		require.NoError(t, stepfunctions.NewMachine(s.client(), "m").Start(t.Context(), "once", map[string]string{"cluster": "demo"}))
		require.Equal(t, map[string]any{"operation": "StartExecution", "stateMachineArn": "m", "name": "once", "input": `{"cluster":"demo"}`},
			s.requests[0])
	})
	t.Run("starts without a name when it is given none", func(t *testing.T) {
		s := &stepFunctions{answers: []string{`{"executionArn": "x", "startDate": 1}`}}
		require.NoError(t, stepfunctions.NewMachine(s.client(), "m").Start(t.Context(), "", 1))
		require.NotContains(t, s.requests[0], "name")
	})
	t.Run("lists running executions of all pages", func(t *testing.T) {
		s := &stepFunctions{
			answers: []string{page("n", execution("a", "RUNNING", 1000*time.Hour, 0)), page("", execution("b", "RUNNING", 2000*time.Hour, 0))},
		}
		running, err := stepfunctions.NewMachine(s.client(), "m").Running(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, running)
		require.Equal(t, "RUNNING", s.requests[0]["statusFilter"])
	})
	t.Run("returns the error of a later page", func(t *testing.T) {
		s := &stepFunctions{answers: []string{page("n", execution("a", "RUNNING", 0, 0)), accessDenied}}
		running, err := stepfunctions.NewMachine(s.client(), "m").Running(t.Context())
		require.ErrorContains(t, err, accessDenied)
		require.Empty(t, running)
	})
	t.Run("lists what failed since a time", func(t *testing.T) {
		s := &stepFunctions{answers: []string{
			page("n", execution("aborted", "ABORTED", 2*time.Hour, time.Minute), execution("late", "TIMED_OUT", 49*time.Hour, time.Minute),
				execution("failed", "FAILED", 2*time.Hour, time.Hour), execution("runs", "RUNNING", 2*time.Hour, 0), execution("done", "SUCCEEDED",
					2*time.Hour, time.Minute),
				execution("earlier", "FAILED", 3*time.Hour, time.Hour+time.Second)),
			page("not requested", execution("ancient", "FAILED", 51*time.Hour, time.Minute)),
		}}
		broken, err := stepfunctions.NewMachine(s.client(), "m").Unsuccessful(t.Context(), now.Add(-time.Hour))
		require.NoError(t, err)
		require.Equal(t, []string{"aborted", "late", "failed"}, broken)
		require.Len(t, s.requests, 2, "executions that started too long ago end the listing")
	})
}
