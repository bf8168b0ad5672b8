// Package storm runs random lives of clusters under random faults, in virtual time, and checks drover's invariants after every
// step. One seed is one world: an account of local/testkit/harness with a few clusters, the people who change them, and what goes
// wrong. A failing seed replays exactly.
//
// Time is that of testing/synctest: hours pass in milliseconds, because nothing has to be waited for. Order is the seed's: all
// that starts or wakes in the account (a call, a delivery, a timer, a resource of a stack) asks for its turn, and the world gives
// one turn at a time, when everything else stands still (see turns). What is drawn at random by anybody, identifiers too, comes
// from the seed, since only one draws at a time; what goes wrong is decided by local/engine/faults from the seed and the moment alone.
//
// A test that runs a seed twice and compares every turn holds this to be true.
package storm
