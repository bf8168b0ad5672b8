// Package scheduler is EventBridge Scheduler of the local account: schedules that invoke a target as a role.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html
//
// There: rate, cron and at expressions in any time zone with AWS's rules for daylight saving; start and end dates; flexible
// time windows; the action after completion; groups and their tags; retries with growing waits; dead-letter queues with
// AWS's message attributes; the keywords of a target's input; default input. The targets are what the account registers:
// Lambda functions, Step Functions state machines and SQS queues. API: Create-, Update-, Delete-, Get- and ListSchedule(s),
// Create-, Delete-, Get- and ListScheduleGroup(s), TagResource, UntagResource, ListTagsForResource. Resources:
// AWS::Scheduler::Schedule and AWS::Scheduler::ScheduleGroup. Timers run in real time whatever the account's speed; Fire
// does not wait for them.
//
// Not there, and an error that names it: other templated targets, universal targets, the parameters of ECS, EventBridge,
// Kinesis, SageMaker and FIFO targets, customer managed keys, years after 2099, cron ranges that wrap around.
// Differences: a schedule fires at the second, AWS within the minute; occurrences that a sleeping machine missed by more
// than a minute are skipped; every failure is retried as the policy says, 1, 2, 4 … 480 seconds apart (AWS does not tell
// its waits); a deleted group and its schedules are gone at once; there are no CloudWatch metrics of AWS/Scheduler.
package scheduler
