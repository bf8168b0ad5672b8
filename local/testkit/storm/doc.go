// Package storm runs random lives of clusters with random faults, in virtual time, and checks drover's invariants after
// every step. One seed is one world: an account of local/testkit/harness with a few clusters, the operators who change
// them, and faults. A failing seed replays exactly.
//
// Time is that of testing/synctest: hours pass in milliseconds. The seed determines the order. Everything that starts
// or wakes in the account (a call, a delivery, a timer, a resource of a stack) waits for its turn. The world gives
// one turn at a time. It gives the next turn when every other goroutine waits (see turns). All random values,
// identifiers included, come from the seed, because only one goroutine at a time takes random numbers.
// local/engine/faults decides about faults from the seed and the moment alone.
//
// A test runs a seed twice and requires the same turns.
package storm
