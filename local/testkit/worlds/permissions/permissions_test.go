package permissions_test

// Proof of least privilege. The lives of cluster_lives_test.go, node_lives_test.go and upgrade_lives_test.go run with exactly the
// synthesized roles, and no call is denied: no
// permission is missing. Each test then removes one permission. A life that uses it is denied that call, and it either reports the denial
// or ends in another state: no permission is superfluous.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
)

// beyond are permissions that no test in this process uses, each with the page that documents its need. local/account uses
// some of them: its Lambda and schedules act with these roles, and are denied every other call.
var beyond = map[string]string{
	// Lambda writes the logs of functions; used in local/account.
	"logs:CreateLogStream": lambdaLogs,
	"logs:PutLogEvents":    lambdaLogs,
	// Lambda and Step Functions send traces; X-Ray is not simulated. The second page is about state machines.
	"xray:PutTraceSegments":    "https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html#services-xray-permissions " + machineTraces,
	"xray:PutTelemetryRecords": "https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html#services-xray-permissions " + machineTraces,
	"xray:GetSamplingRules":    machineTraces,
	"xray:GetSamplingTargets":  machineTraces,
	// Step Functions delivers the logs of machines.
	"logs:CreateLogDelivery":        machineLogs,
	"logs:GetLogDelivery":           machineLogs,
	"logs:UpdateLogDelivery":        machineLogs,
	"logs:DeleteLogDelivery":        machineLogs,
	"logs:ListLogDeliveries":        machineLogs,
	"logs:PutResourcePolicy":        machineLogs,
	"logs:DescribeResourcePolicies": machineLogs,
	// Without that of clean, which a life uses.
	"converge logs:DescribeLogGroups":        machineLogs,
	"join-node logs:DescribeLogGroups":       machineLogs,
	"drain-node logs:DescribeLogGroups":      machineLogs,
	"upgrade-machine logs:DescribeLogGroups": machineLogs,
	// Lambda and schedules send events that failed; used in local/account. The second page is about schedules.
	"sqs:SendMessage": "https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html " +
		"https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html",
	// The schedule invokes the sweep; used in local/account.
	"scheduler lambda:InvokeFunction": "https://docs.aws.amazon.com/scheduler/latest/UserGuide/setting-up.html#setting-up-execution-role",
}

// onlyLogged are permissions that change no outcome: only a log shows their absence. Each value is the page that documents why the
// role has it.
var onlyLogged = map[string]string{
	// Without it S3 answers AccessDenied for a missing status. Drains continue either way; the permission keeps their logs correct.
	"drain s3:ListBucket": "https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html",
	// Without it the handler does not wait for the network interfaces of a function. Then the deletion of its security group waits.
	"cloudformation ec2:DescribeNetworkInterfaces": "https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html",
	// If an execution cannot be described, its step is started again, which finds that it was started. The deployed state verifies the step.
	"upgrade-machine states:DescribeExecution": "https://docs.aws.amazon.com/step-functions/latest/dg/connect-stepfunctions.html",
}

// Pages that document several permissions.
const (
	lambdaLogs    = "https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html#monitoring-cloudwatchlogs-prereqs"
	machineTraces = "https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html"
	machineLogs   = "https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-iam-policy"
)

func TestUnusedPermissionsAreDocumented(t *testing.T) {
	for _, list := range []map[string]string{beyond, onlyLogged} {
		for permission, shown := range list {
			for what := range strings.FieldsSeq(shown) {
				page, err := url.Parse(what)
				require.NoError(t, err, permission)
				require.Equal(t, "https docs.aws.amazon.com", page.Scheme+" "+page.Host, permission)
				require.NotEmpty(t, page.Path, permission)
			}
		}
	}
}

// permission is one action on one resource of one role, possibly with a condition.
type permission struct{ role, action, on, when string }

func (p permission) String() string {
	if p.when == "" {
		return p.role + " " + p.action + " on " + p.on
	}
	return p.role + " " + p.action + " on " + p.on + " if " + p.when
}

func (p permission) beyond() bool {
	if p.role == cloudFormation {
		return handlers[p.action] != "" || handlers[p.action+" "+p.kind()] != ""
	}
	return beyond[p.action] != "" || beyond[p.role+" "+p.action] != ""
}

// onlyLogged reports whether only a log shows that the permission is missing.
func (p permission) onlyLogged() bool { return onlyLogged[p.role+" "+p.action] != "" }

// kind returns the kind of resource of a permission, or the service of a linked role.
func (p permission) kind() string {
	parts := strings.SplitN(p.on, ":", 6)
	kind, name, _ := strings.Cut(strings.ReplaceAll(parts[len(parts)-1], ":", "/"), "/")
	if service, linked := strings.CutPrefix(name, "aws-service-role/"); linked {
		kind, _, _ = strings.Cut(service, "/")
	}
	return kind
}

// statement returns the statement that allows it.
func (p permission) statement(sid string) map[string]any {
	s := map[string]any{"Sid": sid, "Effect": "Allow", "Action": p.action, "Resource": p.on}
	if p.when != "" {
		s["Condition"] = json.RawMessage(p.when)
	}
	return s
}

// policy returns a policy with this permission only. The ID of the topic's key differs in each account, so the resource is a pattern.
func (p permission) policy(t testing.TB) *iam.Policy {
	p.on = strings.ReplaceAll(p.on, ":key/NoticesKey", ":key/*")
	policy, _, err := iam.ParsePolicyValue(map[string]any{"Version": "2012-10-17", "Statement": p.statement("P")}, false)
	require.NoError(t, err)
	return policy
}

// cloudFormation is the role that creates the resources of clusters. AWS's handlers need more permissions than the simulated
// ones.
const cloudFormation = "cloudformation"

// many is a JSON string or a list of strings.
type many []string

func (m *many) UnmarshalJSON(body []byte) error {
	if body[0] == '"' {
		*m = make([]string, 1)
		return json.Unmarshal(body, &(*m)[0])
	}
	return json.Unmarshal(body, (*[]string)(m))
}

// split gives each permission of drover's roles its own statement, and omits one permission.
func split(t testing.TB, w *iam.Definitions, less permission) map[string]permission {
	all := map[string]permission{}
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		step := strings.TrimPrefix(name, names.Role(harness.Region, ""))
		for _, policy := range slices.Sorted(maps.Keys(w.Roles[name].Inline)) {
			if body := splitPolicy(t, step, w.Roles[name].Inline[policy], less, all); body != nil {
				w.Roles[name].Inline[policy] = body
			} else {
				delete(w.Roles[name].Inline, policy)
			}
		}
		for _, policy := range w.Roles[name].Managed {
			body := splitPolicy(t, step, w.Policies[policy], less, all)
			require.NotNil(t, body, "a managed policy of one permission")
			w.Policies[policy] = body
		}
	}
	return all
}

// splitPolicy splits a policy of a role, and adds its permissions to all by statement. It returns nil if none is left.
func splitPolicy(t testing.TB, step string, body json.RawMessage, less permission, all map[string]permission) json.RawMessage {
	var document struct {
		Version   string
		Statement []struct {
			Effect           string
			Action, Resource many
			Condition        json.RawMessage `json:",omitempty"`
		}
	}
	require.NoError(t, json.Unmarshal(body, &document))
	var statements []any
	for _, s := range document.Statement {
		require.Equal(t, "Allow", s.Effect)
		for _, action := range s.Action {
			for _, on := range s.Resource {
				p := permission{step, action, on, string(s.Condition)}
				if p == less {
					continue
				}
				sid := fmt.Sprintf("P%d", len(all))
				all[sid] = p
				statements = append(statements, p.statement(sid))
			}
		}
	}
	if len(statements) == 0 {
		return nil
	}
	out, err := json.Marshal(map[string]any{"Version": document.Version, "Statement": statements})
	require.NoError(t, err)
	return out
}

// probe is a test whose failure is an outcome.
type probe struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (p *probe) Helper()          {}
func (p *probe) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }
func (p *probe) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
}
func (p *probe) FailNow() { runtime.Goexit() }

// lifeResult is the result of a life.
type lifeResult struct {
	// all permissions, and how often each was used.
	all  map[string]permission
	used map[permission]int
	// refused calls of drover. denied reports whether the removed permission would have allowed one of them.
	refused []string
	denied  bool
	// reported is all that users see: notices, statuses and failures. log has the histories of executions if the life failed, or if only
	// logs show that the permission is missing.
	reported, log string
	// state is the final state of each object.
	state    map[string]string
	failures []string
	took     time.Duration
}

// complains reports whether users can see that a permission is missing.
func (l lifeResult) complains() bool { return mentionsDenial(l.reported) || len(l.failures) > 0 }

func mentionsDenial(text string) bool {
	return slices.ContainsFunc([]string{"AccessDenied", "Access Denied", "not authorized"}, func(words string) bool {
		return strings.Contains(text, words)
	})
}

// commonPart returns the common part of two states. Simultaneous events happen in any order, so some of the final state differs.
func commonPart(a, b map[string]string) map[string]string {
	same := map[string]string{}
	for what, value := range a {
		if other, ok := b[what]; ok && other == value {
			same[what] = value
		}
	}
	return same
}

// otherwise lists the objects whose final state differs from the agreed one.
func (l lifeResult) otherwise(agreed map[string]string) (list []string) {
	for what, value := range agreed {
		if l.state[what] != value {
			list = append(list, what)
		}
	}
	return list
}

// live runs a life without one permission, in virtual time. The life ends early once users can see the denial: nothing takes that back, so
// the rest of the life would not change the verdict.
func live(t *testing.T, run func(*life), less permission) (out lifeResult) {
	out.used = map[permission]int{}
	var taken *iam.Policy
	if less != (permission{}) {
		taken = less.policy(t)
	}
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		p := &probe{TB: t}
		var l *life
		done := make(chan struct{})
		go func() {
			defer close(done)
			var mu sync.Mutex
			var seen seenFailures
			l = startWith(p, harness.Options{
				Bubble: true,
				Decided: func() bool {
					mu.Lock()
					denied := out.denied
					mu.Unlock()
					return denied && l != nil && !less.onlyLogged() && seen.mentionDenial(l)
				},
				Workloads:  true,
				Identities: func(w *iam.Definitions) { out.all = split(t, w, less) },
				OnAllow: func(_, sid string) {
					mu.Lock()
					defer mu.Unlock()
					out.used[out.all[sid]]++
				},
				OnDeny: func(role string, would func(*iam.Policy) bool) {
					mu.Lock()
					defer mu.Unlock()
					out.denied = out.denied || taken != nil && role == names.Role(harness.Region, less.role) && would(taken)
				},
			})
			run(l)
		}()
		<-done
		defer func() {
			for _, f := range slices.Backward(p.cleanups) {
				f()
			}
		}()
		out.failures = p.failures
		if l == nil { // drover could not even be deployed
			return
		}
		for _, call := range l.Calls.Since(0) {
			if strings.Contains(call.ErrorCode, "AccessDenied") && strings.Contains(call.Caller, "assumed-role/"+names.Role(harness.Region, "")) {
				out.refused = append(out.refused, fmt.Sprintf("%s: %s:%s on %s: %s", harness.CalledBy(call), call.Service, call.Action, call.Resource,
					call.Error))
			}
		}
		out.reported, out.state = l.ends()
		out.log = l.Log()
		p.mu.Lock()
		out.failures = p.failures
		p.mu.Unlock()
		if len(out.failures) > 0 || less.onlyLogged() {
			out.log += l.histories()
		}
	})
	out.took = time.Since(began)
	return out
}

// seenFailures are the numbers of notices and failures that were searched for a denial.
type seenFailures struct{ notices, functions, executions int }

// mentionDenial reports whether a new notice or failure of a life mentions a denial. ends returns the same ones, and they stay.
func (s *seenFailures) mentionDenial(l *life) bool {
	notices, functions := l.Notices(), l.Functions.Failed()
	var executions []string
	for _, x := range l.StepFunctions.Executions() {
		if x.Status != "SUCCEEDED" && x.Status != "RUNNING" {
			executions = append(executions, x.Error+" "+x.Cause)
		}
	}
	all := [][]string{notices[s.notices:], functions[s.functions:], executions}
	if len(executions) == s.executions {
		all = all[:2]
	}
	*s = seenFailures{len(notices), len(functions), len(executions)}
	return slices.ContainsFunc(slices.Concat(all...), mentionsDenial)
}

// ends returns all that users see and the final state. Users see notices, statuses, failed executions and stacks, and alarms on failed
// functions.
func (l *life) ends() (reported string, state map[string]string) {
	var text strings.Builder
	state = map[string]string{}
	subjects := map[string]bool{}
	for _, n := range l.Notices() {
		fmt.Fprintln(&text, n)
		subject, _, _ := strings.Cut(n, "\n")
		subjects[subject] = true
	}
	state["notices"] = fmt.Sprint(slices.Sorted(maps.Keys(subjects)))
	for _, failed := range l.Functions.Failed() {
		fmt.Fprintln(&text, failed)
	}
	failures := map[string]int{}
	for _, x := range l.StepFunctions.Executions() {
		if x.Status != "SUCCEEDED" {
			fmt.Fprintln(&text, x.Error, x.Cause)
			failures[x.MachineName+" "+x.Status]++
		}
	}
	state["executions"] = fmt.Sprint(failures)
	for _, stack := range l.CloudFormation.Stacks() {
		fmt.Fprintln(&text, stack.StackStatusReason)
		state["stack "+stack.StackName] = stack.StackStatus
	}
	clusters, err := l.State().List(context.Background(), names.Statuses)
	require.NoError(l.T, err)
	for _, object := range clusters {
		cluster := strings.TrimSuffix(strings.TrimPrefix(object.Key, names.Statuses), ".json")
		s := l.Status(cluster)
		body, err := json.Marshal(s)
		require.NoError(l.T, err)
		text.Write(body)
		state["phase of "+cluster] = string(s.Phase)
		for _, c := range s.Conditions {
			state["condition "+c.Type+" of "+cluster] = c.Status + " " + c.Reason
		}
		if s.Upgrade != nil {
			state["upgrade of "+cluster] = s.Upgrade.Phase
		}
	}
	return text.String(), state
}

// histories returns the failures in executions, also those that were handled.
func (l *life) histories() string {
	var text strings.Builder
	for _, x := range l.StepFunctions.Executions() {
		history, err := sfn.NewFromConfig(l.Config()).GetExecutionHistory(context.Background(), &sfn.GetExecutionHistoryInput{
			ExecutionArn: &x.ARN, MaxResults: 1000,
		})
		if err != nil {
			fmt.Fprintln(&text, err)
			continue
		}
		for _, e := range history.Events {
			if failed := e.TaskFailedEventDetails; failed != nil {
				fmt.Fprintln(&text, aws.ToString(failed.Error), aws.ToString(failed.Cause))
			}
		}
	}
	return text.String()
}

func TestEveryPermissionIsNeeded(t *testing.T) {
	runs := make(map[string]lifeResult, len(allLives))
	var mu sync.Mutex
	t.Run("with all of them every life is refused nothing", func(t *testing.T) {
		for name, run := range allLives {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l, once := live(t, run, permission{}), live(t, run, permission{})
				require.Empty(t, l.failures, "%s %s", l.reported, l.log)
				require.Empty(t, l.refused)
				require.False(t, l.complains(), "%s", l.reported)
				l.state = commonPart(l.state, once.state)
				require.NotEmpty(t, l.state)
				mu.Lock()
				defer mu.Unlock()
				runs[name] = l
			})
		}
	})
	if t.Failed() {
		return
	}
	var needed []permission
	for _, p := range permissionsOf(runs) {
		used := slices.ContainsFunc(slices.Collect(maps.Values(runs)), func(l lifeResult) bool { return l.used[p] > 0 })
		switch {
		case p.role == cloudFormation && used: // the handlers on AWS may use it in further ways
			needed = append(needed, p)
		case p.beyond() && used:
			t.Errorf("%s is used: take it off the list of what is beyond this test", p)
		case !p.beyond() && !used:
			t.Errorf("%s: no life uses it. Add one that does to cluster_lives_test.go, or do without the permission", p)
		case used:
			needed = append(needed, p)
		}
	}
	for _, list := range []map[string]string{beyond, onlyLogged} {
		for listed := range list {
			held := func(p permission) bool {
				return p.role != cloudFormation && p.action == listed || p.role+" "+p.action == listed
			}
			require.True(t, slices.ContainsFunc(permissionsOf(runs), held), "%s is on a list, and no role has it", listed)
		}
	}
	for listed, kind := range handlers {
		matches := func(p permission) bool {
			return p.role == cloudFormation && (p.action == listed || p.action+" "+p.kind() == listed)
		}
		require.True(t, slices.ContainsFunc(permissionsOf(runs), matches),
			"%s of %s is on the list of what handlers call on AWS, and CloudFormation's role has it not", listed, kind)
		for _, l := range runs {
			for p := range l.used {
				require.False(t, matches(p), "%s is used: take it off the list of what handlers call on AWS alone", p)
			}
		}
	}
	t.Run("without it something goes wrong:", func(t *testing.T) {
		for _, p := range needed {
			t.Run(p.String(), func(t *testing.T) {
				t.Parallel()
				require.True(t, isMissed(t, runs, p), "no life that uses it is refused it and goes wrong")
			})
		}
	})
}

// permissionsOf lists all permissions, in order.
func permissionsOf(runs map[string]lifeResult) []permission {
	for _, l := range runs {
		list := slices.Collect(maps.Values(l.all))
		slices.SortFunc(list, func(a, b permission) int { return strings.Compare(a.String(), b.String()) })
		return slices.Compact(list)
	}
	return nil
}

// isMissed reports whether a life without the permission is denied a call and ends differently. It tries the fastest life first.
// A life that ends differently without that denial proves nothing.
func isMissed(t *testing.T, runs map[string]lifeResult, p permission) bool {
	var with []string
	for name, l := range runs {
		if l.used[p] > 0 {
			with = append(with, name)
		}
	}
	slices.SortFunc(with, func(a, b string) int { return int(runs[a].took - runs[b].took) })
	for range 3 { // simultaneous events happen in any order, which may hide the difference
		for _, name := range with {
			l := live(t, allLives[name], p)
			if !l.denied {
				continue
			}
			if l.complains() || p.onlyLogged() && (p.role == cloudFormation || mentionsDenial(l.log)) {
				return true
			}
			// The difference proves the need only if it never occurs with all permissions.
			if len(l.otherwise(runs[name].state)) > 0 &&
				len(l.otherwise(commonPart(runs[name].state, live(t, allLives[name], permission{}).state))) > 0 {
				return true
			}
		}
	}
	return false
}
