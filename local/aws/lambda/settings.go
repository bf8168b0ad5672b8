package lambda

// The limits of the account. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html

import (
	"context"

	"github.com/drover-run/drover/local/engine/wire"
)

const (
	// maxStored is what the code of all functions may take together, in bytes.
	maxStored = 75 << 30
	// maxZipped and maxUnzipped limit the code of one function, in bytes. GetAccountSettings reports maxZipped for an upload by the API.
	maxZipped, maxUnzipped = 50 << 20, 250 << 20
)

// https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
func (s *Service) getAccountSettings(_ context.Context, c *wire.Call) (any, error) {
	if err := c.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type limit struct {
		CodeSizeUnzipped, CodeSizeZipped, ConcurrentExecutions, TotalCodeSize, UnreservedConcurrentExecutions int
	}
	type usage struct{ FunctionCount, TotalCodeSize int }
	all, unreserved := s.Concurrency.limits()
	out := struct {
		AccountLimit limit
		AccountUsage usage
	}{AccountLimit: limit{maxUnzipped, maxZipped, all, maxStored, unreserved}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.functions {
		f.mu.Lock()
		out.AccountUsage.FunctionCount++
		out.AccountUsage.TotalCodeSize += f.code.size
		f.mu.Unlock()
	}
	return out, nil
}
