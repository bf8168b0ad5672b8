// Package cloudformation is the local account's CloudFormation: templates, stacks and change sets, after its API
// reference (2010-05-15) and user guide.
//
// What is there: templates in YAML and JSON with every intrinsic function that needs no transform; parameters with their
// constraints; conditions, mappings, rules, outputs, exports; creation in parallel by dependencies; updates in place and
// by replacement; cleanup; rollback of both, also by hand (RollbackStack, ContinueUpdateRollback, CancelUpdateStack);
// deletion with retained resources; change sets with the evaluation that AWS documents; stack policies; termination
// protection; service roles; client request tokens; signals; events of every stack and resource status, in
// DescribeStackEvents and on EventBridge. Every call is authorized, and what CloudFormation does in a stack it does as the
// stack's role or the caller.
//
// What differs from AWS: resource types and properties that no service of the local account provides are refused when the
// template is submitted, where AWS would fail the resource. A change set takes every attribute of a resource that changes
// as unknown until execution, so Replacement may be Conditional where AWS knows better, never the other way round.
// "Resource creation Initiated" comes when the resource is stable. Stacks do not outlive the process.
//
// What is not there, each an error that names it: transforms, macros, nested stacks, modules, hooks, stack sets, resource
// import, drift detection, dynamic references, notification topics, rollback triggers, DeletionPolicy Snapshot, deployment
// modes, the type registry, generated templates.
package cloudformation
