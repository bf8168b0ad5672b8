// Package faults decides what goes wrong: calls that are throttled, fail or are slow, events that are lost, come twice or late,
// functions and executions that die, conditional writes that conflict, API servers that do not answer, instances that vanish.
//
// Rules say what may go wrong; whoever runs the account tells the engine of each moment at which something could, and does
// what the engine says. The engine never sleeps and takes the time as an argument, so it serves real and virtual time alike.
// Its chances are drawn from the seed, the rule and the moment, not from a sequence: what befalls the third DescribeStacks of
// plan does not depend on what others did before it.
package faults
