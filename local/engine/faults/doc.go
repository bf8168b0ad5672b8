// Package faults decides which faults occur:
//
//   - calls that are throttled, fail or are slow, and conditional writes that conflict;
//   - events that are lost, repeated or late;
//   - functions and executions that are killed;
//   - API servers that do not answer;
//   - instances that are lost, fail to launch, or boot another version of the kubelet;
//   - updates of EKS clusters that fail.
//
// Rules define what may fail. The account passes each moment at which a fault could occur to the engine, and carries out its decision. The
// engine never sleeps and takes the time as an argument, so it supports real and virtual time. Each decision depends only on the seed, the
// rule and the moment, not on earlier decisions. For example, whether plan's third DescribeStacks fails does not depend on any other call.
package faults
