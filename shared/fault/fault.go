// Package fault holds the errors that state machines act on. The name of each Go type is the error name that a
// Retry or Catch in infra/ matches: a test in infra/ holds both lists equal. It is pure.
package fault

// Named is an error that a state machine can tell by name: the name of its Go type.
type Named interface {
	error
	fault() string
}

// Throttled says that AWS or Kubernetes asked drover to slow down. Machines retry it.
type Throttled struct{ Cause error }

// Transient says that a call failed in a way that a later try may not: 5xx, network, a conflicting write. Machines retry it.
type Transient struct{ Cause error }

// LeaseLost says that another execution took the cluster over: whatever this one still does must change nothing.
type LeaseLost struct{ Cause error }

// Superseded says that a plan is out of date, because of a newer spec or a stack that was in motion: plan again.
type Superseded struct{ Cause error }

// ChangeRefused says that a change set would replace or delete something stateful, or cannot be made at all.
type ChangeRefused struct{ Cause error }

// StackFailed says that CloudFormation could not bring a stack where the plan wanted it.
type StackFailed struct{ Cause error }

// NodeFailed says that an instance did not become a node in time, or became a wrong one.
type NodeFailed struct{ Cause error }

// ClusterUnreachable says that a cluster's API server could not be reached or refused drover.
type ClusterUnreachable struct{ Cause error }

// LeftoversRemain says that what Kubernetes made in the account could not be removed with its cluster.
type LeftoversRemain struct{ Cause error }

// Internal is every other error: a defect of drover or a permission that is missing.
type Internal struct{ Cause error }

func (e *Throttled) Error() string          { return e.Cause.Error() }
func (e *Transient) Error() string          { return e.Cause.Error() }
func (e *LeaseLost) Error() string          { return e.Cause.Error() }
func (e *Superseded) Error() string         { return e.Cause.Error() }
func (e *ChangeRefused) Error() string      { return e.Cause.Error() }
func (e *StackFailed) Error() string        { return e.Cause.Error() }
func (e *NodeFailed) Error() string         { return e.Cause.Error() }
func (e *ClusterUnreachable) Error() string { return e.Cause.Error() }
func (e *LeftoversRemain) Error() string    { return e.Cause.Error() }
func (e *Internal) Error() string           { return e.Cause.Error() }

func (e *Throttled) Unwrap() error          { return e.Cause }
func (e *Transient) Unwrap() error          { return e.Cause }
func (e *LeaseLost) Unwrap() error          { return e.Cause }
func (e *Superseded) Unwrap() error         { return e.Cause }
func (e *ChangeRefused) Unwrap() error      { return e.Cause }
func (e *StackFailed) Unwrap() error        { return e.Cause }
func (e *NodeFailed) Unwrap() error         { return e.Cause }
func (e *ClusterUnreachable) Unwrap() error { return e.Cause }
func (e *LeftoversRemain) Unwrap() error    { return e.Cause }
func (e *Internal) Unwrap() error           { return e.Cause }

func (*Throttled) fault() string          { return "Throttled" }
func (*Transient) fault() string          { return "Transient" }
func (*LeaseLost) fault() string          { return "LeaseLost" }
func (*Superseded) fault() string         { return "Superseded" }
func (*ChangeRefused) fault() string      { return "ChangeRefused" }
func (*StackFailed) fault() string        { return "StackFailed" }
func (*NodeFailed) fault() string         { return "NodeFailed" }
func (*ClusterUnreachable) fault() string { return "ClusterUnreachable" }
func (*LeftoversRemain) fault() string    { return "LeftoversRemain" }
func (*Internal) fault() string           { return "Internal" }

// All lists one of each fault, for tests that compare them with the state machines.
func All() []Named {
	return []Named{
		&Throttled{}, &Transient{}, &LeaseLost{}, &Superseded{}, &ChangeRefused{},
		&StackFailed{}, &NodeFailed{}, &ClusterUnreachable{}, &LeftoversRemain{}, &Internal{},
	}
}

// Name of a fault: the error name that state machines match.
func Name(f Named) string { return f.fault() }

// Retryable lists the names of the faults that state machines retry.
func Retryable() []string { return []string{Name(&Throttled{}), Name(&Transient{})} }
