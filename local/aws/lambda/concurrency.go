package lambda

// Concurrency: how many invocations may run at the same time.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html

import (
	"net/http"
	"sync"

	"github.com/drover-run/drover/local/aws/iam"
)

const (
	// DefaultConcurrency is the quota of an account in one region. New accounts have less.
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
	DefaultConcurrency = 1000
	// minUnreserved is what the reservations of an account must leave to the other functions.
	// https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
	minUnreserved = 100
)

// The reasons of a TooManyRequestsException. https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors
const (
	reasonAccount  = "ConcurrentInvocationLimitExceeded"
	reasonReserved = "ReservedFunctionConcurrentInvocationLimitExceeded"
)

// Concurrency counts the invocations that run in an account in one region, and throttles those above its limits. Functions with reserved
// concurrency have a limit of their own. All others share the rest of the account's limit. The zero value has the default limit.
type Concurrency struct {
	// Limit returns the account's quota. It may be nil.
	Limit func() int
	// Exhausted reports that other functions, which are not simulated, use all of the unreserved concurrency when a function is invoked.
	// It may be nil.
	Exhausted func(function string) bool
	// Metric is optional.
	Metric Metric

	mu       sync.Mutex
	running  map[string]int // by function
	reserved map[string]int // by function
}

// Begin counts an invocation that begins, until the caller calls end. The error is a TooManyRequestsException.
func (c *Concurrency) Begin(function string) (end func(), err error) {
	exhausted := c.Exhausted != nil && c.Exhausted(function)
	c.mu.Lock()
	reserved, isReserved := c.reserved[function]
	switch {
	case isReserved && c.running[function] >= reserved:
		err = throttledError(reasonReserved)
	case !isReserved && (exhausted || c.unreservedTotal() >= c.limit()-c.allReserved()):
		err = throttledError(reasonAccount)
	}
	if err == nil {
		if c.running == nil {
			c.running = map[string]int{}
		}
		c.running[function]++
	}
	samples := c.samples(function, exhausted)
	c.mu.Unlock()
	for _, record := range samples {
		record()
	}
	if err != nil {
		c.metric(function, "Throttles", 1)
		return nil, err
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running[function]--
	}, nil
}

// Reserve reserves concurrency for a function. nil ends its reservation.
func (c *Concurrency) Reserve(function string, n *int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == nil {
		delete(c.reserved, function)
		return nil
	}
	if *n > 0 && c.limit()-c.allReserved()+c.reserved[function]-*n < minUnreserved {
		return invalid("Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its "+
			"minimum value of [%d].", minUnreserved)
	}
	if c.reserved == nil {
		c.reserved = map[string]int{}
	}
	c.reserved[function] = *n
	return nil
}

func (c *Concurrency) limit() int {
	if c.Limit == nil {
		return DefaultConcurrency
	}
	return c.Limit()
}

// limits returns the account's limit, and what of it is not reserved.
func (c *Concurrency) limits() (all, unreserved int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit(), c.limit() - c.allReserved()
}

func (c *Concurrency) allReserved() (sum int) {
	for _, n := range c.reserved {
		sum += n
	}
	return sum
}

// unreservedTotal returns how many invocations share the unreserved concurrency.
func (c *Concurrency) unreservedTotal() (sum int) {
	for function, n := range c.running {
		if _, isReserved := c.reserved[function]; !isReserved {
			sum += n
		}
	}
	return sum
}

// samples returns what records the metrics of concurrency: those of the function and of the account.
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-concurrency.html
func (c *Concurrency) samples(function string, exhausted bool) []func() {
	if c.Metric == nil {
		return nil
	}
	all, unreserved := 0, c.unreservedTotal()
	for _, n := range c.running {
		all += n
	}
	if exhausted { // by functions that are not simulated
		others := max(0, c.limit()-c.allReserved()-unreserved)
		all, unreserved = all+others, unreserved+others
	}
	own, claimed := c.running[function], unreserved+c.allReserved()
	return []func(){
		func() { c.metric(function, "ConcurrentExecutions", float64(own)) },
		func() { c.metric("", "ConcurrentExecutions", float64(all)) },
		func() { c.metric("", "UnreservedConcurrentExecutions", float64(unreserved)) },
		func() { c.metric("", "ClaimedAccountConcurrency", float64(claimed)) },
	}
}

// metric records a metric of a function, or of the account if it is empty.
func (c *Concurrency) metric(function, name string, value float64) {
	if c.Metric == nil {
		return
	}
	dimensions := map[string]string{}
	if function != "" {
		dimensions["FunctionName"] = function
	}
	c.Metric("AWS/Lambda", name, dimensions, value, "Count")
}

func throttledError(reason string) error {
	return &iam.Error{Code: "TooManyRequestsException", Message: "Rate Exceeded.", Status: http.StatusTooManyRequests, Reason: reason}
}
