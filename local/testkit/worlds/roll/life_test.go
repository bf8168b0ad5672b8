// Package roll_test has tests of rolls: their batches, paces, drains and failures, and random ones.
package roll_test

import (
	"testing"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
)

// life is lives.Life with the steps of this package.
type life struct{ *lives.Life }

// start starts a life in real time.
func start(t testing.TB) *life { return &life{lives.Start(t)} }

// startWith starts a life with options.
func startWith(t testing.TB, o harness.Options) *life { return &life{lives.StartWith(t, o)} }

// runWithFaults runs a life in virtual time, with an engine to which the test adds faults.
func runWithFaults(t *testing.T, test func(l *life, bad *faults.Engine)) {
	lives.RunWithFaults(t, func(l *lives.Life, bad *faults.Engine) { test(&life{l}, bad) })
}
