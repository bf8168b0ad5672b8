// Package stepfunctions simulates AWS Step Functions: standard workflows in JSONata. Package asl interprets them.
// https://docs.aws.amazon.com/step-functions/latest/dg/welcome.html
//
// It supports:
//
//   - state machines, executions with idempotent names, history, task tokens, status change events, execution logs, metrics;
//   - the tasks lambda:invoke, states:startExecution and aws-sdk:*;
//   - .waitForTaskToken for lambda:invoke and for each SDK integration that Config.SDK accepts;
//   - .sync:2 for states:startExecution.
//
// An execution acts as its machine's role. Answering a task token is authorized on the machine. A parent
// execution learns at once that its child ended. AWS uses a managed EventBridge rule for this. The rule does not exist here, but the role
// must have the permissions for it.
//
// It rejects, with an error that names the feature: Express workflows, versions and aliases, activities, map runs,
// redrive, test states, customer-managed keys, and what package asl rejects.
//
// Differences from AWS: tracing is stored, but no service receives traces. Finished executions remain until the account
// ends. Deleting a machine does not wait for its executions.
package stepfunctions
