// Package stack describes a CloudFormation stack as data: what is deployed, its status, and why an operation failed. It is pure;
// shared/aws/cloudformation reads it.
package stack

import "time"

// Deployed is one stack as CloudFormation describes it.
type Deployed struct {
	// Name without the cluster's prefix.
	Name string
	// ID is the stack's ARN: one that was deleted and made anew has another.
	ID           string
	Status       string
	StatusReason string
	Tags         map[string]string
	Outputs      map[string]string
	Parameters   map[string]string
	// TerminationProtection as it is now.
	TerminationProtection bool
	// Drifted says that CloudFormation's drift detection found differences, when somebody last asked for it.
	Drifted bool
}

// Failure of a stack: the resource that failed first and AWS's reason.
type Failure struct {
	Resource, Reason string
	// Stuck are the resources that a rollback or a deletion could not get past, the last time it was tried, each with AWS's reason.
	Stuck []Stuck
	// Began is when the operation did, Turned when the stack was turned back; zero when it was not.
	Began, Turned time.Time
}

// Stuck is a resource that is in the way, by its logical id, its type and its own id.
type Stuck struct{ Resource, Reason, Type, ID string }

func (f Failure) String() string {
	if f.Resource == "" {
		return f.Reason
	}
	return f.Resource + ": " + f.Reason
}
