// Package resource is the contract between the local account's CloudFormation and the services whose resources it
// creates. Each resource type has a Provider.
package resource

import (
	"context"

	"github.com/drover-run/drover/local/aws/iam"
)

// Provider creates, updates and deletes the resources of one type.
type Provider interface {
	// Schema returns the properties and the effect of changing them.
	Schema() Schema
	// Create creates the resource and returns when it is stable. An error is the reason of the stack event. A rollback
	// deletes the PhysicalID that accompanies an error.
	Create(ctx context.Context, r Request) (Result, error)
	// Update changes properties that do not require replacement. PhysicalID does not change. Attributes and Ref do not
	// change unless it returns new ones.
	Update(ctx context.Context, r Request) (Result, error)
	// Delete deletes the resource. Deleting one that does not exist succeeds.
	Delete(ctx context.Context, r Request) error
}

// Schema of a resource type, after its page in the CloudFormation template reference.
type Schema struct {
	// Properties that the provider supports, with the effect of changing each. Any other is an error that names it.
	Properties map[string]UpdateBehavior
	// Required properties.
	Required []string
	// Attributes for Fn::GetAtt.
	Attributes []string
}

// UpdateBehavior is "Update requires" of the template reference.
type UpdateBehavior int

// The effect of changing a property.
const (
	InPlace UpdateBehavior = iota
	Replaces
)

// Request is one operation on a resource.
type Request struct {
	// StackName, StackID and LogicalID identify the resource. PhysicalID is empty in Create.
	StackName, StackID, LogicalID, PhysicalID string
	// Type such as AWS::SQS::Queue.
	Type string
	// Properties with resolved intrinsic functions: strings, bools, float64, []any, map[string]any.
	Properties map[string]any
	// Old are the properties before an update.
	Old map[string]any
	// Rollback reports whether the update rolls the stack back.
	Rollback bool
	// Tags of the stack, which are propagated to the resource, including aws:cloudformation:*.
	Tags map[string]string
	// CreationPolicy and UpdatePolicy of the resource, resolved, or nil.
	CreationPolicy, UpdatePolicy map[string]any
	// Signals receives the SignalResource calls for this resource while the operation runs.
	Signals <-chan Signal
	// Progress adds a stack event for the resource, such as for a batch of a rolling update.
	Progress func(reason string)
	// Caller is the caller of CloudFormation's actions: the service role, or the caller of the stack operation. Providers
	// authorize each API action that the real resource handler calls.
	Caller iam.Caller
	// Region and Account of the stack.
	Region, Account string
}

// Signal is a SignalResource call.
type Signal struct {
	UniqueID string
	Success  bool
}

// Result of creating or updating a resource.
type Result struct {
	// PhysicalID is the value of Ref, unless Ref is set.
	PhysicalID string
	// Ref, if it differs from PhysicalID.
	Ref string
	// Attributes for Fn::GetAtt, by name (nested with dots).
	Attributes map[string]any
}
