// Package harness is an account inside the test process: the local account's own services behind its endpoint, and drover's
// functions as Go handlers, with knobs for bad days. It starts in milliseconds and needs no program beside the test.
//
// Real: S3 (versitygw), CloudFormation, EC2, Auto Scaling, EKS's API, KMS, SNS, IAM's identities, the tagging API, Step Functions with the
// synthesized machines of infra/testdata/machines, and drover's functions with their own adapters, each with its own
// session, through the endpoint.
//
// Pretended: Lambda (functions are called in process; a killed one loses its context and its result), EventBridge (the rules
// of drover's stack are written out in events.go), and the Kubernetes control planes. In a bubble (Options.Bubble, virtual time) those
// are local/kubernetes/apiserver's, with nodes, pods and budgets, and prepare, join and drain are drover's own. Otherwise they keep objects
// (see plane.go), prepare does nothing, and join and drain complete the hooks of any instance. Roles
// are the synthesized ones of infra/testdata/identities.json: a call that a function may not make is AccessDenied.
//
// In virtual time calls are direct: neither signed nor checked for their sums, and an answer that is the same as before is decoded once
// (see direct.go).
//
// S3 can run once in a process (but in a bubble, where objects are in memory), so an account must be closed before the next is
// started: tests that use it do not run in parallel.
package harness
