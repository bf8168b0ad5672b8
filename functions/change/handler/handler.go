// Package handler implements the change function, which changes one stack of a plan. It checks the change set before it executes it,
// registers the waiter of the task, and returns. The stack's event resumes the task. It decides by the present state of the stack alone, so
// that any call may be repeated after an interruption.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State holds plans, leases, waiters and statuses: a subset of store.State.
type State interface {
	GetJSON(ctx context.Context, key string, v any) (etag string, err error)
	CheckLease(ctx context.Context, cluster, execution string, fence int64) error
	PutWaiter(ctx context.Context, w store.Waiter) (store.Waiter, error)
	DeleteWaiter(ctx context.Context, w store.Waiter) error
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Stacks is CloudFormation: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
	CreateChangeSet(ctx context.Context, change plan.Change, create bool, templateURL string, parameters map[string]string,
		token string) (stack.ChangeSet, error)
	PrepareParameters(ctx context.Context, change plan.Change, deployed stack.Deployed, templateURL string, parameters map[string]string,
		note, token string) (stack.ChangeSet, error)
	Execute(ctx context.Context, change plan.Change, set stack.ChangeSet, token string) error
	ContinueRollback(ctx context.Context, stackName, token string, skip []string) error
	Delete(ctx context.Context, stackName, token string) error
	Protect(ctx context.Context, stackName string, on bool) error
	Deleted(ctx context.Context, stackName, resource string) (bool, error)
	UpdateFailed(ctx context.Context, stackName, resource string) (bool, error)
}

// Clusters checks whether an EKS cluster exists: a subset of eks.Reader.
type Clusters interface {
	Exists(ctx context.Context, eksCluster string) (bool, error)
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	Describe(ctx context.Context, name string) (pool.Group, bool, error)
	ActivityStarts(ctx context.Context, name string, instances []string) (map[string]time.Time, error)
}

// Handler changes stacks.
type Handler struct {
	Specs    Specs
	State    State
	Stacks   Stacks
	Clusters Clusters
	Groups   Groups
	Resume   *waiter.Resumer
	Now      func() time.Time
	// TemplateBase is the URL of the state bucket, as CloudFormation reads it.
	TemplateBase string
}

// Handle starts one change. The task that called it continues when the stack is idle.
func (h *Handler) Handle(ctx context.Context, in events.ChangeRequest) (struct{}, error) {
	var p plan.Plan
	if _, err := h.State.GetJSON(ctx, in.PlanKey, &p); err != nil {
		return struct{}{}, err
	}
	change, ok := p.Find(in.Stack)
	if !ok {
		return struct{}{}, fmt.Errorf("plan %s has no change of stack %s", in.PlanKey, in.Stack)
	}
	if err := h.State.CheckLease(ctx, in.Cluster, in.Execution, in.Fence); err != nil {
		return struct{}{}, err
	}
	if err := h.refuseSuperseded(ctx, in.Cluster, p); err != nil {
		return struct{}{}, err
	}
	c := &call{Handler: h, in: in, change: change, token: change.Token(p.SpecVersion, in.Fence)}
	if in.Repeats != nil && *in.Repeats > 0 { // a late event of the first operation does not resume this task
		c.token += "-repeated"
		if *in.Repeats > 1 {
			c.token += fmt.Sprintf("-%d", *in.Repeats)
		}
	}
	err := c.run(ctx)
	if err != nil {
		err = c.handleFailure(ctx, err)
	}
	return struct{}{}, err
}

// call is one call of the function.
type call struct {
	*Handler
	in     events.ChangeRequest
	change plan.Change
	token  string
	// readAt is when run described the stack.
	readAt time.Time
	// inPlace reports that the change leaves the nodes of a pool as they are: see isInPlace.
	inPlace bool
	// registered is the waiter of the task, once this call has registered it.
	registered store.Waiter
}

// handleFailure checks whether AWS refused a call because another operation on the stack started first. The task then waits for that
// operation. Otherwise the task fails, and its waiter is deleted.
func (c *call) handleFailure(ctx context.Context, err error) error {
	var named fault.Named // drover's own decision, not an answer of AWS
	if !errors.As(err, &named) {
		if deployed, describeErr := c.Stacks.Describe(ctx, c.change.StackName); describeErr == nil && stack.InProgress(deployed.Status) {
			logging.From(ctx).Info("another operation started first", "stack", c.change.StackName, "status", deployed.Status, "error", err.Error())
			return c.waitForOperation(ctx)
		}
	}
	if deleteErr := c.State.DeleteWaiter(ctx, c.registered); deleteErr != nil { // the sweep deletes it
		logging.From(ctx).Warn("deleting the waiter failed", "stack", c.change.StackName, "error", deleteErr.Error())
	}
	return err
}

// run decides by the stack's status what the task does.
func (c *call) run(ctx context.Context) error {
	c.readAt = c.Now()
	deployed, err := c.Stacks.Describe(ctx, c.change.StackName)
	if err != nil {
		return err
	}
	logging.From(ctx).Info("changing a stack", "stack", c.change.StackName, "operation", c.change.Operation, "status", deployed.Status)
	switch {
	case stack.InProgress(deployed.Status):
		// The operation is an earlier attempt's or another caller's. In both cases the task waits for it, and then runs again.
		return c.waitForOperation(ctx)
	case c.change.InFlight:
		return &fault.Superseded{
			Cause: fmt.Errorf("stack %s was being changed during planning, and that operation has ended: %s", c.change.StackName, deployed.Status),
		}
	case c.change.Operation == plan.Delete:
		if stack.Absent(deployed.Status) && deployed.Status != stack.InReview {
			return c.resumeNow(ctx, deployed.Status)
		}
		return c.delete(ctx, deployed, false)
	case stack.MustRecreate(deployed.Status):
		if err := c.verifyEmpty(ctx, deployed); err != nil {
			return err
		}
		return c.delete(ctx, deployed, true)
	case deployed.Status == stack.UpdateRollbackFailed:
		return c.continueRollback(ctx, deployed)
	case c.isFoundation() && !c.change.CreatesFoundation() && stack.Absent(deployed.Status):
		return &fault.Superseded{Cause: fmt.Errorf("stack %s existed during planning, and no longer exists", c.change.StackName)}
	}
	if err := c.refuseDuplicate(ctx, deployed); err != nil {
		return err
	}
	if reason, missing := c.change.MissingTag(deployed); missing { // an external change removed it after planning
		return &fault.ChangeRefused{Cause: errors.New(reason.Line())}
	}
	parameters, err := c.parameters(ctx, deployed)
	if err != nil {
		return err
	}
	if stack.Settled(deployed.Status) && !c.beginsRepair(deployed) && c.isUpToDate(deployed, parameters) {
		return c.resumeNow(ctx, deployed.Status)
	}
	if pace := c.change.Pace; pace != nil {
		maps.Copy(parameters, pace.WithoutReplacement(deployed.Parameters))
	}
	if c.inPlace, err = c.isInPlace(ctx, deployed, parameters); err != nil {
		return err
	}
	if c.change.Nodes != nil {
		maps.Copy(parameters, plan.NodesParameters(c.change.Nodes, deployed, parameters))
	}
	return c.execute(ctx, deployed, parameters)
}

// isUpToDate reports whether the stack already has the parameters, tags and protection of the change.
func (c *call) isUpToDate(deployed stack.Deployed, parameters map[string]string) bool {
	for key, value := range parameters {
		if deployed.Parameters[key] != value {
			return false
		}
	}
	if pace := c.change.Pace; pace != nil && deployed.Parameters[render.MaxSize] != pace.WithoutReplacement(nil)[render.MaxSize] {
		return false
	}
	for key, value := range c.change.Tags {
		if key != names.TagSpecVersion && deployed.Tags[key] != value {
			return false
		}
	}
	return deployed.TerminationProtection == c.change.Protected
}

// beginsRepair reports whether the next update of the stack removes what was deleted outside drover. The update after it adds that again.
// It also marks the stack, so that a repeated call does not repair twice.
func (c *call) beginsRepair(deployed stack.Deployed) bool {
	return c.change.RepairKey != "" && deployed.Tags[names.TagChecksum] != names.ChecksumRepair && deployed.Tags[names.TagSettled] != c.token
}

// isFoundation reports whether all other stacks depend on this one. If such a stack was deleted after planning, only a new plan can
// decide what to create, and what to delete first.
func (c *call) isFoundation() bool {
	return c.change.Stack == names.Network || c.change.Stack == names.ControlPlane
}

// refuseDuplicate refuses to create a network or a control plane while the EKS cluster still exists. That is so if its stack was deleted
// after planning. See ADR 19.
func (c *call) refuseDuplicate(ctx context.Context, deployed stack.Deployed) error {
	if !c.isFoundation() || !stack.Absent(deployed.Status) {
		return nil
	}
	exists, err := c.Clusters.Exists(ctx, names.EKSCluster(c.in.Cluster))
	if err != nil || !exists {
		return err
	}
	return &fault.Superseded{
		Cause: fmt.Errorf("stack %s is absent, and the EKS cluster %s exists", c.change.StackName, names.EKSCluster(c.in.Cluster)),
	}
}

// parameters returns the parameters of the change. It reads the outputs of other stacks that this one uses. A parameter from a stack that
// no longer exists keeps its deployed value.
func (c *call) parameters(ctx context.Context, deployed stack.Deployed) (map[string]string, error) {
	values, outputs := map[string]string{}, map[string]map[string]string{}
	for _, parameter := range c.change.Parameters {
		if parameter.From == nil {
			values[parameter.Name] = parameter.Value
			continue
		}
		from := parameter.From.Stack
		if outputs[from] == nil {
			other, err := c.Stacks.Describe(ctx, names.Stack(c.in.Cluster, from))
			if err != nil {
				return nil, err
			}
			if outputs[from] = other.Outputs; stack.Absent(other.Status) {
				outputs[from] = nil
			}
		}
		value, ok := parameter.From.Value(outputs[from])
		if current, found := deployed.Parameters[parameter.Name]; found && outputs[from] == nil {
			value, ok = current, true
		}
		if !ok {
			return nil, &fault.StackFailed{Cause: fmt.Errorf("stack %s needs output %s of stack %s, which does not have it: its last change failed",
				c.change.StackName, parameter.From.Output, names.Stack(c.in.Cluster, from))}
		}
		values[parameter.Name] = value
	}
	return values, nil
}

// execute creates the change set, checks it, and executes it.
func (c *call) execute(ctx context.Context, deployed stack.Deployed, parameters map[string]string) error {
	creating, token, again := stack.Absent(deployed.Status), c.tokenOf(parameters), false
	switch {
	case creating:
		again = setFirstValues(c.change.Parameters, parameters)
	case c.beginsRepair(deployed): // this execution may have updated the stack before, with the token
		token = "repair-" + token
		again, c.change.TemplateKey, c.change.Tags[names.TagChecksum] = true, c.change.RepairKey, names.ChecksumRepair
	case c.change.RepairKey != "":
		token, c.change.Tags[names.TagSettled] = "then-"+token, c.token
	case c.change.Operation == plan.Create: // the second change of a stack that was just created
		token = "then-" + token
	}
	set, err := c.prepare(ctx, deployed, parameters, token)
	if err != nil {
		return err
	}
	// A rollback leaves another version of the launch template. Any update may then replace nodes with it.
	if c.change.Pace != nil && !creating && (mayReplaceNodes(set.Changes) || !stack.Settled(deployed.Status)) {
		apply := c.applyPace
		if c.inPlace {
			apply = c.keepNodes
		}
		var later bool
		if set, later, err = apply(ctx, deployed, parameters, set); err != nil || later {
			return err
		}
		token = c.tokenOf(parameters)
	} else if later, err := c.waitBeforeShrinking(ctx, deployed, parameters); err != nil || later {
		return err
	}
	if err := Guard(c.change.StackName, set.Changes); err != nil {
		return err
	}
	switch {
	case deployed.TerminationProtection == c.change.Protected:
	case deployed.TerminationProtection && !set.Empty:
		// The protection is switched off after the change. A deletion before that would retain the stack's resources.
		again = true
	default:
		if err := c.protect(ctx, c.change.Protected); err != nil {
			return err
		}
	}
	if set.Empty && !stack.Settled(deployed.Status) {
		// A rollback restored exactly the desired state. Only a successful update settles the stack, and changing a tag is one.
		c.change.Tags[names.TagSettled] = c.token
		token = "settle-" + token
		if set, err = c.prepare(ctx, deployed, parameters, token); err != nil {
			return err
		}
	}
	if set.Empty {
		return c.resumeNow(ctx, deployed.Status)
	}
	if err := c.register(ctx, token, again); err != nil {
		return err
	}
	return c.Stacks.Execute(ctx, c.change, set, token)
}

// tokenOf returns the token of the change with certain parameters. With the same token, CloudFormation would take a second change of the
// same execution for the first one if they differ only in parameters.
func (c *call) tokenOf(parameters map[string]string) string {
	body, _ := json.Marshal(parameters) // strings, in the order of their keys
	return c.token + "-" + names.SHA256(body)[:12]
}

// prepare creates the change set.
func (c *call) prepare(
	ctx context.Context, deployed stack.Deployed, parameters map[string]string, token string,
) (stack.ChangeSet, error) {
	creating, key := stack.Absent(deployed.Status), c.change.TemplateKey
	if creating && c.change.FirstKey != "" {
		key = c.change.FirstKey
	}
	address, err := url.JoinPath(c.TemplateBase, key)
	if err != nil {
		return stack.ChangeSet{}, err
	}
	return c.Stacks.CreateChangeSet(ctx, c.change, creating, address, parameters, token)
}

// setFirstValues sets the values that parameters have while a stack is created, and reports whether there are any. The stack must then
// change again after its creation.
func setFirstValues(parameters []render.Parameter, values map[string]string) (again bool) {
	for _, parameter := range parameters {
		if parameter.AtFirst != "" {
			values[parameter.Name], again = parameter.AtFirst, true
		}
	}
	return again
}

// protect switches termination protection, if the lease is still held. Creating a change set may have taken a minute.
func (c *call) protect(ctx context.Context, on bool) error {
	if err := c.State.CheckLease(ctx, c.in.Cluster, c.in.Execution, c.in.Fence); err != nil {
		return err
	}
	return c.Stacks.Protect(ctx, c.change.StackName, on)
}

// delete deletes a stack, because the change is its deletion or because drover must recreate it.
func (c *call) delete(ctx context.Context, deployed stack.Deployed, recreate bool) error {
	if deployed.TerminationProtection {
		if !recreate {
			return &fault.ChangeRefused{Cause: fmt.Errorf("stack %s has termination protection", c.change.StackName)}
		}
		// A stack that drover must recreate holds nothing to protect: see verifyEmpty.
		if err := c.protect(ctx, false); err != nil {
			return err
		}
	}
	// Each attempt has its own token, so that the late event of a failed attempt does not resume the next one.
	token := "delete-" + names.SHA256([]byte(c.in.TaskToken))[:40]
	if err := c.register(ctx, token, recreate); err != nil {
		return err
	}
	return c.Stacks.Delete(ctx, c.change.StackName, token)
}

// continueRollback continues a failed rollback: CloudFormation allows nothing else with such a stack. If that fails too, the task fails.
// The rollback of a pool waits for drains first. It would take its next batch at once, and slow drains may be why it failed. A relay that
// was deleted outside drover cannot be rolled back, so it is skipped. The repair recreates it afterwards.
func (c *call) continueRollback(ctx context.Context, deployed stack.Deployed) error {
	if c.change.Pace != nil {
		group, _, err := c.Groups.Describe(ctx, c.change.Pace.Group)
		if err != nil {
			return err
		}
		if later, err := c.waitForDrains(ctx, rollbackMessage, group, deployed.Status, false); err != nil || later {
			return err
		}
	}
	var skip []string
	if c.change.RepairKey != "" {
		failed, err := c.Stacks.UpdateFailed(ctx, c.change.StackName, names.RelayResource)
		if err != nil {
			return err
		}
		if failed {
			skip = []string{names.RelayResource}
		}
	}
	w := c.waiter("rollback-"+c.token, true)
	w.Wants = stack.UpdateRollbackComplete
	if err := c.registerWaiter(ctx, w); err != nil {
		return err
	}
	return c.Stacks.ContinueRollback(ctx, c.change.StackName, w.ClientRequestToken, skip)
}

// waitForOperation waits for the operation in flight, after which the task runs again. If the operation ended before the waiter was
// registered, its event found no waiter. The task then resumes at once.
func (c *call) waitForOperation(ctx context.Context) error {
	if err := c.register(ctx, "", true); err != nil {
		return err
	}
	read := c.Now()
	deployed, err := c.Stacks.Describe(ctx, c.change.StackName)
	if err != nil || stack.InProgress(deployed.Status) {
		return err
	}
	return c.Resume.Resume(ctx, c.registered, status.StackReport{Status: deployed.Status, At: read})
}

// resumeNow resumes the task, which has nothing to wait for, with the status that this call read.
func (c *call) resumeNow(ctx context.Context, stackStatus string) error {
	return c.Resume.Resume(ctx, c.waiter("", false), status.StackReport{Status: stackStatus, At: c.readAt})
}

// waiter returns the waiter of the task. If again is true, the task runs again after the operation.
func (c *call) waiter(token string, again bool) store.Waiter {
	w := store.Waiter{
		Cluster: c.in.Cluster, Stack: c.change.Stack, StackName: c.change.StackName, ClientRequestToken: token, Again: again,
		TaskToken: c.in.TaskToken, Execution: c.in.Execution, Fence: c.in.Fence, Repeats: c.in.Repeats,
	}
	if c.in.WaitedSeconds != nil {
		w.WaitedSeconds = *c.in.WaitedSeconds
	}
	return w
}

// register registers a waiter for the operation with a token, or for any operation if the token is "".
func (c *call) register(ctx context.Context, token string, again bool) error {
	return c.registerWaiter(ctx, c.waiter(token, again))
}

// registerWaiter writes the waiter before the operation starts, so that no event is missed. It checks the lease first: after a takeover,
// the task neither replaces the new holder's waiter nor changes the stack.
func (c *call) registerWaiter(ctx context.Context, w store.Waiter) (err error) {
	if err := c.State.CheckLease(ctx, c.in.Cluster, c.in.Execution, c.in.Fence); err != nil {
		return err
	}
	if w, err = c.State.PutWaiter(ctx, w); err == nil {
		c.registered = w
	}
	return err
}
