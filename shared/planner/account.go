package planner

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// examineAccount stops the first creation of a cluster if the account cannot take it. It makes no call once a stack of the cluster holds
// resources: then the checks would count what the cluster itself uses.
func (p *Planner) examineAccount(ctx context.Context, o *Outcome) error {
	w := &o.work
	if p.Account == nil || len(o.Plan.Changes) == 0 || !stack.NothingCreated(w.deployed) {
		return nil
	}
	found, err := p.Account.Examine(ctx, w.resolved)
	if err != nil {
		return err
	}
	blocking := doctor.Blocking(found)
	if len(blocking) == 0 {
		return nil
	}
	var lines []string
	for _, f := range blocking {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", f.Check, f.Message, f.Fix))
	}
	return &Stop{status.ReasonAccountNotReady, fmt.Sprintf("the account cannot take this cluster, so nothing was created:\n%s\n"+
		"drover checks again every 15 minutes; to check at once, run drover converge %s", strings.Join(lines, "\n"), w.cluster)}
}
