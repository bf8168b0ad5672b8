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
//   - response streaming with its limits of size and bandwidth, errors in trailers, and callers that close the connection;
//     Config.NoStreaming simulates a region without streaming;
//   - functions in a VPC: the states Pending, Active and Failed, the permissions of caller and role, and network interfaces that
//     functions share and that remain for 20 minutes of simulated work after the last function;
//   - resource policies and tags;
//   - the account's concurrency limit, reserved concurrency, the metrics of both, and GetAccountSettings.
//
// The pauses between Lambda's own retries, and the work on network interfaces, are scaled by the account's speed. A stack that deletes a
// function in a VPC waits for its network interfaces if its role may describe them.
//
// It rejects, with an error that names the feature: other runtimes, images, layers, versions, aliases, function URLs,
// event source mappings, dual-stack VPCs, file systems, SnapStart, extensions, and architectures other than the host's.
//
// AWS does not document these, so the simulation chooses them: the code and details of a streamed error (the error's
// type, and the error as JSON), and the answer of a region without response streaming (one of the two that are
// likely).
//
// Differences from AWS: no function becomes Inactive. The memory size is reported to the function but not enforced.
// Environments share the host's /tmp. An account scales to its concurrency limit at once, and has no limit of requests per
// second. Packages may use any user and path. X-Ray receives no traces.
package lambda
