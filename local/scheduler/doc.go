// Package scheduler is EventBridge Scheduler. https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html
//
// There: rate, cron and at expressions in time zones, start and end dates, flexible windows, groups, input with keywords,
// targets Lambda, Step Functions, SQS and SNS as the schedule's role, retries and dead-letter queues, deletion after the
// last invocation. Schedules keep real time whatever the account's speed.
//
// Not there, and an error that names it: universal targets (aws-sdk), templated targets of other services and their
// parameters, customer-managed keys.
package scheduler
