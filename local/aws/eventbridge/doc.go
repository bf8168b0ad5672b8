// Package eventbridge is the account's event buses, the default one and others: rules with patterns and targets.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-what-is.html
//
// There: PutEvents, rules by pattern (package pattern), targets Lambda, Step Functions, SQS and SNS with Input, InputPath and
// InputTransformer, retries and dead-letter queues (package delivery), asynchronous delivery at least once. The service
// principal events.amazonaws.com is held to the resource policies of functions, queues and topics; a target's role to its own.
// A bus with a KMS key takes events while the key's policy lets EventBridge use it. EventBridge's waits between attempts run
// faster with the account's speed.
//
// Not there, and an error that names it: policies of buses, partner buses, schedule expressions on rules (Scheduler
// has them), archives, replays, pipes, API destinations, global endpoints, target parameters of other services.
package eventbridge
