// Package scheduler is EventBridge Scheduler of the local account: schedules that invoke a target as a role.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html
//
// There: rate, cron and at expressions in any time zone, with AWS's rules for daylight saving; start and end dates; flexible
// time windows; deletion after the last invocation; groups and their tags; a target's input with its keywords, or the event
// that AWS makes up; the targets Lambda, Step Functions, SQS and SNS as the schedule's role; retries and dead-letter
// queues. API: all operations. Resources: AWS::Scheduler::Schedule and AWS::Scheduler::ScheduleGroup. Due times keep real
// time whatever the account's speed; Fire does not wait for them.
//
// Not there, and an error that names it: universal targets (aws-sdk), templated targets of other services, the parameters
// of FIFO, ECS, EventBridge, Kinesis and SageMaker targets, customer managed keys, years after 2099 and ranges that wrap
// around in cron.
// Differences: a schedule is due at the second, on AWS within the minute; of what a sleeping machine missed by more than a
// minute only the first is made up for; a schedule that deletes itself is gone once its last invocation is on its way; a
// deleted group is gone at once with its schedules; AWS/Scheduler has no metrics.
package scheduler
