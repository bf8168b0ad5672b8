package cloudformation

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
)

// The sequence of operations on stacks: creation, update, rollback and deletion. converge.go has the changes of resources.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html

// operation is a running change of a stack.
type operation struct {
	service *Service
	stack   *stack
	token   string
	// caller is the identity that CloudFormation uses.
	caller iam.Caller
	// policy in force during the operation.
	policy          *stackPolicy
	disableRollback bool
	// skip are the resources that ContinueUpdateRollback skips or DeleteStack retains.
	skip map[string]bool
	// rollingBack reports whether an update is rolled back.
	rollingBack bool
	// force makes DeleteStack retain resources that it cannot delete.
	force bool
	done  chan struct{}

	// cancel ends the current phase. Service.mu guards it. abandoned reports whether another operation took over, cancelled whether a user
	// requested a rollback.
	cancel               context.CancelFunc
	abandoned, cancelled bool
}

// Durations of CloudFormation's own steps.
const (
	stepWork     = time.Second
	resourceWork = 300 * time.Millisecond
)

// Status reasons, in CloudFormation's words.
const (
	userInitiated     = "User Initiated"
	creationCancelled = "Resource creation cancelled"
	updateCancelled   = "Resource update cancelled"
	initiated         = "Resource creation Initiated"
)

// start sets the status and runs an operation in the background. No other operation may be running. The caller holds s.mu.
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

// phase returns the context of a phase: converging, rolling back or deleting.
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

// superseded reports whether another operation took over or the service stopped.
func (o *operation) superseded() bool {
	o.service.mu.Lock()
	defer o.service.mu.Unlock()
	return o.abandoned || o.service.ctx.Err() != nil
}

// status sets the stack's status during the operation.
func (o *operation) status(status, reason string) {
	o.service.mu.Lock()
	defer o.service.mu.Unlock()
	if !o.abandoned {
		o.service.setStack(o.stack, status, reason, o.token)
	}
}

// finish sets the stack's final status and ends the operation. It calls settle, if any, under the same lock.
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
	failure := o.convergeAll(ctx, o.stack.current)
	switch {
	case o.superseded():
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

// runUpdate changes a stack from its previous revision to the current one.
func (o *operation) runUpdate() {
	ctx, cancel := o.phase()
	defer cancel()
	st := o.stack
	failure := o.convergeAll(ctx, st.current)
	if o.superseded() {
		return
	}
	if failure == "" {
		o.status(updateCleanup, "")
		o.cleanup()
		if o.superseded() {
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

// settle discards the state for a rollback. The caller holds the service's lock.
func (st *stack) settle() {
	st.previous = nil
	for _, r := range st.resources {
		r.before = nil
	}
}

// runUpdateRollback restores a stack's previous revision. The stack's status is UPDATE_ROLLBACK_IN_PROGRESS.
func (o *operation) runUpdateRollback() {
	ctx, cancel := o.phase()
	defer cancel()
	st := o.stack
	target := st.previous
	o.rollingBack = true
	failed := o.converge(ctx, target, true)
	failure := failureReason(failed)
	if failure == "" {
		failure = o.settleOutputs(target)
	}
	switch {
	case o.superseded():
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
	if !o.superseded() {
		o.finish(updateRollbackComplete, "", nil)
	}
}

// runDelete deletes a stack after the interrupted operation has stopped.
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

// exportsInUse returns the reason why exports prevent deleting the stack, if any.
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

// convergeAll changes resources and outputs. It returns the reason of a failure, if any.
func (o *operation) convergeAll(ctx context.Context, target *revision) string {
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

// failureReason names the failed resources in a stack's status.
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

// settleOutputs evaluates the outputs of a revision. It returns the reason of a failure, if any.
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
		if other, _, found := s.export(output.ExportName); found && other != st {
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

// cleanup deletes replaced and removed resources. Failures appear in the events only.
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

// deleteAll deletes every resource of the stack. After a failed creation, the policy RetainExceptOnCreate does not retain.
func (o *operation) deleteAll(creating bool, complete, failedStatus string) {
	ctx, cancel := o.phase()
	defer cancel()
	if err := o.service.config.Clock.Work(ctx, stepWork); err != nil && o.superseded() {
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
	case o.superseded():
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
