package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// Lease is the right to converge one cluster, held by one execution. It is stale once Step Functions reports that the
// execution ended. So it depends on no clock and needs no renewal.
type Lease struct {
	// Execution is the holder; empty if the lease is free.
	Execution string `json:"execution"`
	// Fence grows with every holder. A step with a lower number belongs to a holder that lost the lease.
	Fence int64 `json:"fence"`

	etag string
}

// Lease reads a cluster's lease. It is zero if no execution ever held it.
func (s *State) Lease(ctx context.Context, cluster string) (Lease, error) {
	var lease Lease
	etag, err := s.GetJSON(ctx, names.Lease(cluster), &lease)
	if errors.Is(err, ErrNotFound) {
		return Lease{}, nil
	}
	lease.etag = etag
	return lease, err
}

// Acquire takes a lease for an execution. If the lease was written since it was read, it returns ErrConflict. So no other
// converge changed what the caller observed since then.
func (s *State) Acquire(ctx context.Context, cluster string, seen Lease, execution string) (Lease, error) {
	if seen.Execution == execution {
		return seen, nil
	}
	next := Lease{Execution: execution, Fence: seen.Fence + 1}
	body, err := json.Marshal(next)
	if err != nil {
		return Lease{}, err
	}
	next.etag, err = s.Replace(ctx, names.Lease(cluster), body, seen.etag)
	return next, err
}

// Held lists the clusters whose lease may be held, with one listing. A free lease names no execution, so it is shorter
// than any other.
func (s *State) Held(ctx context.Context) ([]string, error) {
	const free = 60 // bytes; an execution's ARN alone is longer
	entries, err := s.List(ctx, names.Leases)
	if err != nil {
		return nil, err
	}
	var clusters []string
	for _, entry := range entries {
		if entry.Size > free {
			clusters = append(clusters, strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Leases), ".json"))
		}
	}
	return clusters, nil
}

// Release frees the lease of a cluster if the execution holds it. The fence stays, so that numbers never repeat.
func (s *State) Release(ctx context.Context, cluster, execution string) error {
	const attempts = 4
	var conflict error
	for range attempts {
		lease, err := s.Lease(ctx, cluster)
		if err != nil || lease.Execution != execution { // never held, released, or held by another execution
			return err
		}
		body, err := json.Marshal(Lease{Fence: lease.Fence})
		if err != nil {
			return err
		}
		if _, err = s.Replace(ctx, names.Lease(cluster), body, lease.etag); !errors.Is(err, ErrConflict) {
			return err
		}
		conflict = err
	}
	return &fault.Transient{Cause: conflict}
}

// Holder returns the execution that converges a cluster, or "" if none does. It has the lease, and running reports
// that it runs.
func (s *State) Holder(ctx context.Context, cluster string,
	running func(ctx context.Context, execution string) (bool, error)) (execution string, err error) {
	lease, err := s.Lease(ctx, cluster)
	if err != nil || lease.Execution == "" {
		return "", err
	}
	if runs, err := running(ctx, lease.Execution); err != nil || !runs {
		return "", err
	}
	return lease.Execution, nil
}

// Check returns *fault.LeaseLost unless the execution holds the lease with this number.
func (l Lease) Check(cluster, execution string, fence int64) error {
	if l.Execution != execution || l.Fence != fence {
		return &fault.LeaseLost{Cause: fmt.Errorf("the lease of %s (%d) was taken over by %s (%d)", cluster, fence, l.Execution, l.Fence)}
	}
	return nil
}

// IsReleased reports whether the holder with this number released the lease, and no other holder followed.
func (l Lease) IsReleased(fence int64) bool { return l.Execution == "" && l.Fence == fence }

// CheckLease precedes a mutating call. If the holder lost its lease, it returns *fault.LeaseLost.
func (s *State) CheckLease(ctx context.Context, cluster, execution string, fence int64) error {
	lease, err := s.Lease(ctx, cluster)
	if err != nil {
		return err
	}
	return lease.Check(cluster, execution, fence)
}
