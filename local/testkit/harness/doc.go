// Package harness is an account in the test process: the local account's services behind its endpoint, and drover's
// functions as Go handlers, with fault injection. It starts in milliseconds and runs no other program.
//
// These parts are the local account's own: S3, CloudFormation, EC2, Auto Scaling, EKS's API, KMS, SNS, IAM's identities, the
// tagging API, and Step Functions with the synthesized machines of infra/testdata/machines. Drover's functions are real too, with their own
// adapters and sessions, which call the endpoint. Roles are the synthesized ones of infra/testdata/identities.json: a call that a function
// may not make is AccessDenied.
//
// These parts are simpler substitutes: Lambda, EventBridge and the Kubernetes control planes. Functions are called in
// process; a killed one loses its context and its result. events.go repeats the EventBridge rules of drover's stack.
// In a bubble (Options.Bubble, virtual time) the control planes are local/kubernetes/apiserver's, with nodes, pods
// and budgets, and prepare, join and drain are drover's own. Otherwise they store objects (see plane.go), prepare
// does nothing, and join and drain complete the hooks of any instance.
//
// In virtual time the clients call services directly, without signatures and checksums. Equal answers are decoded once (see direct.go).
//
// Objects are in memory. With Options.Files, versitygw stores them, which is S3's store in drover local. It can run once in a process: such
// an account must be closed before the next is started, and tests that use it do not run in parallel.
package harness
