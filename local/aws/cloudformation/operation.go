package cloudformation

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
)

// This file runs operations on stacks: what follows what when a stack is created, updated, rolled back or deleted.
// Resources are handled in converge.go.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html

// operation is one change of a stack under way.
type operation struct {
	service *Service
	stack   *stack
	token   string
	// caller is who CloudFormation acts as.
	caller iam.Caller
	// policy in force during the operation.
	policy          *stackPolicy
	disableRollback bool
	// skip are resources that ContinueUpdateRollback leaves alone, or that DeleteStack retains.
	skip map[string]bool
	// turnsBack is true while an update is rolled back.
	turnsBack bool
	// force makes DeleteStack retain what cannot be deleted.
	force bool
	done  chan struct{}

	// cancel ends the phase under way; under Service.mu. abandoned says that another operation has taken over, cancelled
	// that a person asked for a rollback.
	cancel               context.CancelFunc
	abandoned, cancelled bool
}

// How long CloudFormation's own steps take.
const (
	stepWork     = time.Second
	resourceWork = 300 * time.Millisecond
)

// Reasons of statuses, in CloudFormation's words.
const (
	userInitiated     = "User Initiated"
	creationCancelled = "Resource creation cancelled"
	updateCancelled   = "Resource update cancelled"
	initiated         = "Resource creation Initiated"
)

// start begins an operation: status at once, run in the background. It fails when another is running. s.mu is held.
func (s *Service) start(op *operation, status, reason string, run func(*operation)) {
	op.service = s
	op.done = make(chan struct{})
	op.stack.running = op
	s.setStack(op.stack, status, reason, op.token)
	turn := s.config.Clock.Ticket("cloudformation: " + op.stack.name)
	s.work.Go(func() {
		defer close(op.done)
		turn()
		run(op)
	})
}

// phase is the context of one phase of the operation: converging, rolling back, deleting.
func (o *operation) phase() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(o.service.ctx)
	o.service.mu.Lock()
	defer o.service.mu.Unlock()
	o.cancel = cancel
	if o.abandoned {
		cancel()
	}
	return ctx, cancel
}

// over tells that nobody waits for the operation's outcome any more.
func (o *operation) over() bool {
	o.service.mu.Lock()
	defer o.service.mu.Unlock()
	return o.abandoned || o.service.ctx.Err() != nil
}

// status sets the stack's status while the operation goes on.
func (o *operation) status(status, reason string) {
	o.service.mu.Lock()
	defer o.service.mu.Unlock()
	if !o.abandoned {
		o.service.setStack(o.stack, status, reason, o.token)
	}
}

// finish sets the stack's last status of this operation and makes way for the next. With settle, changes of the stack are
// made in the same instant.
func (o *operation) finish(status, reason string, settle func()) {
	o.service.mu.Lock()
	defer o.service.mu.Unlock()
	if o.abandoned {
		return
	}
	if settle != nil {
		settle()
	}
	o.stack.running = nil
	o.service.setStack(o.stack, status, reason, o.token)
}

// runCreate creates a stack.
func (o *operation) runCreate() {
	ctx, cancel := o.phase()
	defer cancel()
	if minutes := o.stack.timeout; minutes > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(minutes)*time.Minute)
		defer cancel()
	}
	failure := o.bringAbout(ctx, o.stack.current)
	switch {
	case o.over():
		return
	case failure == "":
		o.finish(createComplete, "", nil)
		return
	}
	if ctx.Err() == context.DeadlineExceeded {
		failure = "Stack creation time exceeded the specified timeout. " + failure
	}
	switch o.stack.onFailure {
	case "DO_NOTHING":
		o.finish(createFailed, failure, nil)
	case "DELETE":
		o.status(deleteInProgress, failure+"Delete requested by user.")
		o.deleteAll(true, deleteComplete, deleteFailed)
	default:
		o.status(rollbackInProgress, failure+"Rollback requested by user.")
		o.deleteAll(true, rollbackComplete, rollbackFailed)
	}
}

// runUpdate brings a stack from its previous revision to the current one.
func (o *operation) runUpdate() {
	ctx, cancel := o.phase()
	defer cancel()
	st := o.stack
	failure := o.bringAbout(ctx, st.current)
	if o.over() {
		return
	}
	if failure == "" {
		o.status(updateCleanup, "")
		o.cleanup()
		if o.over() {
			return
		}
		o.finish(updateComplete, "", st.settle)
		return
	}
	o.service.mu.Lock()
	cancelled := o.cancelled
	o.service.mu.Unlock()
	if o.disableRollback && !cancelled {
		o.finish(updateFailed, failure, nil)
		return
	}
	if cancelled {
		failure = userInitiated
	}
	o.status(updateRollbackInProgress, failure)
	o.runUpdateRollback()
}

// settle forgets what a rollback would go back to. The service's lock is held.
func (st *stack) settle() {
	st.previous = nil
	for _, r := range st.resources {
		r.before = nil
	}
}

// runUpdateRollback brings a stack back to its previous revision. Its status is UPDATE_ROLLBACK_IN_PROGRESS.
func (o *operation) runUpdateRollback() {
	ctx, cancel := o.phase()
	defer cancel()
	st := o.stack
	target := st.previous
	o.turnsBack = true
	failed := o.converge(ctx, target, true)
	failure := failureReason(failed)
	if failure == "" {
		failure = o.settleOutputs(target)
	}
	switch {
	case o.over():
		return
	case failure != "":
		o.finish(updateRollbackFailed, failure, nil)
		return
	}
	o.service.mu.Lock()
	st.current = target
	st.settle()
	o.service.mu.Unlock()
	o.status(updateRollbackCleanup, "")
	o.cleanup()
	if !o.over() {
		o.finish(updateRollbackComplete, "", nil)
	}
}

// runDelete deletes a stack, after the operation that it interrupts has stopped.
func (o *operation) runDelete(interrupted *operation) {
	if interrupted != nil {
		<-interrupted.done
		o.service.config.Clock.Take("cloudformation: " + o.stack.name)
	}
	if reason := o.exportsInUse(); reason != "" {
		o.finish(deleteFailed, reason, nil)
		return
	}
	o.deleteAll(false, deleteComplete, deleteFailed)
}

// exportsInUse tells why exports forbid deleting the stack; empty when they do not.
func (o *operation) exportsInUse() string {
	s := o.service
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, output := range o.stack.outputs {
		if users := s.importers(output.ExportName); output.ExportName != "" && len(users) > 0 {
			return "Export " + output.ExportName + " cannot be deleted as it is in use by " + strings.Join(users, " and ")
		}
	}
	return ""
}

// bringAbout converges resources and outputs; it returns why it could not, or nothing.
func (o *operation) bringAbout(ctx context.Context, target *revision) string {
	if err := o.service.config.Clock.Work(ctx, stepWork); err != nil {
		return "Operation cancelled. "
	}
	failed := o.converge(ctx, target, false)
	if reason := failureReason(failed); reason != "" {
		return reason
	}
	if ctx.Err() != nil {
		return "Operation cancelled. "
	}
	if reason := o.settleOutputs(target); reason != "" {
		return reason + ". "
	}
	return ""
}

// failureReason is how a stack's status names the resources that failed.
func failureReason(failed map[string]error) string {
	var created, updated []string
	for name, err := range failed {
		if f, ok := err.(*resourceFailure); ok && f.creating {
			created = append(created, name)
		} else {
			updated = append(updated, name)
		}
	}
	slices.Sort(created)
	slices.Sort(updated)
	reason := ""
	if len(created) > 0 {
		reason += "The following resource(s) failed to create: [" + strings.Join(created, ", ") + "]. "
	}
	if len(updated) > 0 {
		reason += "The following resource(s) failed to update: [" + strings.Join(updated, ", ") + "]. "
	}
	return reason
}

// settleOutputs evaluates the outputs of a revision; it returns why it could not.
func (o *operation) settleOutputs(target *revision) string {
	s, st := o.service, o.stack
	scope := o.scope(target)
	var outputs []Output
	for _, name := range sortedKeys(target.template.Outputs) {
		declared := target.template.Outputs[name]
		if !scope.Holds(declared.Condition) {
			continue
		}
		value, err := scope.Value(declared.Value)
		if err != nil {
			return reasonOf(err)
		}
		output := Output{OutputKey: name, OutputValue: outputText(value), Description: declared.Description}
		if declared.Export != nil {
			export, err := scope.Value(declared.Export)
			if err != nil {
				return reasonOf(err)
			}
			output.ExportName = outputText(export)
		}
		outputs = append(outputs, output)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	exported := map[string]string{}
	for _, output := range outputs {
		if output.ExportName == "" {
			continue
		}
		if other, _, there := s.export(output.ExportName); there && other != st {
			return "Export with name " + output.ExportName + " is already exported by stack " + other.name
		}
		exported[output.ExportName] = output.OutputValue
	}
	for _, old := range st.outputs {
		users := slices.DeleteFunc(s.importers(old.ExportName), func(name string) bool { return name == st.name })
		value, still := exported[old.ExportName]
		switch {
		case old.ExportName == "" || len(users) == 0:
		case !still:
			return "Export " + old.ExportName + " cannot be deleted as it is in use by " + strings.Join(users, " and ")
		case value != old.OutputValue:
			return "Export " + old.ExportName + " cannot be updated as it is in use by " + strings.Join(users, " and ")
		}
	}
	st.outputs = outputs
	return ""
}

// cleanup deletes what the stack does not need any more: what was replaced or removed. Failures are in the events only.
func (o *operation) cleanup() {
	ctx, cancel := o.phase()
	defer cancel()
	s, st := o.service, o.stack
	s.mu.Lock()
	active := map[string]bool{}
	for _, name := range st.current.scope.Active() {
		active[name] = true
	}
	leftovers := st.leftovers
	st.leftovers = nil
	for _, name := range sortedKeys(st.resources) {
		r := st.resources[name]
		for old := r.replaced; old != nil; old = old.replaced {
			if r.updateReplacePolicy == "Delete" {
				leftovers = append(leftovers, &leftover{stackResource: old})
			} else {
				leftovers = append(leftovers, &leftover{stackResource: old, retain: true})
			}
		}
		r.replaced = nil
		if !active[name] {
			leftovers = append(leftovers, &leftover{stackResource: r, retain: retains(r.deletionPolicy)})
			delete(st.resources, name)
		}
	}
	s.mu.Unlock()
	o.deleteResources(ctx, leftovers)
}

// deleteAll deletes every resource of the stack. After a failed creation, policies RetainExceptOnCreate do not retain.
func (o *operation) deleteAll(creating bool, complete, failedStatus string) {
	ctx, cancel := o.phase()
	defer cancel()
	if err := o.service.config.Clock.Work(ctx, stepWork); err != nil && o.over() {
		return
	}
	s, st := o.service, o.stack
	s.mu.Lock()
	all := st.leftovers
	st.leftovers = nil
	for _, name := range sortedKeys(st.resources) {
		r := st.resources[name]
		if r.exists() {
			all = append(all, &leftover{stackResource: r, retain: o.skip[name] || o.retainsOnDelete(r, creating)})
		}
		for old := r.replaced; old != nil; old = old.replaced {
			all = append(all, &leftover{stackResource: old, retain: r.updateReplacePolicy != "Delete"})
		}
		r.replaced = nil
	}
	s.mu.Unlock()
	failed := o.deleteResources(ctx, all)
	switch {
	case o.over():
		return
	case len(failed) > 0:
		o.finish(failedStatus, "The following resource(s) failed to delete: ["+strings.Join(failed, ", ")+"]. ", nil)
		return
	}
	o.finish(complete, "", func() {
		st.previous = nil
		if complete != deleteComplete {
			return
		}
		delete(s.live, st.name)
		maps.DeleteFunc(s.changeSets, func(_ string, set *changeSet) bool { return set.stack == st && set.execution != executeComplete })
	})
}

func (o *operation) retainsOnDelete(r *stackResource, creating bool) bool {
	if creating && (r.deletionPolicy == "RetainExceptOnCreate" || o.stack.current.retainExceptOnCreate) {
		return false
	}
	return retains(r.deletionPolicy)
}
