package notification_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/status"
)

// entry is an event of a PutEvents call.
type entry struct{ EventBusName, Source, DetailType, Detail string }

// services simulates PutEvents and Publish.
type services struct {
	entries   []entry
	published []url.Values
	calls     int
	// refused reports whether EventBridge refuses an entry, although the call succeeds.
	// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html (FailedEntryCount)
	refused func(call, i int) bool
	topic   error
}

func (s *services) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	code, kind, answer := http.StatusOK, "text/xml",
		`<PublishResponse><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>`
	if r.Header.Get("X-Amz-Target") == "AWSEvents.PutEvents" {
		kind = "application/x-amz-json-1.1"
		var in struct{ Entries []entry }
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		var lines []string
		failed := 0
		for i, e := range in.Entries {
			if s.refused != nil && s.refused(s.calls, i) {
				failed++
				lines = append(lines, `{"ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded"}`)
				continue
			}
			s.entries = append(s.entries, e)
			lines = append(lines, `{"EventId": "1"}`)
		}
		s.calls++
		answer = fmt.Sprintf(`{"FailedEntryCount": %d, "Entries": [%s]}`, failed, strings.Join(lines, ","))
	} else {
		form, err := url.ParseQuery(string(body))
		switch {
		case err != nil:
			return nil, err
		case s.topic != nil:
			code, answer = http.StatusForbidden, `<ErrorResponse><Error><Code>AuthorizationError</Code><Message>no</Message></Error></ErrorResponse>`
		default:
			s.published = append(s.published, form)
		}
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r,
	}, nil
}

func listen(s *services, out io.Writer) *notification.Notifier {
	cfg := aws.Config{
		Region: "eu-west-1", HTTPClient: &http.Client{Transport: s}, Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1,
	}
	return notification.New(sns.NewTopic(cfg, "arn:aws:sns:eu-west-1:1:topic"), eventbridge.NewBus(cfg, names.Bus), out, time.Now)
}

// blockedNodes is a change with one notice for each node.
func blockedNodes(nodes int) (before, after *status.Status) {
	before, after = &status.Status{Phase: status.Ready}, &status.Status{Phase: status.Ready}
	for i := range nodes {
		id := fmt.Sprint("i-", i)
		after.SetNode(status.Node{Name: id, Instance: id, Pool: "a", State: status.NodeBlocked, Message: "two budgets"}, time.Unix(int64(i), 0))
	}
	return before, after
}

// A successful call may have refused events. They were not sent.
func TestRefusedEvents(t *testing.T) {
	for name, refused := range map[string]func(call, i int) bool{
		"the first of a call":  func(_, i int) bool { return i == 0 },
		"the last of a call":   func(call, i int) bool { return call == 0 && i == 9 },
		"one of the next call": func(call, i int) bool { return call == 1 && i == 1 },
		"all":                  func(int, int) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			s := &services{refused: refused}
			before, after := blockedNodes(12)
			sent := map[string]bool{}
			err := listen(s, io.Discard).StatusChanging(t.Context(), "demo", before, after, sent)
			require.Equal(t, "ThrottlingException", fault.Code(err))
			require.Equal(t, "Throttled", fault.NameOf(err), "the state machine retries")
			require.ErrorContains(t, err, "Rate exceeded")
			require.Empty(t, sent, "all are sent again")
			require.Empty(t, s.published)
		})
	}
	t.Run("are sent again by the next try", func(t *testing.T) {
		s := &services{refused: func(call, i int) bool { return call == 0 && i == 1 }}
		before, after := blockedNodes(2)
		sent, listeners := map[string]bool{}, listen(s, io.Discard)
		require.Error(t, listeners.StatusChanging(t.Context(), "demo", before, after, sent))
		require.NoError(t, listeners.StatusChanging(t.Context(), "demo", before, after, sent))
		require.Len(t, s.entries, 3)
		require.Len(t, sent, 2)
		require.NoError(t, listeners.StatusChanging(t.Context(), "demo", before, after, sent))
		require.Len(t, s.entries, 3, "and not again after that")
	})
	t.Run("have the bus and the source of drover", func(t *testing.T) {
		s := &services{}
		before, after := blockedNodes(12)
		require.NoError(t, listen(s, io.Discard).StatusChanging(t.Context(), "demo", before, after, map[string]bool{}))
		require.Len(t, s.entries, 12)
		require.Equal(t, 2, s.calls, "ten entries a call")
		for _, e := range s.entries {
			require.Equal(t, "drover", e.EventBusName)
			require.Equal(t, events.Source, e.Source)
			require.Equal(t, events.ClusterNodeChange, e.DetailType)
			require.Contains(t, e.Detail, `"cluster":"demo"`)
		}
		require.Len(t, s.published, 12)
		attributes := map[string]string{}
		for i := 1; s.published[0].Get(fmt.Sprintf("MessageAttributes.entry.%d.Name", i)) != ""; i++ {
			at := fmt.Sprintf("MessageAttributes.entry.%d.", i)
			attributes[s.published[0].Get(at+"Name")] = s.published[0].Get(at + "Value.StringValue")
		}
		require.Equal(t, map[string]string{"cluster": "demo", "state": "Blocked", "urgency": "problem"}, attributes)
	})
}

func TestTopicRefuses(t *testing.T) {
	s := &services{topic: errors.New("no")}
	var out bytes.Buffer
	sent := map[string]bool{}
	err := listen(s, &out).StatusChanging(t.Context(), "demo", &status.Status{Phase: status.Ready}, &status.Status{Phase: status.Failed}, sent)
	require.Equal(t, "AuthorizationError", fault.Code(err))
	require.Empty(t, sent)
	require.Empty(t, out.String(), "only sent changes are counted")
}

// The status records the failure that was sent, so that a retry with the same failure is not sent again.
func TestSentFailureIsRecorded(t *testing.T) {
	s := &services{}
	before := &status.Status{Phase: status.Converging, PlannedVersion: "v1"}
	after := &status.Status{Phase: status.Failed, PlannedVersion: "v1", Message: "the quota is used up"}
	require.NoError(t, listen(s, io.Discard).StatusChanging(t.Context(), "demo", before, after, map[string]bool{}))
	require.Equal(t, &status.Failure{SpecVersion: "v1", Message: "the quota is used up"}, after.NotifiedFailure)
	refusing := &services{topic: errors.New("no")}
	after.NotifiedFailure = nil
	require.Error(t, listen(refusing, io.Discard).StatusChanging(t.Context(), "demo", before, after, map[string]bool{}))
	require.Nil(t, after.NotifiedFailure, "a failure that was not sent is not recorded")
}
