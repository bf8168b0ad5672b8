package lambda

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
)

// reason returns the reason of a throttled invocation, or "".
func reason(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *iam.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "TooManyRequestsException", e.Code)
	require.Equal(t, 429, e.HTTPStatus())
	return e.Reason
}

func TestConcurrencyLimits(t *testing.T) {
	limit := 103
	var metrics []string
	c := &Concurrency{
		Limit: func() int { return limit },
		Metric: func(namespace, name string, dimensions map[string]string, value float64, _ string) {
			metrics = append(metrics, fmt.Sprintf("%s %s %v %v", namespace, name, dimensions["FunctionName"], value))
		},
	}
	three := 3
	require.NoError(t, c.Reserve("join", &three))
	require.ErrorContains(t, c.Reserve("drain", aws.Int(1)), "below its minimum value of [100]")
	var ends []func()
	for i := range 3 {
		end, err := c.Begin("join")
		require.NoError(t, err, i)
		ends = append(ends, end)
	}
	_, err := c.Begin("join")
	require.Equal(t, "ReservedFunctionConcurrentInvocationLimitExceeded", reason(t, err))
	for i := range 100 {
		_, err := c.Begin(fmt.Sprintf("fn%d", i%7))
		require.NoError(t, err, i)
	}
	metrics = nil
	_, err = c.Begin("fn1")
	require.Equal(t, "ConcurrentInvocationLimitExceeded", reason(t, err))
	require.Equal(t, []string{
		"AWS/Lambda ConcurrentExecutions fn1 15", "AWS/Lambda ConcurrentExecutions  103", "AWS/Lambda UnreservedConcurrentExecutions  100",
		"AWS/Lambda ClaimedAccountConcurrency  103", "AWS/Lambda Throttles fn1 1",
	}, metrics)
	ends[0]()
	_, err = c.Begin("fn1")
	require.Error(t, err, "what a reserved function does not use is of no use to others")
	_, err = c.Begin("join")
	require.NoError(t, err)
	require.NoError(t, c.Reserve("join", nil))
	_, err = c.Begin("join")
	require.Equal(t, "ConcurrentInvocationLimitExceeded", reason(t, err), "without its reservation")
	limit = 200
	_, err = c.Begin("join")
	require.NoError(t, err, "a greater quota applies at once")
}

func TestConcurrencyOfOtherFunctions(t *testing.T) {
	var claimed float64
	c := &Concurrency{
		Exhausted: func(function string) bool { return function != "plan" },
		Metric: func(_, name string, _ map[string]string, value float64, _ string) {
			if name == "ClaimedAccountConcurrency" {
				claimed = value
			}
		},
	}
	_, err := c.Begin("plan")
	require.NoError(t, err)
	require.EqualValues(t, 1, claimed)
	_, err = c.Begin("join")
	require.Equal(t, "ConcurrentInvocationLimitExceeded", reason(t, err))
	require.EqualValues(t, DefaultConcurrency, claimed)
	require.NoError(t, c.Reserve("join", aws.Int(2)))
	_, err = c.Begin("join")
	require.NoError(t, err, "other functions cannot use what is reserved")
}

func TestThrottledInvocations(t *testing.T) {
	w := newWorld(t)
	w.create(t, nil)
	var free atomic.Int64
	w.Concurrency.Limit = func() int { return int(free.Load()) }
	_, err := w.client.Invoke(t.Context(), &sdk.InvokeInput{FunctionName: aws.String("fn"), Payload: []byte(`{"do":"count"}`)})
	var throttled *types.TooManyRequestsException
	require.ErrorAs(t, err, &throttled)
	require.Equal(t, types.ThrottleReasonConcurrentInvocationLimitExceeded, throttled.Reason)

	var refused atomic.Int64
	w.Concurrency.Exhausted = func(string) bool {
		if refused.Add(1) > 12 { // a second, two, … of five minutes
			free.Store(1)
		}
		return false
	}
	ran := make(chan Report, 1)
	w.Observe = func(r Report) { ran <- r }
	_, err = w.client.Invoke(context.Background(), &sdk.InvokeInput{
		FunctionName: aws.String("fn"), InvocationType: types.InvocationTypeEvent, Payload: []byte(`{"do":"count"}`),
	})
	require.NoError(t, err, "an event is accepted")
	require.Equal(t, `{"do":"count"}`, string((<-ran).Payload), "it runs once there is concurrency")
	require.EqualValues(t, 13, refused.Load())
}
