// Package eventbridge simulates Amazon EventBridge: the default bus and custom buses, with rules, patterns and targets.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-what-is.html
//
// It supports:
//
//   - PutEvents, and rules with event patterns (package pattern);
//   - the targets Lambda, Step Functions, SQS and SNS, with Input, InputPath and InputTransformer;
//   - asynchronous delivery at least once, with retries and dead-letter queues (package delivery);
//   - buses with a KMS key, which accept events while the key's policy allows EventBridge to use the key.
//
// The service principal events.amazonaws.com needs the permission of the resource policies of functions, queues and
// topics. A target with a role is invoked as that role. The pauses between attempts are scaled by the account's speed.
//
// It rejects, with an error that names the feature: bus policies, partner buses, schedule expressions on rules (package
// scheduler has them), archives, replays, pipes, API destinations, global endpoints, and target parameters of other
// services.
package eventbridge
