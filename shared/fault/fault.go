// Package fault defines the errors that state machines act on. The name of each Go type is the error name that a Retry or Catch in
// infra/ matches. A test in infra/ compares both lists. The package is pure.
package fault

// Named is an error that a state machine recognizes by the name of its Go type.
type Named interface {
	error
	fault() string
}

// Throttled reports that AWS or Kubernetes throttled a call. Machines retry it.
type Throttled struct{ Cause error }

// Transient reports a failure that may not recur at the next try: 5xx, network, a conflicting write. Machines retry it.
type Transient struct{ Cause error }

// LeaseLost reports that another execution holds the cluster's lease. This execution must change nothing.
type LeaseLost struct{ Cause error }

// Superseded reports that a plan is stale: a newer spec arrived, or an operation in flight during planning finished.
// The caller plans again.
type Superseded struct{ Cause error }

// ChangeRefused reports a change set that would replace or delete a stateful resource, or that cannot be created.
type ChangeRefused struct{ Cause error }

// StackFailed reports that CloudFormation could not create, update or delete a stack as planned.
type StackFailed struct{ Cause error }

// NodeFailed reports that an instance did not become a node in time, or that its node does not match the pool.
type NodeFailed struct{ Cause error }

// ClusterUnreachable reports that a cluster's API server did not answer, or denied access.
type ClusterUnreachable struct{ Cause error }

// LeftoversRemain reports that resources which Kubernetes created in the account could not be removed with its cluster.
type LeftoversRemain struct{ Cause error }

// Internal is every other error: a defect of drover or a missing permission.
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

// All returns one of each fault, for tests that compare them with the state machines.
func All() []Named {
	return []Named{
		&Throttled{}, &Transient{}, &LeaseLost{}, &Superseded{}, &ChangeRefused{},
		&StackFailed{}, &NodeFailed{}, &ClusterUnreachable{}, &LeftoversRemain{}, &Internal{},
	}
}

// Name returns the error name of a fault that state machines match.
func Name(f Named) string { return f.fault() }

// Retryable returns the names of the faults that state machines retry.
func Retryable() []string { return []string{Name(&Throttled{}), Name(&Transient{})} }
