// Package states is Step Functions: standard workflows of JSONata machines, which package asl interprets.
// https://docs.aws.amazon.com/step-functions/latest/dg/welcome.html
//
// There: state machines, executions with idempotent names, history, task tokens, status-change events, execution logs,
// metrics; the tasks lambda:invoke, states:startExecution and aws-sdk:*, the first and any that Config.SDK takes also with
// .waitForTaskToken, states:startExecution also with .sync:2. An execution acts as its machine's role; answering a task token is
// authorized on the machine. Who waits for an execution hears of its end at once; the managed rule by which AWS does is asked for
// in the role's policies, and is not there.
//
// Not there, and an error that names it: Express workflows, versions and aliases, activities, map runs, redrive, test
// states, customer-managed keys, and what package asl leaves out.
// Differences: tracing is stored and nothing receives traces; finished executions stay until the account ends; deleting a
// machine does not wait for its executions.
package states
