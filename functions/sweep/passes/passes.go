// Package passes is what the sweep does every two minutes: it continues what a lost event or a stopped execution left, and
// starts what is due. Each pass is a type whose fields are its dependencies. It lists waiters, instances or records,
// finds those that no execution works on, and starts or resumes an execution for each. A pass that finds nothing
// costs one or two reads or listings, and Relays one call for each private cluster. The handler of the sweep function runs the
// passes every two minutes. The audit of whole clusters is package audit.
package passes

import (
	"context"
	"time"
)

// Machine is a state machine that works on instances: a subset of stepfunctions.Machine.
type Machine interface {
	Start(ctx context.Context, name string, input any) error
	Running(ctx context.Context) ([]string, error)
	Unsuccessful(ctx context.Context, since time.Time) ([]string, error)
	Input(ctx context.Context, execution string, into any) error
}
