// Package interruption_test has tests of interrupted work: functions are killed, executions stopped, leases lost, and drover is removed.
package interruption_test

import (
	"testing"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/lives"
)

// life is lives.Life with the steps of this package.
type life struct{ *lives.Life }

// start starts a life in real time.
func start(t testing.TB) *life { return &life{lives.Start(t)} }

// run runs a life in virtual time.
func run(t *testing.T, test func(l *life)) {
	lives.Run(t, func(l *lives.Life) { test(&life{l}) })
}

// runWithFaults runs a life in virtual time, with an engine to which the test adds faults.
func runWithFaults(t *testing.T, test func(l *life, bad *faults.Engine)) {
	lives.RunWithFaults(t, func(l *lives.Life, bad *faults.Engine) { test(&life{l}, bad) })
}
