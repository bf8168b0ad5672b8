// Package scheduler simulates EventBridge Scheduler: schedules that invoke a target as a role.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html
//
// It supports:
//
//   - rate, cron and at expressions in any time zone, with AWS's rules for daylight saving;
//   - start and end dates, flexible time windows, deletion after the last invocation;
//   - groups and their tags;
//   - a target's input with its keywords, or AWS's default event;
//   - the targets Lambda, Step Functions, SQS and SNS, invoked as the schedule's role, with retries and dead-letter queues;
//   - all API operations, and the resource types AWS::Scheduler::Schedule and AWS::Scheduler::ScheduleGroup.
//
// Schedules follow real time, whatever the account's speed. Fire invokes a schedule immediately.
//
// It rejects, with an error that names the feature: universal targets (aws-sdk), templated targets of other services,
// the parameters of FIFO, ECS, EventBridge, Kinesis and SageMaker targets, customer managed keys, years after 2099, and
// cron ranges that wrap around.
//
// Differences from AWS: a schedule is due at the second, on AWS within the minute. If the machine slept through several due times, the
// schedule runs once. A schedule that deletes itself is removed when its last invocation starts. A group is removed immediately with its
// schedules. AWS/Scheduler has no metrics.
package scheduler
