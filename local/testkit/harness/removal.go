package harness

// The removal of drover's cell stack and its deployment, as make destroy and make deploy do it. The base stack stays.

import (
	"slices"

	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/shared/names"
)

// BeginRemoval begins to remove drover: no rule matches an event, functions die at their next call, and all executions are stopped.
func (a *Account) BeginRemoval() {
	a.Events.setRemoved(true)
	a.Functions.Kill(func(Call) Death { return Before })
	a.StepFunctions.StopAll(names.Removed, "drover is being removed from the account")
}

// Undeploy removes drover, and returns when every execution has ended.
func (a *Account) Undeploy() {
	a.t.Helper()
	a.BeginRemoval()
	a.Until("every execution ends", func() bool {
		return !slices.ContainsFunc(a.StepFunctions.Executions(), func(x stepfunctions.Execution) bool { return x.Status == "RUNNING" })
	})
}

// Redeploy deploys drover again. It must find what happened since: no event arrives.
func (a *Account) Redeploy() {
	a.Functions.Kill(nil)
	a.Events.setRemoved(false)
}

func (b *Bus) setRemoved(removed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removed = removed
}
