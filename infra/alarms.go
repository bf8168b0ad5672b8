package main

// CloudWatch alarms and the dashboard. Alarms cover failed executions, undelivered events, functions that fail or are throttled, and an
// account that is near its limit of concurrent executions.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/metrics"
	"github.com/drover-run/drover/shared/names"
)

// period of the metrics, in minutes.
const period = 5

// nearLimit is the part of the account's concurrency above which an alarm is raised.
const nearLimit = 0.8

// alarm is raised when a metric is above the threshold within the period. The topic receives a message when it is raised and when it ends.
type alarm struct {
	// name without the prefix.
	name, description string
	metric            awscloudwatch.IMetric
	// threshold is 0 for metrics of failures.
	threshold float64
}

// newAlarms creates one alarm for each metric. An alarm on a sum would stay silent: a sum has no value while one of its metrics has
// none, and a function that is never invoked has no metrics.
func newAlarms(scope constructs.Construct, f functions, m machines, n notices, concurrency float64) {
	for _, a := range alarmTable(f, m, n, concurrency) {
		made := awscloudwatch.NewAlarm(scope, jsii.String("Alarm-"+a.name), &awscloudwatch.AlarmProps{
			AlarmName:          jsii.String(names.Prefix + a.name),
			AlarmDescription:   jsii.String(a.description),
			Metric:             a.metric,
			Threshold:          jsii.Number(a.threshold),
			ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
			EvaluationPeriods:  jsii.Number(1),
			// Failure metrics have no data while nothing fails.
			TreatMissingData: awscloudwatch.TreatMissingData_NOT_BREACHING,
		})
		made.AddAlarmAction(awscloudwatchactions.NewSnsAction(n.topic))
		made.AddOkAction(awscloudwatchactions.NewSnsAction(n.topic))
	}
	newDashboard(scope, f, m, n)
}

func alarmTable(f functions, m machines, n notices, concurrency float64) []alarm {
	const (
		converge = "A cluster did not converge. Its status shows why: drover status"
		drain    = "A node was not drained: its pods ended with it, or its drain takes too long. The execution shows why"
		upgrade  = "An upgrade stopped or did not begin. The cluster's status shows why and what to do next: drover status"
		join     = "An instance did not become a node. Auto Scaling replaces it; the execution shows why"
	)
	out := []alarm{
		{"converge-failed", converge, m.converge.MetricFailed(perPeriod()), 0},
		{"converge-timed-out", converge, m.converge.MetricTimedOut(perPeriod()), 0},
		{"converge-aborted", converge, m.converge.MetricAborted(perPeriod()), 0},
		{"upgrade-failed", upgrade, m.upgrade.MetricFailed(perPeriod()), 0},
		{"upgrade-timed-out", upgrade, m.upgrade.MetricTimedOut(perPeriod()), 0},
		{"upgrade-aborted", upgrade, m.upgrade.MetricAborted(perPeriod()), 0},
		{"join-node-failed", join, m.joinNode.MetricFailed(perPeriod()), 0},
		{"join-node-timed-out", join, m.joinNode.MetricTimedOut(perPeriod()), 0},
		{"join-node-aborted", join, m.joinNode.MetricAborted(perPeriod()), 0},
		{"drain-node-failed", drain, m.drainNode.MetricFailed(perPeriod()), 0},
		{"drain-node-timed-out", drain, m.drainNode.MetricTimedOut(perPeriod()), 0},
		{"drain-node-aborted", drain, m.drainNode.MetricAborted(perPeriod()), 0},
		{
			"dead-letters", "An event could not be delivered or handled. The sweep handles most of them later; the message names the event",
			n.deadLetters.MetricApproximateNumberOfMessagesVisible(&awscloudwatch.MetricOptions{
				Period: minutes(period), Statistic: jsii.String("Maximum"),
			}), 0,
		},
		{
			"rollout-halted", "The run of a rollout is halted: its status shows why. It needs a decision: Resume, Retry, Skip or Abort",
			runsIn("Halted"), 0,
		},
		{
			// Claimed are the running functions and the reservations. An alarm on ConcurrentExecutions would add nothing: it is never higher.
			"lambda-concurrency", "Running functions and reservations of this account take more than 80 % of Lambda's concurrency. " +
				"Above the limit Lambda throttles drover",
			concurrencyOf("ClaimedAccountConcurrency"), nearLimit * concurrency,
		},
	}
	for _, each := range functionTable {
		if each.deadLettersAlarm {
			continue
		}
		fn, name := f[each.name], names.Function(each.name)
		out = append(out,
			alarm{each.name + "-errors", "The function " + name + " failed: its log shows why", fn.MetricErrors(perPeriod()), 0},
			alarm{each.name + "-throttles", "Lambda throttled " + name + ": the account's concurrency is used up",
				fn.MetricThrottles(perPeriod()), 0},
		)
	}
	return out
}

func newDashboard(scope constructs.Construct, f functions, m machines, n notices) {
	graph := func(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
			Title: jsii.String(title), Left: &metrics, Width: jsii.Number(12), Height: jsii.Number(6),
		})
	}
	each := func(metric, statistic string) []awscloudwatch.IMetric {
		var out []awscloudwatch.IMetric
		for _, each := range functionTable {
			out = append(out, f[each.name].Metric(jsii.String(metric), &awscloudwatch.MetricOptions{
				Period: minutes(period), Statistic: jsii.String(statistic), Label: jsii.String(each.name),
			}))
		}
		return out
	}
	executions := func(m awsstepfunctions.StateMachine) []awscloudwatch.IMetric {
		return []awscloudwatch.IMetric{
			m.MetricStarted(perPeriod()), m.MetricSucceeded(perPeriod()), m.MetricFailed(perPeriod()), m.MetricTimedOut(perPeriod()),
		}
	}
	awscloudwatch.NewDashboard(scope, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String("drover"),
		Widgets: &[]*[]awscloudwatch.IWidget{
			{graph("Converging clusters", executions(m.converge)...), graph("Joining nodes", executions(m.joinNode)...)},
			{graph("Draining nodes", executions(m.drainNode)...), graph("Upgrading clusters", executions(m.upgrade)...)},
			{graph("Errors of functions", each("Errors", "Sum")...), graph("Duration of functions (p95, ms)", each("Duration", "p95")...)},
			{graph("Throttled functions", each("Throttles", "Sum")...), graph("Pods deleted against their budgets", podsForced())},
			{
				graph("Evaluations of rollouts by the state of the run", runsIn("Running"), runsIn("Paused"), runsIn("Halted"), runsIn("RollingBack")),
				graph("Changes of rollouts", rolloutEvents()),
			},
			{
				graph("Dead letters", n.deadLetters.MetricApproximateNumberOfMessagesVisible(perPeriod())),
				graph("Concurrent executions of the account", concurrencyOf("ConcurrentExecutions"), concurrencyOf("ClaimedAccountConcurrency")),
			},
		},
	})
}

// podsForced sums the metric of the drain function over all clusters.
func podsForced() awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("SUM(SEARCH('{" + metrics.Namespace + ",cluster} MetricName=\"PodsForced\"', 'Sum', 300))"),
		Label:      jsii.String("pods"), Period: minutes(period), UsingMetrics: &map[string]awscloudwatch.IMetric{},
	})
}

// runsIn counts the evaluations of runs in a state. Each active run is evaluated every two minutes.
func runsIn(state string) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(metrics.Namespace), MetricName: jsii.String("RolloutState"), Period: minutes(period),
		Statistic: jsii.String("Sum"), DimensionsMap: &map[string]*string{"state": jsii.String(state)},
	})
}

// rolloutEvents counts the notices of rollouts by their event.
func rolloutEvents() awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("SEARCH('{" + metrics.Namespace + ",event} MetricName=\"RolloutEvent\"', 'Sum', 300)"),
		Label:      jsii.String(""), Period: minutes(period), UsingMetrics: &map[string]awscloudwatch.IMetric{},
	})
}

// concurrencyOf returns a metric of the account's concurrency.
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-concurrency.html
func concurrencyOf(name string) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/Lambda"), MetricName: jsii.String(name), Period: minutes(period), Statistic: jsii.String("Maximum"),
	})
}

func perPeriod() *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Period: minutes(period), Statistic: jsii.String("Sum")}
}

func minutes(n float64) awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(n)) }
