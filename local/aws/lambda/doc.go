// Package lambda simulates AWS Lambda. Functions run as processes of the compiled bootstrap in their zip package, behind
// a real runtime API. https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
//
// It supports:
//
//   - the runtimes provided.al2023 and provided.al2;
//   - cold and warm starts, with one process for each execution environment, and concurrent environments;
//   - init errors, exits, timeouts that kill the process, payload limits;
//   - the credentials of the function's role in the environment;
//   - logs with START, END and REPORT lines, as text or JSON, if the role allows writing them;
//   - synchronous invocation, and asynchronous invocation with retries, event age, dead-letter queue and failure destination;
//   - resource policies and reserved concurrency.
//
// The pauses between Lambda's own retries are scaled by the account's speed.
//
// It rejects, with an error that names the feature: other runtimes, images, layers, versions, aliases, function URLs,
// event source mappings, VPCs, file systems, SnapStart, extensions, response streaming, and architectures other than the
// host's.
//
// Differences from AWS: the memory size is reported to the function but not enforced. Environments share the host's
// /tmp. Packages may use any user and path. X-Ray receives no traces.
package lambda
