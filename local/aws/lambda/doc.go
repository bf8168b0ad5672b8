// Package lambda is Lambda: functions run as processes of the compiled bootstrap in their zip package, behind a real
// runtime API. https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
//
// There: the runtimes provided.al2023 and provided.al2; cold and warm starts, one process an execution environment, many
// at once; init errors, exits, timeouts that kill; payload limits; the function's role as credentials in the
// environment; logs with START, END and REPORT lines, as text or JSON, written only if the role allows it; synchronous and
// asynchronous invocation with retries, event age, dead-letter queue and failure destination; resource policies;
// reserved concurrency. Lambda's own waits between retries run faster with the account's speed.
//
// Not there, and an error that names it: other runtimes, images, layers, versions, aliases, function URLs, event source
// mappings, VPCs, file systems, SnapStart, extensions, response streaming, architectures other than the host's.
// Differences: the memory size is told to the function and not enforced; environments share the host's /tmp; packages are
// not limited to the runtime's user and paths; X-Ray receives nothing.
package lambda
