// Package lives has the steps and assertions that several packages of local/testkit/worlds need. A life is what happens in one
// world, an account of local/testkit/harness, during one test, mostly to one cluster, demo. Steps do what users, AWS and time do to it.
//
// A step that only one package of worlds needs is in that package.
package lives

import (
	"testing"
	"testing/synctest"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
)

// Life is an account and its test.
type Life struct {
	*harness.Account
	T testing.TB
}

// Start starts a life in real time. It ends with the test.
func Start(t testing.TB) *Life { return StartWith(t, harness.Options{}) }

// StartWith starts a life with options. It ends with the test, or with Close.
func StartWith(t testing.TB, o harness.Options) *Life {
	t.Helper()
	return &Life{Account: harness.StartWith(t, o), T: t}
}

// Run runs a life in virtual time.
func Run(t *testing.T, test func(l *Life)) {
	synctest.Test(t, func(t *testing.T) {
		l := StartWith(t, harness.Options{Bubble: true})
		defer l.Close()
		test(l)
	})
}

// RunWithFaults runs a life in virtual time, with an engine to which the test adds faults.
func RunWithFaults(t *testing.T, test func(l *Life, bad *faults.Engine)) {
	synctest.Test(t, func(t *testing.T) {
		bad := faults.New(1)
		l := StartWith(t, harness.Options{Bubble: true, Faults: bad})
		defer l.Close()
		test(l, bad)
	})
}
