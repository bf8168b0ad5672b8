package eventbridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eventbridge/delivery"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/sqs"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
)

const (
	account  = "111122223333"
	region   = "eu-central-1"
	function = "arn:aws:lambda:eu-central-1:111122223333:function:f"
	machine  = "arn:aws:states:eu-central-1:111122223333:stateMachine:m"
	queue    = "arn:aws:sqs:eu-central-1:111122223333:dead"
	trust    = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
		`"Action":"sts:AssumeRole"}]}`
)

// sentPayload is a payload that reached a target.
type sentPayload struct {
	target, payload string
	caller          iam.Caller
}

// world is a bus with real queues. Its functions and machines are Go functions.
type world struct {
	*Service
	identities *iam.Service
	queues     *sqs.Service
	arrived    chan sentPayload
	mu         sync.Mutex
	fails      []error // errors of the next invocations
}

func (w *world) fail() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.fails) == 0 {
		return nil
	}
	err := w.fails[0]
	w.fails = w.fails[1:]
	return err
}

func (w *world) InvokeAsync(_ context.Context, caller iam.Caller, in lambda.Invocation) (string, error) {
	if err := w.fail(); err != nil {
		return "", err
	}
	w.arrived <- sentPayload{in.Function, string(in.Payload), caller}
	return "request", nil
}

func (w *world) Start(_ context.Context, caller iam.Caller, arn, _, input string) (string, error) {
	if err := caller.Authorize("states:StartExecution", arn, nil); err != nil {
		return "", err
	}
	w.arrived <- sentPayload{arn, input, caller}
	return arn + ":x", nil
}

func newWorld(t *testing.T, speed float64) *world {
	t.Helper()
	c := &clock.Clock{Speed: speed}
	w := &world{identities: iam.New(account, region, c), arrived: make(chan sentPayload, 100)}
	w.queues = sqs.New(w.identities, c)
	require.NoError(t, w.queues.Create("dead", map[string]string{
		"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"` + queue + `"}]}`,
	}, nil))
	w.Service = New(Config{Account: account, Region: region, Clock: c, Identities: w.identities})
	w.SetTargets(delivery.Targets{Functions: w, Machines: w, Queues: w.queues})
	t.Cleanup(w.Close)
	return w
}

func (w *world) rule(t *testing.T, pattern string, targets ...target) {
	t.Helper()
	admin, _ := w.identities.Admin()
	_, err := w.setRule(admin, ruleSpec{Name: "specs", EventPattern: pattern})
	require.NoError(t, err)
	require.NoError(t, w.setTargets(admin, "", "specs", targets))
}

func (w *world) dead(t *testing.T) sqs.Message {
	t.Helper()
	admin, _ := w.identities.Admin()
	wait := 10 * time.Second
	got, err := w.queues.Receive(t.Context(), admin, queue, 1, &wait, nil)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

func TestDelivery(t *testing.T) {
	t.Run("sends an event to the targets of matching rules", func(t *testing.T) {
		w := newWorld(t, 1)
		w.rule(t, `{"source":["aws.s3"],"detail":{"object":{"key":[{"prefix":"clusters/"}]}}}`, target{Id: "f", Arn: function})
		w.Emit(t.Context(), "aws.s3", "Object Created", nil, map[string]any{"object": map[string]string{"key": "releases/x.yaml"}})
		w.Emit(t.Context(), "aws.s3", "Object Created", []string{"arn:aws:s3:::b"}, map[string]any{
			"object": map[string]string{"key": "clusters/<demo>.yaml"},
		})
		got := <-w.arrived
		require.Equal(t, function, got.target)
		require.Equal(t, "events.amazonaws.com", got.caller.ARN())
		require.Contains(t, got.payload, "<demo>", "no HTML escapes")
		var e Event
		require.NoError(t, json.Unmarshal([]byte(got.payload), &e))
		require.Equal(t, Event{
			Version: "0", ID: e.ID, DetailType: "Object Created", Source: "aws.s3", Account: account, Region: region, Time: e.Time,
			Resources: []string{"arn:aws:s3:::b"}, Detail: json.RawMessage(`{"object":{"key":"clusters/<demo>.yaml"}}`),
		}, e)
		at, err := time.Parse(time.RFC3339, e.Time)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, time.Minute)
		require.Empty(t, w.arrived)
	})
	t.Run("starts a state machine as the target's role", func(t *testing.T) {
		w := newWorld(t, 1)
		role, err := w.identities.CreateRole(iam.Role{Name: "events", TrustDocument: trust})
		require.NoError(t, err)
		require.NoError(t, w.identities.PutRolePolicy("events", "p",
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"states:StartExecution","Resource":"`+machine+`"}]}`))
		w.rule(t, `{"source":["aws.autoscaling"]}`, target{Id: "m", Arn: machine, RoleArn: w.identities.RoleARN(role), InputPath: "$.detail"})
		w.Emit(t.Context(), "aws.autoscaling", "EC2 Instance-launch Lifecycle Action", nil, map[string]any{"EC2InstanceId": "i-1"})
		got := <-w.arrived
		require.Equal(t, `{"EC2InstanceId":"i-1"}`, got.payload)
		require.Equal(t, w.identities.RoleARN(role), got.caller.RoleARN())
	})
	t.Run("retries throttles and failures of the target", func(t *testing.T) {
		w := newWorld(t, 1e6)
		w.fails = []error{
			errors.New("down"), &iam.Error{Code: "TooManyRequestsException", Status: 429}, &iam.Error{Code: "ServiceException", Status: 500},
		}
		w.rule(t, `{"source":["x"]}`, target{Id: "f", Arn: function})
		w.Emit(t.Context(), "x", "y", nil, struct{}{})
		require.Equal(t, function, (<-w.arrived).target)
	})
	t.Run("sends a dead letter after the last retry", func(t *testing.T) {
		w := newWorld(t, 1e6)
		w.fails = []error{errors.New("down"), errors.New("down"), errors.New("still down")}
		two := 2
		w.rule(t, `{"source":["x"]}`, target{
			Id: "f", Arn: function, Input: `{"only":"this"}`, RetryPolicy: &delivery.Policy{MaximumRetryAttempts: &two},
			DeadLetterConfig: &deadLetters{queue},
		})
		w.Emit(t.Context(), "x", "y", nil, map[string]int{"a": 1})
		m := w.dead(t)
		require.Equal(t, map[string]string{
			"RULE_ARN": "arn:aws:events:eu-central-1:111122223333:rule/specs", "TARGET_ARN": function, "ERROR_CODE": "INTERNAL_ERROR",
			"ERROR_MESSAGE":             "still down",
			"EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts", "RETRY_ATTEMPTS": "2",
		}, m.Attributes)
		require.Contains(t, m.Body, `"detail":{"a":1}`, "the event itself, not the target's input")
	})
	t.Run("does not retry a target that denies access", func(t *testing.T) {
		w := newWorld(t, 1)
		w.fails = []error{&iam.Error{Code: "AccessDeniedException", Message: "no", Status: 403}}
		w.rule(t, `{"source":["x"]}`, target{Id: "f", Arn: function, DeadLetterConfig: &deadLetters{queue}})
		w.Emit(t.Context(), "x", "y", nil, struct{}{})
		m := w.dead(t)
		require.Equal(t, "NO_PERMISSIONS", m.Attributes["ERROR_CODE"])
		require.NotContains(t, m.Attributes, "EXHAUSTED_RETRY_CONDITION")
	})
	t.Run("sends nothing to a queue without permission", func(t *testing.T) {
		w := newWorld(t, 1)
		require.NoError(t, w.queues.Create("closed", nil, nil))
		w.rule(t, `{"source":["x"]}`, target{Id: "q", Arn: "arn:aws:sqs:eu-central-1:111122223333:closed", DeadLetterConfig: &deadLetters{queue}})
		w.Emit(t.Context(), "x", "y", nil, struct{}{})
		require.Equal(t, "NO_PERMISSIONS", w.dead(t).Attributes["ERROR_CODE"])
	})
	t.Run("ignores a disabled rule", func(t *testing.T) {
		w := newWorld(t, 1)
		w.rule(t, `{"source":["x"]}`, target{Id: "f", Arn: function})
		admin, _ := w.identities.Admin()
		_, err := w.setRule(admin, ruleSpec{Name: "specs", EventPattern: `{"source":["x"]}`, State: "DISABLED"})
		require.NoError(t, err)
		w.Emit(t.Context(), "x", "y", nil, struct{}{})
		_, err = w.setRule(admin, ruleSpec{Name: "specs", EventPattern: `{"source":["x"]}`})
		require.NoError(t, err)
		w.Emit(t.Context(), "x", "second", nil, struct{}{})
		require.Contains(t, (<-w.arrived).payload, `"second"`)
	})
	t.Run("can be repeated by Intercept", func(t *testing.T) {
		w := newWorld(t, 1)
		w.config.Intercept = func(rule string, _ Event, deliver func()) { deliver(); deliver() }
		w.rule(t, `{"source":["x"]}`, target{Id: "f", Arn: function})
		w.Emit(t.Context(), "x", "y", nil, struct{}{})
		require.Equal(t, (<-w.arrived).payload, (<-w.arrived).payload)
	})
}

func TestDeliveryEndsAtTheMaximumAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		for range 1000 {
			w.fails = append(w.fails, errors.New("down"))
		}
		age := 3600
		w.rule(t, `{"source":["x"]}`, target{
			Id: "f", Arn: function, RetryPolicy: &delivery.Policy{MaximumEventAgeInSeconds: &age}, DeadLetterConfig: &deadLetters{queue},
		})
		w.Emit(t.Context(), "x", "y", nil, struct{}{})
		time.Sleep(time.Hour)
		m := w.dead(t)
		require.Equal(t, "MaximumEventAgeInSeconds", m.Attributes["EXHAUSTED_RETRY_CONDITION"])
		w.Close()
	})
}

func TestInput(t *testing.T) {
	event := Event{
		Version: "0", ID: "id", DetailType: "t", Source: "s", Account: account, Time: "2026-01-01T00:00:00Z", Region: region,
		Resources: []string{"r1", "r2"},
		Detail:    json.RawMessage(`{"name":"a \"b\"","n":5,"deep":{"list":[1,{"x":true}]}}`),
	}
	for name, test := range map[string]struct {
		target target
		want   string
	}{
		"the event itself":  {target{}, string(delivery.JSON(event))},
		"a constant":        {target{Input: `{"a":1}`}, `{"a":1}`},
		"a part":            {target{InputPath: "$.detail.deep"}, `{"list":[1,{"x":true}]}`},
		"an element":        {target{InputPath: "$.detail.deep.list[1].x"}, `true`},
		"the root":          {target{InputPath: "$"}, string(delivery.JSON(event))},
		"a key with a dash": {target{InputPath: "$.detail-type"}, `"t"`},
		"values in JSON": {
			target{InputTransformer: &inputTransformer{
				map[string]string{"n": "$.detail.n", "d": "$.detail.deep", "s": "$.source"}, `{"n":<n>,"d":<d>,"s":<s>}`,
			}}, `{"n":5,"d":{"list":[1,{"x":true}]},"s":"s"}`,
		},
		"values in text": {
			target{InputTransformer: &inputTransformer{map[string]string{"n": "$.detail.n", "name": "$.detail.name"}, `"<name> has <n>"`}},
			`"a \"b\" has 5"`,
		},
		"text without quotes": {
			target{InputTransformer: &inputTransformer{map[string]string{"n": "$.detail.n"}, `there are <n>`}}, `"there are 5"`,
		},
		"a value that is not there": {
			target{InputTransformer: &inputTransformer{map[string]string{"no": "$.detail.no"}, `{"a":<no>,"b":"<no>"}`}}, `{"a":null,"b":""}`,
		},
		"the rule's name": {
			target{InputTransformer: &inputTransformer{nil, `{"rule":"<aws.events.rule-name>","arn":<aws.events.rule-arn>}`}},
			`{"rule":"specs","arn":"arn:rule"}`,
		},
		"when it came": {
			target{InputTransformer: &inputTransformer{nil, `{"at":<aws.events.event.ingestion-time>}`}}, `{"at":"2026-01-01T00:00:01.000Z"}`,
		},
		"the whole event in a template": {
			target{InputTransformer: &inputTransformer{nil, `{"e":<aws.events.event.json>}`}}, `{"e":` + string(delivery.JSON(event)) + `}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.target.Id, test.target.Arn = "t", function
			require.NoError(t, test.target.check())
			got, err := test.target.input(rule{
				Name: "specs", arn: "arn:rule",
			}, event, delivery.JSON(event), time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC))
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

func TestPutTargetsRejects(t *testing.T) {
	age, attempts := 30, 186
	for name, test := range map[string]struct {
		target target
		want   string
	}{
		"no ARN": {target{Id: "t", Arn: "f"}, "not in correct format"},
		"a service that is not there": {
			target{Id: "t", Arn: "arn:aws:kinesis:eu-central-1:111122223333:stream/x"}, "does not support the target",
		},
		"a machine without a role": {target{Id: "t", Arn: machine}, "RoleArn is required"},
		"an id with a space":       {target{Id: "a b", Arn: function}, "target id"},
		"two inputs":               {target{Id: "t", Arn: function, Input: "1", InputPath: "$"}, "Only one of"},
		"an input that is no JSON": {target{Id: "t", Arn: function, Input: "{"}, "JSON syntax error"},
		"a path that is none":      {target{Id: "t", Arn: function, InputPath: "detail"}, "Invalid InputPath"},
		"a path with a wildcard":   {target{Id: "t", Arn: function, InputPath: "$.detail.*"}, "no path of keys"},
		"a placeholder without a path": {
			target{Id: "t", Arn: function, InputTransformer: &inputTransformer{nil, "<x>"}}, "invalid placeholder x",
		},
		"no template": {target{Id: "t", Arn: function, InputTransformer: &inputTransformer{nil, ""}}, "a template"},
		"an age below a minute": {
			target{Id: "t", Arn: function, RetryPolicy: &delivery.Policy{MaximumEventAgeInSeconds: &age}}, "MaximumEventAgeInSeconds 30",
		},
		"more attempts than there are": {
			target{Id: "t", Arn: function, RetryPolicy: &delivery.Policy{MaximumRetryAttempts: &attempts}}, "MaximumRetryAttempts 186",
		},
		"dead letters that are no queue": {target{Id: "t", Arn: function, DeadLetterConfig: &deadLetters{function}}, "that of no queue"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, test.target.check(), test.want) })
	}
}

// client returns a client of the administrator.
func (w *world) client(t *testing.T) *sdk.Client {
	t.Helper()
	ep := endpoint.New(w.identities, nil)
	ep.Handle(w.Wire())
	server := httptest.NewServer(ep)
	t.Cleanup(server.Close)
	_, admin := w.identities.Admin()
	return sdk.New(sdk.Options{
		Region: region, BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(admin.AccessKeyID, admin.SecretAccessKey, ""),
	})
}

func TestAPI(t *testing.T) {
	w := newWorld(t, 1)
	client := w.client(t)
	ctx := t.Context()
	created, err := client.PutRule(ctx, &sdk.PutRuleInput{
		Name: aws.String("specs"), EventPattern: aws.String(`{"source":["drover"]}`), Description: aws.String("d"),
	})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:events:eu-central-1:111122223333:rule/specs", *created.RuleArn)
	put, err := client.PutTargets(ctx, &sdk.PutTargetsInput{Rule: aws.String("specs"), Targets: []types.Target{{
		Id: aws.String("f"), Arn: aws.String(function), RetryPolicy: &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(3)},
		InputTransformer: &types.InputTransformer{
			InputTemplate: aws.String(`{"c":<c>}`), InputPathsMap: map[string]string{"c": "$.detail.cluster"},
		},
	}}})
	require.NoError(t, err)
	require.Zero(t, put.FailedEntryCount)
	rule, err := client.DescribeRule(ctx, &sdk.DescribeRuleInput{Name: aws.String("specs")})
	require.NoError(t, err)
	require.Equal(t, types.RuleStateEnabled, rule.State)
	require.Equal(t, `{"source":["drover"]}`, *rule.EventPattern)
	targets, err := client.ListTargetsByRule(ctx, &sdk.ListTargetsByRuleInput{Rule: aws.String("specs")})
	require.NoError(t, err)
	require.EqualValues(t, 3, *targets.Targets[0].RetryPolicy.MaximumRetryAttempts)
	list, err := client.ListRules(ctx, &sdk.ListRulesInput{NamePrefix: aws.String("sp")})
	require.NoError(t, err)
	require.Len(t, list.Rules, 1)

	sent, err := client.PutEvents(ctx, &sdk.PutEventsInput{Entries: []types.PutEventsRequestEntry{
		{Source: aws.String("drover"), DetailType: aws.String("x"), Detail: aws.String(`{"cluster":"demo"}`)},
		{Source: aws.String("aws.s3"), DetailType: aws.String("x"), Detail: aws.String(`{}`)},
		{Source: aws.String("drover"), DetailType: aws.String("x"), Detail: aws.String(`[]`)},
		{Source: aws.String("drover"), Detail: aws.String(`{}`)},
	}})
	require.NoError(t, err)
	require.EqualValues(t, 3, sent.FailedEntryCount)
	require.NotEmpty(t, *sent.Entries[0].EventId)
	require.Equal(t, "NotAuthorizedForSourceException", *sent.Entries[1].ErrorCode)
	require.Equal(t, "MalformedDetail", *sent.Entries[2].ErrorCode)
	require.Equal(t, "InvalidArgument", *sent.Entries[3].ErrorCode)
	require.Equal(t, `{"c":"demo"}`, (<-w.arrived).payload)

	tested, err := client.TestEventPattern(ctx, &sdk.TestEventPatternInput{
		EventPattern: aws.String(`{"source":[{"prefix":"dr"}]}`),
		Event:        aws.String(`{"id":"1","account":"1","source":"drover","time":"t","region":"r","resources":[],"detail-type":"x"}`),
	})
	require.NoError(t, err)
	require.True(t, tested.Result)

	for name, test := range map[string]struct {
		do   func() error
		code string
	}{
		"a wrong pattern": {func() error {
			_, err := client.PutRule(ctx, &sdk.PutRuleInput{Name: aws.String("x"), EventPattern: aws.String(`{"a":"b"}`)})
			return err
		}, "InvalidEventPatternException"},
		"a schedule": {func() error {
			_, err := client.PutRule(ctx, &sdk.PutRuleInput{Name: aws.String("x"), ScheduleExpression: aws.String("rate(1 minute)")})
			return err
		}, "UnsupportedByLocalAccount"},
		"a rule of nothing": {func() error {
			_, err := client.PutRule(ctx, &sdk.PutRuleInput{Name: aws.String("x")})
			return err
		}, "ValidationException"},
		"another bus": {func() error {
			_, err := client.DescribeRule(ctx, &sdk.DescribeRuleInput{Name: aws.String("specs"), EventBusName: aws.String("mine")})
			return err
		}, "ResourceNotFoundException"},
		"a rule that is nowhere": {func() error {
			_, err := client.DescribeRule(ctx, &sdk.DescribeRuleInput{Name: aws.String("none")})
			return err
		}, "ResourceNotFoundException"},
		"a rule that has targets": {func() error {
			_, err := client.DeleteRule(ctx, &sdk.DeleteRuleInput{Name: aws.String("specs")})
			return err
		}, "ValidationException"},
		"a test event without an id": {func() error {
			_, err := client.TestEventPattern(ctx, &sdk.TestEventPatternInput{EventPattern: aws.String(`{"a":["b"]}`), Event: aws.String(`{}`)})
			return err
		}, "ValidationException"},
		"an archive": {func() error { _, err := client.ListArchives(ctx, &sdk.ListArchivesInput{}); return err }, "UnsupportedByLocalAccount"},
		"a sixth target": {func() error {
			var six []types.Target
			for _, id := range strings.Split("abcdeg", "") {
				six = append(six, types.Target{Id: aws.String(id), Arn: aws.String(function)})
			}
			_, err := client.PutTargets(ctx, &sdk.PutTargetsInput{Rule: aws.String("specs"), Targets: six})
			return err
		}, "LimitExceededException"},
	} {
		t.Run(name, func(t *testing.T) {
			var api smithy.APIError
			require.ErrorAs(t, test.do(), &api)
			require.Equal(t, test.code, api.ErrorCode(), api.ErrorMessage())
		})
	}
	_, err = client.RemoveTargets(ctx, &sdk.RemoveTargetsInput{Rule: aws.String("specs"), Ids: []string{"f"}})
	require.NoError(t, err)
	_, err = client.DeleteRule(ctx, &sdk.DeleteRuleInput{Name: aws.String("specs")})
	require.NoError(t, err)
}

func TestRuleResource(t *testing.T) {
	w := newWorld(t, 1)
	provider := w.Resources()["AWS::Events::Rule"]
	admin, _ := w.identities.Admin()
	targetOf := func(id string) map[string]any {
		return map[string]any{
			"Id": id, "Arn": function, "DeadLetterConfig": map[string]any{
				"Arn": queue,
			}, "RetryPolicy": map[string]any{"MaximumEventAgeInSeconds": 86400.0, "MaximumRetryAttempts": 185.0},
		}
	}
	r := resource.Request{StackName: "drover", LogicalID: "Rule", Caller: admin, Properties: map[string]any{
		"Name": "drover-spec-changed", "State": "ENABLED", "EventPattern": map[string]any{"source": []any{"aws.s3"}},
		"Targets": []any{targetOf("a"), targetOf("b")},
	}}
	created, err := provider.Create(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "drover-spec-changed", created.PhysicalID)
	require.Equal(t, "arn:aws:events:eu-central-1:111122223333:rule/drover-spec-changed", created.Attributes["Arn"])
	_, err = provider.Create(t.Context(), r)
	require.ErrorContains(t, err, "already exists")
	r.PhysicalID = created.PhysicalID
	r.Properties["Targets"] = []any{targetOf("b")}
	_, err = provider.Update(t.Context(), r)
	require.NoError(t, err)
	have, err := w.Service.rule("", created.PhysicalID)
	require.NoError(t, err)
	require.Len(t, have.targets, 1)
	r.Properties["Targets"] = []any{map[string]any{"Id": "c", "Arn": function, "EcsParameters": map[string]any{}}}
	_, err = provider.Update(t.Context(), r)
	require.ErrorContains(t, err, "EcsParameters")
	require.NoError(t, provider.Delete(t.Context(), r))
	require.NoError(t, provider.Delete(t.Context(), r), "deleting twice succeeds")
}
