// Package asl interprets state machines of the Amazon States Language whose query language is JSONata, as Step Functions
// Standard workflows run them. It knows no service: what a Task does is a function given to Run, and time is the
// process's, so that a test may run days of it under testing/synctest.
//
// It follows https://states-language.net/spec.html and
// https://docs.aws.amazon.com/step-functions/latest/dg/concepts-amazon-states-language.html and their sub-pages.
//
// There: Task, Choice, Pass, Wait, Succeed, Fail, Parallel, Map (inline), Assign and its scopes, Output, Arguments,
// Items, ItemSelector, MaxConcurrency, Retry, Catch, timeouts, heartbeats, task tokens, jobs (.sync:2), payload and history limits.
//
// Not there, and an error that names it: JSONPath machines and states, distributed Map and its fields (ItemReader,
// ItemBatcher, ResultWriter, ToleratedFailureCount, ToleratedFailurePercentage), Map over an object, Credentials,
// Express semantics, .sync without :2, activities.
package asl
