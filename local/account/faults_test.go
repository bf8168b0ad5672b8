package account

// Faults: lost events, functions that die, pools that cannot be created. drover notices, reports and recovers.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// sweep starts a run of the sweep's schedule.
func sweep(t *testing.T) {
	t.Helper()
	before := cloud.invocations("sweep")
	require.NoError(t, cloud.Scheduler.Fire(t.Context(), "drover", "drover-sweep"))
	cloud.until(t, func() bool { return cloud.invocations("sweep") > before }, func() string { return "the sweep was not invoked" })
}

func TestLostEvents(t *testing.T) {
	const name = "lost"
	cloud.retire(t, name)
	started := time.Now().UTC()
	var mu sync.Mutex
	lost := map[string]int{}
	cloud.deliveries(t, func(rule string, _ eventbridge.Event, deliver func()) {
		if rule != "drover-spec-changed" && rule != "drover-stack-done" {
			deliver()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		lost[rule]++
	})
	losses := func(rule string) int {
		mu.Lock()
		defer mu.Unlock()
		return lost[rule]
	}
	version := cloud.upload(t, name, text(t, specOf(name, pool("one", 1))))
	cloud.until(t, func() bool { return losses("drover-spec-changed") == 1 }, func() string { return "no event of the upload" })

	// A new object is not missed yet: its event may still arrive.
	sweep(t)
	require.Empty(t, cloud.executions(name))

	// The store takes an object's age from its file.
	file := filepath.Join(cloud.dir, "s3", "data", names.SpecsBucket(ID, "us-east-1"), names.ClusterSpec(name))
	require.FileExists(t, file)
	old := time.Now().Add(-3 * time.Minute)
	require.NoError(t, os.Chtimes(file, old, old))
	sweep(t)
	cloud.until(t, func() bool { return cloud.executions(name) != "" }, func() string { return "the sweep did not admit the spec" })

	// The event of every stack is lost and recovered.
	swept := 0
	cloud.until(t, func() bool {
		if n := losses("drover-stack-done"); n > swept {
			swept = n
			sweep(t)
		}
		return len(cloud.since("drover-converge", started)) == 1 && cloud.since("drover-converge", started)[0].Status != "RUNNING"
	}, func() string { return fmt.Sprintf("%d events were lost\n%s", swept, cloud.executions(name)) })
	require.GreaterOrEqual(t, swept, 5)
	s := cloud.ready(t, name, version)
	require.Len(t, s.Stacks, 5)

	// A further sweep finds nothing.
	mark := cloud.Calls.Mark()
	sweep(t)
	require.Empty(t, cloud.mutations(mark))
}

func TestFailedPool(t *testing.T) {
	const name, noType, noSnapshot = "broken", "m99i.large", "snap-00000000000000000"
	cloud.retire(t, name)
	queue := subscribeQueue(t)
	good, absent, disk := pool("good", 1), pool("absent", 1), pool("disk", 1)
	absent["instanceTypes"] = []any{noType}
	disk["volumes"] = []any{object{"device": "/dev/xvdb", "snapshotID": noSnapshot}}
	// The checks before the first creation would find the instance type. They do not run for a cluster that exists.
	cloud.ready(t, name, cloud.upload(t, name, text(t, specOf(name))))
	s := cloud.rest(t, name, cloud.upload(t, name, text(t, specOf(name, absent, good, disk))))

	t.Run("names the failed resource", func(t *testing.T) {
		require.Equal(t, status.Failed, s.Phase)
		converged := s.Condition(status.Converged)
		require.Equal(t, "False", converged.Status)
		require.Equal(t, "StackFailed", converged.Reason)
		for stack, why := range map[string]string{"pool-absent": noType, "pool-disk": noSnapshot} {
			require.Contains(t, s.Message, names.Stack(name, stack))
			i := slices.IndexFunc(s.Stacks, func(s status.Stack) bool { return s.Name == stack })
			require.GreaterOrEqual(t, i, 0, stack)
			require.Equal(t, "Group", s.Stacks[i].Resource)
			require.Contains(t, s.Stacks[i].Reason, why)
			require.Contains(t, s.Stacks[i].Status, "ROLLBACK")
		}
	})
	t.Run("continues with other pools", func(t *testing.T) {
		require.Equal(t, map[string]int{"good": 1}, poolsOf(t, name))
		for _, stack := range []string{"network", "control-plane", "addons", "pool-good", "addons-on-nodes"} {
			require.Contains(t, []string{"CREATE_COMPLETE", "UPDATE_COMPLETE"}, string(stackOf(t, name, stack).StackStatus), stack)
		}
	})
	t.Run("notifies and raises an alarm", func(t *testing.T) {
		cloud.until(t, func() bool { return cloud.CloudWatch.AlarmStates()["drover-converge-failed"] == "ALARM" }, func() string {
			return fmt.Sprint(cloud.CloudWatch.AlarmStates())
		})
		require.Equal(t, "OK", cloud.CloudWatch.AlarmStates()["drover-converge-aborted"])
		receive(t, queue, func(m notice) bool {
			return m.Subject == "drover: broken is Failed" && strings.Contains(m.Message, noType)
		}, func(m notice) bool { return strings.HasPrefix(m.Subject, `ALARM: "drover-converge-failed"`) })
	})
	t.Run("sends an event", func(t *testing.T) {
		cloud.mu.Lock()
		defer cloud.mu.Unlock()
		require.True(t, slices.ContainsFunc(cloud.notices, func(e eventbridge.Event) bool {
			var change events.StatusChange
			return e.Source == events.Source && e.DetailType == events.ClusterStatusChange && json.Unmarshal(e.Detail, &change) == nil &&
				change.Cluster == name && change.Phase == "Failed" && change.Reason == "StackFailed" && strings.Contains(change.Message, noType)
		}), "%v", cloud.notices)
	})
	t.Run("recovers with the next spec", func(t *testing.T) {
		delete(disk, "volumes")
		cloud.ready(t, name, cloud.upload(t, name, text(t, specOf(name, good, disk))))
		require.Equal(t, map[string]int{"good": 1, "disk": 1}, poolsOf(t, name))
	})
}

// notice is a topic's message to a queue.
type notice struct{ Subject, Message string }

// subscribeQueue returns the URL of a queue that is subscribed to drover's topic.
func subscribeQueue(t *testing.T) string {
	t.Helper()
	topics, queues := sns.NewFromConfig(cloud.Config()), sqs.NewFromConfig(cloud.Config())
	created, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("oncall"), Attributes: map[string]string{
		"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"*"}]}`,
	}})
	require.NoError(t, err)
	all, err := topics.ListTopics(t.Context(), &sns.ListTopicsInput{})
	require.NoError(t, err)
	require.Len(t, all.Topics, 1)
	_, err = topics.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: all.Topics[0].TopicArn, Protocol: aws.String("sqs"), Endpoint: aws.String("arn:aws:sqs:us-east-1:" + ID + ":oncall"),
	})
	require.NoError(t, err)
	return *created.QueueUrl
}

// receive receives notices from a queue until each wanted one has arrived.
func receive(t *testing.T, queue string, wanted ...func(notice) bool) {
	t.Helper()
	client := sqs.NewFromConfig(cloud.Config())
	var got []notice
	cloud.until(t, func() bool {
		out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10})
		require.NoError(t, err)
		for _, m := range out.Messages {
			var n notice
			require.NoError(t, json.Unmarshal([]byte(*m.Body), &n))
			got = append(got, n)
		}
		return !slices.ContainsFunc(wanted, func(is func(notice) bool) bool { return !slices.ContainsFunc(got, is) })
	}, func() string { return fmt.Sprint(got) })
}

func TestDeadLetterAlarm(t *testing.T) {
	client := sqs.NewFromConfig(cloud.Config())
	queue, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("drover-dead-letters")})
	require.NoError(t, err)
	metrics{cloud.CloudWatch}.depths(cloud.Queues)
	require.Equal(t, "OK", cloud.CloudWatch.AlarmStates()["drover-dead-letters"])
	_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("lost")})
	require.NoError(t, err)
	metrics{cloud.CloudWatch}.depths(cloud.Queues)
	require.Equal(t, "ALARM", cloud.CloudWatch.AlarmStates()["drover-dead-letters"])
	_, err = client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: queue.QueueUrl})
	require.NoError(t, err)
}

// errKilled is the error of a killed function's call, which nothing reads.
var errKilled = &wire.Error{Code: "ServiceUnavailable", Message: "killed", Status: 503}

// While a cluster changes, each function is killed in its first call and then in its third, one round after the other.
// The change completes without help. (Package local/testkit/worlds/interruption kills them at every single call.)
func TestKilledFunctions(t *testing.T) {
	const name = "mortal"
	cloud.retire(t, name)
	spec := specOf(name, pool("one", 1))
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
	joinErrors := cloud.errors("join") // of clusters of other tests
	logs := [][]string{{"audit"}, {"api"}}
	kills, rounds := map[string]int{}, 0
	for _, step := range []string{"admit", "plan", "change", "stackevent", "prepare", "report"} {
		for _, n := range []int{1, 3} {
			struck := cloud.killAt(t, step, n)
			spec["spec"].(object)["controlPlane"] = object{"logs": logs[rounds%2]}
			rounds++
			version := cloud.upload(t, name, text(t, spec))
			s := cloud.rest(t, name, version)
			require.Equal(t, status.Ready, s.Phase, "%s killed at call %d: %s", step, n, s.Message)
			require.Equal(t, version, tagsOf(stackOf(t, name, "control-plane"))[names.TagSpecVersion])
			cloud.calmCalls()
			if !struck() {
				break // it makes fewer calls
			}
			kills[step]++
		}
	}
	t.Logf("killed: %v", kills)
	for _, step := range []string{"admit", "plan", "change", "stackevent", "report"} {
		require.GreaterOrEqual(t, kills[step], 2, step)
	}
	alarms := cloud.CloudWatch.AlarmStates()
	require.Equal(t, "ALARM", alarms["drover-change-errors"])
	require.Equal(t, "OK", alarms["drover-change-throttles"])
	require.Equal(t, joinErrors, cloud.errors("join"), "no call of join was killed")
	if joinErrors == 0 {
		require.Equal(t, "OK", alarms["drover-join-errors"])
	}
}

// killAt kills a step's function in its n-th call from now on. The result reports whether it did.
func (w *world) killAt(t *testing.T, step string, n int) (struck func() bool) {
	var mu sync.Mutex
	seen, done := 0, false
	w.calls(t, func(key string, call endpoint.Call) error {
		if !strings.Contains(call.Caller, "/"+names.Role("us-east-1", step)+"/") {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen != n {
			return nil
		}
		done = w.Lambda.Kill(key)
		return errKilled
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
}
