// Package leftover describes what Kubernetes created in the account for a cluster, and the outcomes of its removal. shared/aws/leftovers
// finds and removes it, and the clean function decides what goes. The package is pure.
package leftover

// Resource that Kubernetes created.
type Resource struct {
	// Kind in words, such as "load balancer".
	Kind string
	// ID as the resource's API takes it: a name, an id or an ARN.
	ID string
}

func (r Resource) String() string { return r.Kind + " " + r.ID }

// Volume is the kind of EBS volumes.
const Volume = "volume"

// IsVolume reports whether the resource is an EBS volume. Volumes hold data.
func (r Resource) IsVolume() bool { return r.Kind == Volume }

// Outcome of a removal.
type Outcome int

// The outcomes of removals.
const (
	// Removed: the resource is deleted or being deleted.
	Removed Outcome = iota
	// Absent: the resource did not exist.
	Absent
	// Remains: the resource is in use or protected, or its tags no longer allow its removal.
	Remains
)
