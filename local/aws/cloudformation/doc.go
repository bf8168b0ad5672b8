// Package cloudformation simulates CloudFormation in the local account: templates, stacks and change sets, as in its API reference
// (2010-05-15) and user guide.
//
// Supported:
//   - Templates in YAML and JSON with every intrinsic function that needs no transform, parameters with their constraints,
//     conditions, mappings, rules, outputs and exports.
//   - Creation in parallel by dependencies, updates in place and by replacement, cleanup, and rollback of both. Manual rollbacks
//     with RollbackStack, ContinueUpdateRollback and CancelUpdateStack. Deletion with retained resources.
//   - Change sets with the evaluation that AWS documents.
//   - Stack policies, termination protection, service roles, client request tokens and signals.
//   - Events of every stack and resource status, in DescribeStackEvents and on EventBridge.
//   - Authorization of every call. CloudFormation acts on resources as the stack's role or as the caller.
//
// Different from AWS:
//   - A template with a resource type or property that the local account does not provide is rejected when it is submitted. AWS
//     would fail the resource.
//   - A change set treats every attribute of a changing resource as unknown until execution. Replacement may be Conditional
//     where AWS knows the value, and never the other way round.
//   - "Resource creation Initiated" appears when the resource is stable.
//   - Stacks do not outlive the process.
//
// Not supported, each an error that names it: transforms, macros, nested stacks, modules, hooks, stack sets, resource import, drift
// detection, dynamic references, notification topics, rollback triggers, DeletionPolicy Snapshot, deployment modes, the type
// registry, generated templates.
package cloudformation
