// Package resource is the contract between the local account's CloudFormation and the services whose resources it
// makes: one Provider a resource type.
package resource

import (
	"context"

	"github.com/drover-run/drover/local/aws/iam"
)

// Provider makes, changes and deletes the resources of one type.
type Provider interface {
	// Schema says which properties there are and what changing them means.
	Schema() Schema
	// Create makes the resource and returns when it is stable. Errors become the stack event's reason; a PhysicalID beside
	// the error is what a rollback deletes.
	Create(ctx context.Context, r Request) (Result, error)
	// Update changes properties that need no replacement. PhysicalID stays, and Attributes and Ref unless it returns new ones.
	Update(ctx context.Context, r Request) (Result, error)
	// Delete removes the resource; one that is gone already is no error.
	Delete(ctx context.Context, r Request) error
}

// Schema of a resource type, after its page in the CloudFormation template reference.
type Schema struct {
	// Properties that the provider knows, each with what changing it means. Any other is an error that names it.
	Properties map[string]UpdateBehaviour
	// Required properties.
	Required []string
	// Attributes that Fn::GetAtt may ask for.
	Attributes []string
}

// UpdateBehaviour is "Update requires" of the template reference.
type UpdateBehaviour int

// What changing a property means.
const (
	InPlace UpdateBehaviour = iota
	Replaces
)

// Request is one operation on a resource.
type Request struct {
	// StackName, StackID and LogicalID name the resource; PhysicalID is empty on Create.
	StackName, StackID, LogicalID, PhysicalID string
	// Type such as AWS::SQS::Queue.
	Type string
	// Properties with all intrinsics resolved: strings, bools, float64, []any, map[string]any.
	Properties map[string]any
	// Old are the properties before an update.
	Old map[string]any
	// Rollback is true for an update that turns the stack back to what it was.
	Rollback bool
	// Tags of the stack, propagated to the resource; aws:cloudformation:* included.
	Tags map[string]string
	// CreationPolicy and UpdatePolicy of the resource, resolved; nil when absent.
	CreationPolicy, UpdatePolicy map[string]any
	// Signals delivers SignalResource calls for this resource while the operation runs.
	Signals <-chan Signal
	// Progress adds a stack event for the resource, such as a rolling update's batches.
	Progress func(reason string)
	// Caller is who CloudFormation acts as: the service role, or the caller of the stack operation. Providers authorize
	// each API action that the real resource handler would call.
	Caller iam.Caller
	// Region and Account of the stack.
	Region, Account string
}

// Signal is a SignalResource call.
type Signal struct {
	UniqueID string
	Success  bool
}

// Result of making or changing a resource.
type Result struct {
	// PhysicalID is what Ref returns unless Ref is set.
	PhysicalID string
	// Ref, when it differs from PhysicalID.
	Ref string
	// Attributes for Fn::GetAtt, by name (nested with dots).
	Attributes map[string]any
}
