// Package asl interprets state machines in the Amazon States Language with the query language JSONata, as standard
// workflows of Step Functions. It calls no service: Run takes a function that performs a Task. Time is that of the
// process, so a test under testing/synctest can run days of it.
//
// It follows https://states-language.net/spec.html and
// https://docs.aws.amazon.com/step-functions/latest/dg/concepts-amazon-states-language.html and their sub-pages.
//
// It supports Task, Choice, Pass, Wait, Succeed, Fail, Parallel, Map (inline), Assign and its scopes, Output, Arguments,
// Items, ItemSelector, MaxConcurrency, Retry, Catch, timeouts, heartbeats, task tokens, jobs (.sync:2), payload and
// history limits.
//
// It rejects, with an error that names the feature: JSONPath machines and states, distributed Map and its fields
// (ItemReader, ItemBatcher, ResultWriter, ToleratedFailureCount, ToleratedFailurePercentage), Map over an object,
// Credentials, Express semantics, .sync without :2, activities.
package asl
