// Package handler implements the change function, which changes one stack of a plan. It checks the change set before it executes it,
// registers the waiter of the step, and returns. The stack's event resumes the step. It decides by the present state of the stack alone, so
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
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State is what the function keeps: a subset of store.State.
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
	Prepare(ctx context.Context, change plan.Change, create bool, templateURL string, parameters map[string]string,
		token string) (stack.ChangeSet, error)
	PrepareParameters(ctx context.Context, change plan.Change, now stack.Deployed, templateURL string, parameters map[string]string,
		note, token string) (stack.ChangeSet, error)
	Execute(ctx context.Context, change plan.Change, set stack.ChangeSet, token string) error
	ContinueRollback(ctx context.Context, stackName, token string) error
	Delete(ctx context.Context, stackName, token string) error
	Protect(ctx context.Context, stackName string, on bool) error
	Deleted(ctx context.Context, stackName, resource string) (bool, error)
}

// Clusters tells whether an EKS cluster is there: a subset of eks.Versions.
type Clusters interface {
	Exists(ctx context.Context, eksCluster string) (bool, error)
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	Describe(ctx context.Context, name string) (pool.Group, bool, error)
	Began(ctx context.Context, name string, instances []string) (map[string]time.Time, error)
}

// Handler changes stacks.
type Handler struct {
	Specs    Specs
	State    State
	Stacks   Stacks
	Clusters Clusters
	Groups   Groups
	Resume   *waiter.Resumer
	// TemplateBase is the URL of the state bucket, as CloudFormation reads it.
	TemplateBase string
}

// Handle begins one change. The step that called it goes on when the stack is at rest.
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
	if err := h.superseded(ctx, in.Cluster, p); err != nil {
		return struct{}{}, err
	}
	s := &step{Handler: h, in: in, change: change, token: change.Token(p.SpecVersion, in.Fence)}
	err := s.run(ctx)
	if err != nil {
		err = s.recover(ctx, err)
	}
	return struct{}{}, err
}

// step is one call of the function.
type step struct {
	*Handler
	in     events.ChangeRequest
	change plan.Change
	token  string
	// waiting is who waits for the stack, once that was said.
	waiting store.Waiter
}

// recover looks whether AWS refused a call because somebody else's operation on the stack was quicker: then it is waited for.
// Otherwise the step fails with this call, and nobody waits.
func (s *step) recover(ctx context.Context, err error) error {
	var decided fault.Named
	if !errors.As(err, &decided) {
		if now, describing := s.Stacks.Describe(ctx, s.change.StackName); describing == nil && stack.InProgress(now.Status) {
			logging.From(ctx).Info("another operation was quicker", "stack", s.change.StackName, "status", now.Status, "error", err.Error())
			return s.wait(ctx)
		}
	}
	if forgetting := s.State.DeleteWaiter(ctx, s.waiting); forgetting != nil {
		logging.From(ctx).Warn("a waiter stays until the sweep", "stack", s.change.StackName, "error", forgetting.Error())
	}
	return err
}

func (s *step) run(ctx context.Context) error {
	now, err := s.Stacks.Describe(ctx, s.change.StackName)
	if err != nil {
		return err
	}
	logging.From(ctx).Info("changing a stack", "stack", s.change.StackName, "operation", s.change.Operation, "status", now.Status)
	switch {
	case stack.InProgress(now.Status):
		// An earlier try's operation or somebody else's: wait for it, whichever it is, and look again.
		return s.wait(ctx)
	case s.change.Moving:
		return &fault.Superseded{
			Cause: fmt.Errorf("stack %s was being changed when this was planned, and that is over: %s", s.change.StackName, now.Status),
		}
	case s.change.Operation == plan.Delete:
		if stack.Absent(now.Status) && now.Status != stack.InReview {
			return s.done(ctx, now.Status)
		}
		return s.delete(ctx, now, false)
	case stack.MustRecreate(now.Status):
		if err := s.holdsNothing(ctx, now); err != nil {
			return err
		}
		return s.delete(ctx, now, true)
	case now.Status == "UPDATE_ROLLBACK_FAILED":
		return s.rollBack(ctx, now)
	case s.founds() && !s.change.Founds() && stack.Absent(now.Status):
		return &fault.Superseded{Cause: fmt.Errorf("stack %s was there when this was planned, and is gone", s.change.StackName)}
	}
	if err := s.beside(ctx, now); err != nil {
		return err
	}
	if reason, missing := s.change.MissingTag(now); missing { // removed since planning
		return &fault.ChangeRefused{Cause: errors.New(reason.Line())}
	}
	parameters, err := s.parameters(ctx, now)
	if err != nil {
		return err
	}
	if stack.Settled(now.Status) && s.is(now, parameters) {
		return s.done(ctx, now.Status)
	}
	if pace := s.change.Pace; pace != nil {
		maps.Copy(parameters, pace.Resting(now.Parameters))
	}
	return s.execute(ctx, now, parameters)
}

// is says whether a stack is what the change wants already.
func (s *step) is(now stack.Deployed, parameters map[string]string) bool {
	for key, value := range parameters {
		if now.Parameters[key] != value {
			return false
		}
	}
	if pace := s.change.Pace; pace != nil && now.Parameters[render.MaxSize] != pace.Resting(nil)[render.MaxSize] {
		return false
	}
	for key, value := range s.change.Tags {
		if key != names.TagSpecVersion && now.Tags[key] != value {
			return false
		}
	}
	return now.TerminationProtection == s.change.Protected
}

// founds says that all that comes after a stack lives and goes with it. Where it is gone, the next plan says what may
// be made, and what has to go before.
func (s *step) founds() bool {
	return s.change.Stack == names.Network || s.change.Stack == names.ControlPlane
}

// beside makes no network or control plane beside an EKS cluster that is there: its stack was deleted again since it was planned.
func (s *step) beside(ctx context.Context, now stack.Deployed) error {
	if !s.founds() || !stack.Absent(now.Status) {
		return nil
	}
	alive, err := s.Clusters.Exists(ctx, names.EKSCluster(s.in.Cluster))
	if err != nil || !alive {
		return err
	}
	return &fault.Superseded{
		Cause: fmt.Errorf("stack %s is absent, and the EKS cluster %s is there", s.change.StackName, names.EKSCluster(s.in.Cluster)),
	}
}

// parameters reads the outputs of the other stacks that this one takes. What came from a stack that is gone stays as it is.
func (s *step) parameters(ctx context.Context, now stack.Deployed) (map[string]string, error) {
	values, outputs := map[string]string{}, map[string]map[string]string{}
	for _, parameter := range s.change.Parameters {
		if parameter.From == nil {
			values[parameter.Name] = parameter.Value
			continue
		}
		from := parameter.From.Stack
		if outputs[from] == nil {
			other, err := s.Stacks.Describe(ctx, names.Stack(s.in.Cluster, from))
			if err != nil {
				return nil, err
			}
			if outputs[from] = other.Outputs; stack.Absent(other.Status) {
				outputs[from] = nil
			}
		}
		value, ok := outputs[from][parameter.From.Output]
		if before, had := now.Parameters[parameter.Name]; had && outputs[from] == nil {
			value, ok = before, true
		}
		if !ok {
			return nil, &fault.StackFailed{Cause: fmt.Errorf("stack %s needs output %s of stack %s, which has none: its last change did not succeed",
				s.change.StackName, parameter.From.Output, names.Stack(s.in.Cluster, from))}
		}
		values[parameter.Name] = value
	}
	return values, nil
}

// execute makes the change set, reads it, and executes it.
func (s *step) execute(ctx context.Context, now stack.Deployed, parameters map[string]string) error {
	creating, token, more := stack.Absent(now.Status), s.tokenOf(parameters), false
	switch {
	case creating:
		more = atFirst(s.change.Parameters, parameters)
	case s.change.Operation == plan.Create: // the second change of a stack that was just created
		token = "then-" + token
	}
	set, err := s.prepare(ctx, now, parameters, token)
	if err != nil {
		return err
	}
	// A rollback leaves another version of the launch template, which any update may bring to the nodes.
	if s.change.Pace != nil && !creating && (replaces(set.Changes) || !stack.Settled(now.Status)) {
		var later bool
		if set, later, err = s.pace(ctx, now, parameters, set); err != nil || later {
			return err
		}
		token = s.tokenOf(parameters)
	} else if later, err := s.shrinks(ctx, now, parameters); err != nil || later {
		return err
	}
	if err := Guard(s.change.StackName, set.Changes); err != nil {
		return err
	}
	switch {
	case now.TerminationProtection == s.change.Protected:
	case now.TerminationProtection && !set.Empty:
		// It goes off when the stack is what it should be without it: until then, its resources would stay behind when it is deleted.
		more = true
	default:
		if err := s.protect(ctx, s.change.Protected); err != nil {
			return err
		}
	}
	if set.Empty && !stack.Settled(now.Status) {
		// A failed update was rolled back to just what is wanted. Only an update that succeeds shows it, and a tag is one.
		s.change.Tags[names.TagSettled] = s.token
		token = "settle-" + token
		if set, err = s.prepare(ctx, now, parameters, token); err != nil {
			return err
		}
	}
	if set.Empty {
		return s.done(ctx, now.Status)
	}
	if err := s.register(ctx, token, more); err != nil {
		return err
	}
	return s.Stacks.Execute(ctx, s.change, set, token)
}

// tokenOf is the token of the change with certain parameters. A change that is only one of parameters would otherwise be taken for
// the one before it, when the same execution makes both.
func (s *step) tokenOf(parameters map[string]string) string {
	body, _ := json.Marshal(parameters) // strings, in the order of their keys
	return s.token + "-" + names.SHA256(body)[:12]
}

// prepare makes a change set of the change.
func (s *step) prepare(
	ctx context.Context, now stack.Deployed, parameters map[string]string, token string,
) (stack.ChangeSet, error) {
	creating, key := stack.Absent(now.Status), s.change.TemplateKey
	if creating && s.change.FirstKey != "" {
		key = s.change.FirstKey
	}
	address, err := url.JoinPath(s.TemplateBase, key)
	if err != nil {
		return stack.ChangeSet{}, err
	}
	return s.Stacks.Prepare(ctx, s.change, creating, address, parameters, token)
}

// atFirst gives the parameters of a stack that is created their first values, and says whether there are any: then the stack
// must change once more when it is there.
func atFirst(parameters []render.Parameter, values map[string]string) (more bool) {
	for _, parameter := range parameters {
		if parameter.AtFirst != "" {
			values[parameter.Name], more = parameter.AtFirst, true
		}
	}
	return more
}

// protect switches termination protection, if the lease is still held: making a change set may have taken a minute.
func (s *step) protect(ctx context.Context, on bool) error {
	if err := s.State.CheckLease(ctx, s.in.Cluster, s.in.Execution, s.in.Fence); err != nil {
		return err
	}
	return s.Stacks.Protect(ctx, s.change.StackName, on)
}

// delete deletes a stack: the change itself, or what a failed creation left in the way.
func (s *step) delete(ctx context.Context, now stack.Deployed, again bool) error {
	if now.TerminationProtection {
		if !again {
			return &fault.ChangeRefused{Cause: fmt.Errorf("stack %s has termination protection", s.change.StackName)}
		}
		// A stack that never came to be holds nothing to protect.
		if err := s.protect(ctx, false); err != nil {
			return err
		}
	}
	// Another for each try: the event of one that failed must not answer for the next.
	token := "delete-" + names.SHA256([]byte(s.in.TaskToken))[:40]
	if err := s.register(ctx, token, again); err != nil {
		return err
	}
	return s.Stacks.Delete(ctx, s.change.StackName, token)
}

// rollBack continues a rollback that failed: nothing else can be done with such a stack. When it fails again the step
// has failed. A pool's takes its next batch at once, and it may have failed because the drains of the last one took
// so long.
func (s *step) rollBack(ctx context.Context, now stack.Deployed) error {
	if s.change.Pace != nil {
		group, _, err := s.Groups.Describe(ctx, s.change.Pace.Group)
		if err != nil {
			return err
		}
		if later, err := s.waitForDrains(ctx, goingBack, group, now.Status, false); err != nil || later {
			return err
		}
	}
	w := s.waiter("rollback-"+s.token, true)
	w.Wants = "UPDATE_ROLLBACK_COMPLETE"
	if err := s.put(ctx, w); err != nil {
		return err
	}
	return s.Stacks.ContinueRollback(ctx, s.change.StackName, w.ClientRequestToken)
}

// wait waits for whatever operation is under way, and looks again when it is over. If it ended before anybody waited, its event
// is past: resume at once.
func (s *step) wait(ctx context.Context) error {
	if err := s.register(ctx, "", true); err != nil {
		return err
	}
	now, err := s.Stacks.Describe(ctx, s.change.StackName)
	if err != nil || stack.InProgress(now.Status) {
		return err
	}
	return s.Resume.Resume(ctx, s.waiting, now.Status)
}

// done resumes the step: there is nothing to wait for.
func (s *step) done(ctx context.Context, status string) error {
	return s.Resume.Resume(ctx, s.waiter("", false), status)
}

func (s *step) waiter(token string, again bool) store.Waiter {
	w := store.Waiter{
		Cluster: s.in.Cluster, Stack: s.change.Stack, StackName: s.change.StackName, ClientRequestToken: token, Again: again,
		TaskToken: s.in.TaskToken, Execution: s.in.Execution, Fence: s.in.Fence,
	}
	if s.in.WaitedSeconds != nil {
		w.WaitedSeconds = *s.in.WaitedSeconds
	}
	return w
}

func (s *step) register(ctx context.Context, token string, again bool) error {
	return s.put(ctx, s.waiter(token, again))
}

// put says who waits for the stack, before anything happens that could be waited for. A holder that lost its lease on the way
// here neither takes the stack from the new one's step nor changes it.
func (s *step) put(ctx context.Context, w store.Waiter) (err error) {
	if err := s.State.CheckLease(ctx, s.in.Cluster, s.in.Execution, s.in.Fence); err != nil {
		return err
	}
	if w, err = s.State.PutWaiter(ctx, w); err == nil {
		s.waiting = w
	}
	return err
}
