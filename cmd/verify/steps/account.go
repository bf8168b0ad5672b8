package steps

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/names"
)

// checkAccount refuses an account and region in which drover is deployed, because the run removes it at its end.
func (t *Target) checkAccount(ctx context.Context, log *runner.Log) error {
	marked, err := t.Marked(ctx)
	if err != nil {
		return err
	}
	if len(marked) > 0 {
		return fmt.Errorf("another run did not finish its cleanup (%s): wait for it, or run make verify-clean", strings.Join(marked, ", "))
	}
	stacks, err := t.stacks(ctx)
	if err != nil {
		return err
	}
	for _, stack := range stacks {
		if stack == names.BaseStack || stack == names.CellStack {
			return fmt.Errorf("drover is deployed in this account and region (stack %s), and this run would remove it: "+
				"use a region or an account without drover", stack)
		}
	}
	if _, err := t.principal(ctx); err != nil {
		return err
	}
	log.Found("region %s; drover is not deployed here; the names of this run contain %s", t.Region, t.Suffix)
	return t.mark(ctx)
}
