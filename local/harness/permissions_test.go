package harness

// Least privilege, proved: the lives of permissions_lives_test.go run with exactly the synthesized roles and are refused nothing,
// and whatever one permission is taken away, a life that uses it goes wrong. So none is missing and none is superfluous.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
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

	"github.com/drover-run/drover/local/iam"
	"github.com/drover-run/drover/local/states"
	"github.com/drover-run/drover/shared/names"
)

// beyond are permissions of which nothing in this process makes use, each with the page that says what needs it, or the test that does. What
// is said to be used in local/account is: its Lambda and schedule act with these roles and are refused what they may not.
var beyond = map[string]string{
	// Lambda writes the logs of functions; used in local/account.
	"logs:CreateLogStream": lambdaLogs,
	"logs:PutLogEvents":    lambdaLogs,
	// Lambda and Step Functions trace; nothing here knows X-Ray. The second page is the machines'.
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
	"logs:DescribeLogGroups":        machineLogs,
	// Lambda and the schedule send what could not be handled; used in local/account. The second page is the schedule's.
	"sqs:SendMessage": "https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html " +
		"https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html",
	// SNS encrypts what is published; no topic here is encrypted.
	"kms:GenerateDataKey": topicKey,
	"kms:Decrypt":         topicKey,
	// Checked beside CreateChangeSet and ExecuteChangeSet, of stacks whose tags are set or taken away; not here.
	"cloudformation:TagResource":   stackTagging,
	"cloudformation:UntagResource": stackTagging,
	// The schedule invokes the sweep; used in local/account.
	"scheduler lambda:InvokeFunction": "https://docs.aws.amazon.com/scheduler/latest/UserGuide/setting-up.html#setting-up-execution-role",
	// The audit's own tests have the conditions for these, with the same roles: functions/sweep/handler/audit_test.go.
	"sweep autoscaling:SetInstanceHealth": "TestNodesThatDoNotComeBackAreReplaced",
	"sweep states:StopExecution":          "TestAnExecutionThatWaitsForNothingIsReplaced",
}

// Pages that several of them are on.
const (
	lambdaLogs    = "https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html#monitoring-cloudwatchlogs-prereqs"
	machineTraces = "https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html"
	machineLogs   = "https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-iam-policy"
	topicKey      = "https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#sns-what-permissions-for-sse"
	stackTagging  = "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html#awscloudformation-actions-as-permissions"
)

func TestWhatNoTestShowsHasAPage(t *testing.T) {
	_, here, _, _ := runtime.Caller(0) // the S3 gateway of other tests changes the working directory
	tests, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../functions/sweep/handler/audit_test.go"))
	require.NoError(t, err)
	for permission, shown := range beyond {
		for what := range strings.FieldsSeq(shown) {
			if strings.HasPrefix(what, "Test") {
				require.Contains(t, string(tests), "func "+what+"(", permission)
				continue
			}
			page, err := url.Parse(what)
			require.NoError(t, err, permission)
			require.Equal(t, "https docs.aws.amazon.com", page.Scheme+" "+page.Host, permission)
			require.NotEmpty(t, page.Path, permission)
		}
	}
}

// permission is one action on one resource of one role.
type permission struct{ role, action, on string }

func (p permission) String() string { return p.role + " " + p.action + " on " + p.on }

func (p permission) beyond() bool { return beyond[p.action] != "" || beyond[p.role+" "+p.action] != "" }

// many is a JSON string or a list of them.
type many []string

func (m *many) UnmarshalJSON(body []byte) error {
	if body[0] == '"' {
		*m = make([]string, 1)
		return json.Unmarshal(body, &(*m)[0])
	}
	return json.Unmarshal(body, (*[]string)(m))
}

// split gives each permission of drover's functions and machines a statement of its own, less one. CloudFormation's role stays
// as it is: what its resource handlers call is not told by what runs here.
func split(t testing.TB, w *iam.Written, less permission) map[string]permission {
	all := map[string]permission{}
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		step := strings.TrimPrefix(name, names.Role(Region, ""))
		for policy, body := range w.Roles[name].Inline {
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
						p := permission{step, action, on}
						if p == less {
							continue
						}
						sid := fmt.Sprintf("P%d", len(all))
						all[sid] = p
						statement := map[string]any{"Sid": sid, "Effect": "Allow", "Action": action, "Resource": on}
						if s.Condition != nil {
							statement["Condition"] = s.Condition
						}
						statements = append(statements, statement)
					}
				}
			}
			if len(statements) == 0 {
				delete(w.Roles[name].Inline, policy)
				continue
			}
			var err error
			w.Roles[name].Inline[policy], err = json.Marshal(map[string]any{"Version": document.Version, "Statement": statements})
			require.NoError(t, err)
		}
	}
	return all
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

// lived is what came of a life.
type lived struct {
	// all permissions there were, and how often each was used.
	all  map[string]permission
	used map[permission]int
	// refused calls of drover's.
	refused []string
	// told is whatever people can read of it; state is how everything stands in the end.
	told, state string
	failures    []string
	took        time.Duration
}

// complains says whether anybody could know that a permission is missing.
func (l lived) complains() bool {
	for _, word := range []string{"AccessDenied", "Access Denied", "not authorized"} {
		if strings.Contains(l.told, word) {
			return true
		}
	}
	return len(l.failures) > 0
}

// live lives a life with all permissions less one, in virtual time.
func live(t *testing.T, run func(*life), less permission) (out lived) {
	out.used = map[permission]int{}
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		p := &probe{TB: t}
		var l *life
		done := make(chan struct{})
		go func() {
			defer close(done)
			l = newLife(p, func(w *iam.Written) { out.all = split(t, w, less) }, func(sid string) { out.used[out.all[sid]]++ })
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
			if strings.Contains(call.ErrorCode, "AccessDenied") && strings.Contains(call.Caller, "assumed-role/"+names.Role(Region, "")) {
				out.refused = append(out.refused, fmt.Sprintf("%s: %s:%s on %s: %s", CalledBy(call), call.Service, call.Action, call.Resource, call.Error))
			}
		}
		out.told, out.state = l.told()
		p.mu.Lock()
		out.failures = p.failures
		p.mu.Unlock()
	})
	out.took = time.Since(began)
	return out
}

// told is what can be read of the account, and how it stands.
func (l *life) told() (told, state string) {
	var text, stands strings.Builder
	text.WriteString(l.Log())
	for _, n := range l.Notices() {
		text.WriteString(n)
	}
	counts := map[string]int{}
	for _, x := range l.States.Executions() {
		fmt.Fprintln(&text, x.Error, x.Cause, x.Output)
		counts[x.MachineName+" "+x.Status]++
		history, err := sfn.NewFromConfig(l.Config()).GetExecutionHistory(l.t.Context(), &sfn.GetExecutionHistoryInput{ExecutionArn: &x.ARN, MaxResults: 1000})
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
	for _, stack := range l.CloudFormation.Stacks() {
		fmt.Fprintln(&text, stack.StackStatusReason)
		fmt.Fprintln(&stands, stack.StackName, stack.StackStatus)
	}
	fmt.Fprintln(&stands, counts)
	return text.String(), stands.String()
}

func TestEveryPermissionIsNeeded(t *testing.T) {
	runs := make(map[string]lived, len(lives))
	var mu sync.Mutex
	t.Run("with all of them every life is refused nothing", func(t *testing.T) {
		for name, run := range lives {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := live(t, run, permission{})
				require.Empty(t, l.failures, "%s", l.told)
				require.Empty(t, l.refused)
				require.False(t, l.complains(), "%s", l.told)
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
		used := slices.ContainsFunc(slices.Collect(maps.Values(runs)), func(l lived) bool { return l.used[p] > 0 })
		switch {
		case p.role == "cloudformation":
		case p.beyond() && used:
			t.Errorf("%s is used: take it off the list of what is beyond this test", p)
		case !p.beyond() && !used:
			t.Errorf("%s: no life uses it. Add one that does to permissions_lives_test.go, or do without the permission", p)
		case used:
			needed = append(needed, p)
		}
	}
	for listed := range beyond {
		held := func(p permission) bool {
			return p.role != "cloudformation" && (p.action == listed || p.role+" "+p.action == listed)
		}
		require.True(t, slices.ContainsFunc(permissionsOf(runs), held), "%s is on the list of what is beyond this test, and no role has it", listed)
	}
	t.Run("without it something goes wrong:", func(t *testing.T) {
		for _, p := range needed {
			t.Run(p.String(), func(t *testing.T) {
				t.Parallel()
				require.True(t, missed(t, runs, p), "no life that uses it goes wrong without it")
			})
		}
	})
}

// permissionsOf lists all there are, in order.
func permissionsOf(runs map[string]lived) []permission {
	for _, l := range runs {
		list := slices.Collect(maps.Values(l.all))
		slices.SortFunc(list, func(a, b permission) int { return strings.Compare(a.String(), b.String()) })
		return slices.Compact(list)
	}
	return nil
}

// missed says whether a life that uses a permission goes wrong without it, the quickest one first.
func missed(t *testing.T, runs map[string]lived, p permission) bool {
	var with []string
	for name, l := range runs {
		if l.used[p] > 0 {
			with = append(with, name)
		}
	}
	slices.SortFunc(with, func(a, b string) int { return int(runs[a].took - runs[b].took) })
	for range 3 { // what happens at the same moment happens in any order, and may hide it
		for _, name := range with {
			l := live(t, lives[name], p)
			if l.complains() || l.state != runs[name].state {
				return true
			}
		}
	}
	return false
}

var errStillRunning = errors.New("it does not come to rest")

// life is an account in virtual time.
type life struct{ *Account }

func newLife(t testing.TB, change func(*iam.Written), used func(sid string)) *life {
	var mu sync.Mutex
	return &life{StartWith(t, Options{Bubble: true, Identities: change, OnAllow: func(_, sid string) {
		mu.Lock()
		defer mu.Unlock()
		used(sid)
	}})}
}

// settle waits until nothing happens any more: for a day at most.
func (l *life) settle() {
	for range 24 * 60 {
		time.Sleep(time.Minute)
		if l.Idle() && !slices.ContainsFunc(l.States.Executions(), func(x states.Execution) bool { return x.Status == "RUNNING" }) {
			return
		}
	}
	require.NoError(l.t, errStillRunning)
}
