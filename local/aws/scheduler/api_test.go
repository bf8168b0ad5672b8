package scheduler

// The API, called by the SDK's client through the endpoint.

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/endpoint"
)

// servedWorld is a world behind an endpoint.
type servedWorld struct {
	*world
	url    string
	client *sdk.Client
}

func serve(t *testing.T) *servedWorld {
	t.Helper()
	w := &servedWorld{world: newWorld(t)}
	ep := endpoint.New(w.identities, nil)
	ep.Handle(w.Wire())
	server := httptest.NewServer(ep)
	t.Cleanup(server.Close)
	w.url = server.URL
	_, admin := w.identities.Admin()
	w.client = w.clientOf(admin)
	return w
}

func (w *servedWorld) clientOf(c iam.Credentials) *sdk.Client {
	return sdk.New(sdk.Options{
		Region: region, BaseEndpoint: &w.url, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken),
	})
}

// as returns the client of a new role with one policy.
func (w *servedWorld) as(t *testing.T, name, policy string) *sdk.Client {
	t.Helper()
	role := w.newRole(t, name,
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`, policy)
	_, c, err := w.identities.AssumeRoleAs(role, "test", "ec2.amazonaws.com")
	require.NoError(t, err)
	return w.clientOf(c)
}

// nightly returns a schedule that is not due while a test runs.
func (w *servedWorld) nightly(change func(*sdk.CreateScheduleInput)) *sdk.CreateScheduleInput {
	in := &sdk.CreateScheduleInput{
		Name: aws.String("nightly"), ScheduleExpression: aws.String("cron(0 3 1 1 ? 2090)"),
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		Target:             &types.Target{Arn: aws.String(function), RoleArn: &w.role, Input: aws.String(`{}`)},
	}
	if change != nil {
		change(in)
	}
	return in
}

func requireError(t *testing.T, err error, code, message string) {
	t.Helper()
	var e smithy.APIError
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.ErrorCode(), e.ErrorMessage())
	require.Contains(t, e.ErrorMessage(), message)
}

func TestScheduleOperations(t *testing.T) {
	w, ctx := serve(t), t.Context()
	start, end := time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2091, 1, 1, 0, 0, 0, 0, time.UTC)
	created, err := w.client.CreateSchedule(ctx, w.nightly(func(in *sdk.CreateScheduleInput) {
		in.Description, in.StartDate, in.EndDate, in.ScheduleExpressionTimezone = aws.String("at night"), &start, &end,
			aws.String("Europe/Berlin")
		in.FlexibleTimeWindow = &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeFlexible, MaximumWindowInMinutes: aws.Int32(7)}
		in.Target.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(0), MaximumEventAgeInSeconds: aws.Int32(60)}
		in.Target.DeadLetterConfig = &types.DeadLetterConfig{Arn: aws.String(letters)}
		in.ActionAfterCompletion, in.ClientToken = types.ActionAfterCompletionDelete, aws.String("token")
	}))
	require.NoError(t, err)
	require.Equal(t, "arn:aws:scheduler:eu-central-1:111122223333:schedule/default/nightly", *created.ScheduleArn)

	got, err := w.client.GetSchedule(ctx, &sdk.GetScheduleInput{Name: aws.String("nightly")})
	require.NoError(t, err)
	require.Equal(t, *created.ScheduleArn, *got.Arn)
	require.Equal(t, "default", *got.GroupName)
	require.Equal(t, "at night", *got.Description)
	require.Equal(t, "Europe/Berlin", *got.ScheduleExpressionTimezone)
	require.Equal(t, types.ScheduleStateEnabled, got.State)
	require.Equal(t, types.ActionAfterCompletionDelete, got.ActionAfterCompletion)
	require.Equal(t, start, *got.StartDate)
	require.Equal(t, end, *got.EndDate)
	require.EqualValues(t, 7, *got.FlexibleTimeWindow.MaximumWindowInMinutes)
	require.EqualValues(t, 0, *got.Target.RetryPolicy.MaximumRetryAttempts)
	require.Equal(t, letters, *got.Target.DeadLetterConfig.Arn)
	require.WithinDuration(t, time.Now(), *got.CreationDate, time.Minute)

	again, err := w.client.CreateSchedule(ctx, w.nightly(func(in *sdk.CreateScheduleInput) { in.ClientToken = aws.String("token") }))
	require.NoError(t, err, "the same token makes it once")
	require.Equal(t, created.ScheduleArn, again.ScheduleArn)
	_, err = w.client.CreateSchedule(ctx, w.nightly(nil))
	requireError(t, err, "ConflictException", "Schedule nightly already exists.")

	_, err = w.client.UpdateSchedule(ctx, &sdk.UpdateScheduleInput{
		Name: aws.String("nightly"), ScheduleExpression: aws.String("rate(2 hours)"), State: types.ScheduleStateDisabled,
		FlexibleTimeWindow: &types.FlexibleTimeWindow{
			Mode: types.FlexibleTimeWindowModeOff,
		}, Target: &types.Target{Arn: aws.String(queue), RoleArn: &w.role},
	})
	require.NoError(t, err)
	updated, err := w.client.GetSchedule(ctx, &sdk.GetScheduleInput{Name: aws.String("nightly"), GroupName: aws.String("default")})
	require.NoError(t, err)
	require.Equal(t, types.ScheduleStateDisabled, updated.State)
	require.Nil(t, updated.Description, "an update replaces all of it")
	require.Nil(t, updated.StartDate)
	require.Nil(t, updated.Target.RetryPolicy)
	require.Equal(t, *got.CreationDate, *updated.CreationDate)

	_, err = w.client.DeleteSchedule(ctx, &sdk.DeleteScheduleInput{Name: aws.String("nightly")})
	require.NoError(t, err)
	_, err = w.client.DeleteSchedule(ctx, &sdk.DeleteScheduleInput{Name: aws.String("nightly")})
	requireError(t, err, "ResourceNotFoundException", "Schedule nightly does not exist.")
	_, err = w.client.GetSchedule(ctx, &sdk.GetScheduleInput{Name: aws.String("nightly")})
	requireError(t, err, "ResourceNotFoundException", "Schedule nightly does not exist.")
	_, err = w.client.UpdateSchedule(ctx, &sdk.UpdateScheduleInput{
		Name: aws.String("nightly"), ScheduleExpression: aws.String("rate(2 hours)"),
		FlexibleTimeWindow: &types.FlexibleTimeWindow{
			Mode: types.FlexibleTimeWindowModeOff,
		}, Target: &types.Target{Arn: aws.String(queue), RoleArn: &w.role},
	})
	requireError(t, err, "ResourceNotFoundException", "Schedule nightly does not exist.")
}

func TestCreateScheduleRejects(t *testing.T) {
	w := serve(t)
	window := func(mode types.FlexibleTimeWindowMode, minutes *int32) func(*sdk.CreateScheduleInput) {
		return func(in *sdk.CreateScheduleInput) {
			in.FlexibleTimeWindow = &types.FlexibleTimeWindow{Mode: mode, MaximumWindowInMinutes: minutes}
		}
	}
	stranger := w.newRole(t, "stranger",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`,
		grants)
	for name, test := range map[string]struct {
		change        func(*sdk.CreateScheduleInput)
		code, message string
	}{
		"an expression that is none": {func(in *sdk.CreateScheduleInput) {
			in.ScheduleExpression = aws.String("cron(0 3 * * * *)")
		}, "ValidationException", "Invalid Schedule Expression cron(0 3 * * * *). exactly one"},
		"a time in the past": {func(in *sdk.CreateScheduleInput) {
			in.ScheduleExpression = aws.String("at(2020-01-01T00:00:00)")
		}, "ValidationException", "It is in the past"},
		"an unknown time zone": {func(in *sdk.CreateScheduleInput) {
			in.ScheduleExpressionTimezone = aws.String("Mars")
		}, "ValidationException", "unknown time zone Mars"},
		"a name with a space": {func(in *sdk.CreateScheduleInput) { in.Name = aws.String("a b") }, "ValidationException", "a b"},
		"an unknown state":    {func(in *sdk.CreateScheduleInput) { in.State = "PAUSED" }, "ValidationException", `"PAUSED"`},
		"an unknown action": {func(in *sdk.CreateScheduleInput) {
			in.ActionAfterCompletion = "ARCHIVE"
		}, "ValidationException", `"ARCHIVE"`},
		"an unknown window":                    {window("WIDE", nil), "ValidationException", `"WIDE"`},
		"a flexible window without minutes":    {window("FLEXIBLE", nil), "ValidationException", "between 1 and 1440"},
		"a flexible window of more than a day": {window("FLEXIBLE", aws.Int32(1441)), "ValidationException", "between 1 and 1440"},
		"minutes of no window":                 {window("OFF", aws.Int32(5)), "ValidationException", "must not be set"},
		"an end before the start": {func(in *sdk.CreateScheduleInput) {
			in.StartDate, in.EndDate = aws.Time(time.Unix(4e9, 0)), aws.Time(time.Unix(3e9, 0))
		}, "ValidationException", "before the EndDate"},
		"a group that is not there": {func(in *sdk.CreateScheduleInput) {
			in.GroupName = aws.String("none")
		}, "ResourceNotFoundException", "Schedule group none does not exist."},
		"a target that is no ARN": {func(in *sdk.CreateScheduleInput) { in.Target.Arn = aws.String("sweep") }, "ValidationException", "sweep"},
		"a universal target": {func(in *sdk.CreateScheduleInput) {
			in.Target.Arn = aws.String("arn:aws:scheduler:::aws-sdk:eks:listClusters")
		}, "UnsupportedByLocalAccount", "aws-sdk:eks:listClusters"},
		"a target of another service": {func(in *sdk.CreateScheduleInput) {
			in.Target.Arn = aws.String("arn:aws:ecs:eu-central-1:111122223333:cluster/c")
		}, "UnsupportedByLocalAccount", "cluster/c"},
		"parameters of another target": {func(in *sdk.CreateScheduleInput) {
			in.Target.KinesisParameters = &types.KinesisParameters{PartitionKey: aws.String("k")}
		}, "UnsupportedByLocalAccount", "Target.KinesisParameters"},
		"a customer's key": {func(in *sdk.CreateScheduleInput) {
			in.KmsKeyArn = aws.String("arn:aws:kms:eu-central-1:111122223333:key/k")
		}, "UnsupportedByLocalAccount", "KmsKeyArn"},
		"input of a function that is no JSON": {func(in *sdk.CreateScheduleInput) {
			in.Target.Input = aws.String("{")
		}, "ValidationException", "well-formed JSON"},
		"too many retries": {func(in *sdk.CreateScheduleInput) {
			in.Target.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(186)}
		}, "ValidationException", "between 0 and 185"},
		"too short a life of events": {func(in *sdk.CreateScheduleInput) {
			in.Target.RetryPolicy = &types.RetryPolicy{MaximumEventAgeInSeconds: aws.Int32(59)}
		}, "ValidationException", "between 60 and 86400"},
		"dead letters that go to no queue": {func(in *sdk.CreateScheduleInput) {
			in.Target.DeadLetterConfig = &types.DeadLetterConfig{Arn: aws.String(function)}
		}, "ValidationException", "standard queue"},
		"dead letters in order": {func(in *sdk.CreateScheduleInput) {
			in.Target.DeadLetterConfig = &types.DeadLetterConfig{Arn: aws.String(letters + ".fifo")}
		}, "ValidationException", "standard queue"},
		"a role that trusts another service": {func(in *sdk.CreateScheduleInput) {
			in.Target.RoleArn = &stranger
		}, "ValidationException", "must allow AWS EventBridge Scheduler to assume the role"},
		"a role that is not there": {func(in *sdk.CreateScheduleInput) {
			in.Target.RoleArn = aws.String(w.role + "2")
		}, "ValidationException", "must allow AWS EventBridge Scheduler to assume the role"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.client.CreateSchedule(t.Context(), w.nightly(test.change))
			requireError(t, err, test.code, test.message)
			all, err := w.client.ListSchedules(t.Context(), &sdk.ListSchedulesInput{})
			require.NoError(t, err)
			require.Empty(t, all.Schedules)
		})
	}
}

func TestGroupOperations(t *testing.T) {
	w, ctx := serve(t), t.Context()
	created, err := w.client.CreateScheduleGroup(ctx, &sdk.CreateScheduleGroupInput{
		Name: aws.String("drover"), Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("1")}},
	})
	require.NoError(t, err)
	_, err = w.client.CreateScheduleGroup(ctx, &sdk.CreateScheduleGroupInput{Name: aws.String("drover")})
	requireError(t, err, "ConflictException", "Schedule group drover already exists.")
	_, err = w.client.CreateScheduleGroup(ctx, &sdk.CreateScheduleGroupInput{Name: aws.String("dro/ver")})
	requireError(t, err, "ValidationException", "dro/ver")
	group, err := w.client.GetScheduleGroup(ctx, &sdk.GetScheduleGroupInput{Name: aws.String("drover")})
	require.NoError(t, err)
	require.Equal(t, *created.ScheduleGroupArn, *group.Arn)
	require.Equal(t, types.ScheduleGroupStateActive, group.State)

	_, err = w.client.TagResource(ctx, &sdk.TagResourceInput{
		ResourceArn: group.Arn, Tags: []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}, {Key: aws.String("c"), Value: aws.String("3")}},
	})
	require.NoError(t, err)
	_, err = w.client.UntagResource(ctx, &sdk.UntagResourceInput{ResourceArn: group.Arn, TagKeys: []string{"a", "c"}})
	require.NoError(t, err)
	tags, err := w.client.ListTagsForResource(ctx, &sdk.ListTagsForResourceInput{ResourceArn: group.Arn})
	require.NoError(t, err)
	require.Equal(t, []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}}, tags.Tags)
	_, err = w.client.ListTagsForResource(ctx, &sdk.ListTagsForResourceInput{ResourceArn: aws.String(*group.Arn + "2")})
	requireError(t, err, "ResourceNotFoundException", "drover2")

	for _, name := range []string{"c", "a", "b"} {
		_, err = w.client.CreateSchedule(ctx, w.nightly(func(in *sdk.CreateScheduleInput) { in.Name, in.GroupName = &name, group.Name }))
		require.NoError(t, err)
	}
	_, err = w.client.CreateSchedule(ctx, w.nightly(func(in *sdk.CreateScheduleInput) {
		in.Name, in.State = aws.String("a"), types.ScheduleStateDisabled
	}))
	require.NoError(t, err, "each group has names of its own")
	var names []string
	pages := sdk.NewListSchedulesPaginator(w.client, &sdk.ListSchedulesInput{MaxResults: aws.Int32(3)})
	for n := 0; pages.HasMorePages(); n++ {
		page, err := pages.NextPage(ctx)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Schedules), 3)
		for _, s := range page.Schedules {
			names = append(names, *s.GroupName+"/"+*s.Name+" "+string(s.State)+" "+*s.Target.Arn)
		}
	}
	require.Equal(t, []string{
		"default/a DISABLED " + function, "drover/a ENABLED " + function, "drover/b ENABLED " + function, "drover/c ENABLED " + function,
	}, names)
	for filter, in := range map[string]*sdk.ListSchedulesInput{
		"by group": {GroupName: aws.String("default")}, "by state": {State: types.ScheduleStateDisabled},
		"by prefix": {NamePrefix: aws.String("b")},
	} {
		found, err := w.client.ListSchedules(ctx, in)
		require.NoError(t, err)
		require.Len(t, found.Schedules, 1, filter)
	}
	_, err = w.client.ListSchedules(ctx, &sdk.ListSchedulesInput{MaxResults: aws.Int32(101)})
	requireError(t, err, "ValidationException", "between 1 and 100")
	groups, err := w.client.ListScheduleGroups(ctx, &sdk.ListScheduleGroupsInput{})
	require.NoError(t, err)
	require.Len(t, groups.ScheduleGroups, 2)

	_, err = w.client.DeleteScheduleGroup(ctx, &sdk.DeleteScheduleGroupInput{Name: group.Name})
	require.NoError(t, err)
	remaining, err := w.client.ListSchedules(ctx, &sdk.ListSchedulesInput{})
	require.NoError(t, err)
	require.Len(t, remaining.Schedules, 1, "a group takes its schedules with it")
	_, err = w.client.DeleteScheduleGroup(ctx, &sdk.DeleteScheduleGroupInput{Name: group.Name})
	requireError(t, err, "ResourceNotFoundException", "Schedule group drover does not exist.")
	_, err = w.client.GetScheduleGroup(ctx, &sdk.GetScheduleGroupInput{Name: group.Name})
	requireError(t, err, "ResourceNotFoundException", "Schedule group drover does not exist.")
	_, err = w.client.DeleteScheduleGroup(ctx, &sdk.DeleteScheduleGroupInput{Name: aws.String("default")})
	requireError(t, err, "ValidationException", "default")
}

func TestPermissions(t *testing.T) {
	w, ctx := serve(t), t.Context()
	denied := w.as(t, "denied", `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}`)
	_, err := w.client.CreateSchedule(ctx, w.nightly(nil))
	require.NoError(t, err)
	arn, name := aws.String("arn:aws:scheduler:eu-central-1:111122223333:schedule-group/default"), aws.String("nightly")
	for action, call := range map[string]func() error{
		"CreateSchedule": func() error { _, err := denied.CreateSchedule(ctx, w.nightly(nil)); return err },
		"GetSchedule":    func() error { _, err := denied.GetSchedule(ctx, &sdk.GetScheduleInput{Name: name}); return err },
		"DeleteSchedule": func() error { _, err := denied.DeleteSchedule(ctx, &sdk.DeleteScheduleInput{Name: name}); return err },
		"ListSchedules":  func() error { _, err := denied.ListSchedules(ctx, &sdk.ListSchedulesInput{}); return err },
		"CreateScheduleGroup": func() error {
			_, err := denied.CreateScheduleGroup(ctx, &sdk.CreateScheduleGroupInput{Name: name})
			return err
		},
		"GetScheduleGroup": func() error {
			_, err := denied.GetScheduleGroup(ctx, &sdk.GetScheduleGroupInput{Name: name})
			return err
		},
		"DeleteScheduleGroup": func() error {
			_, err := denied.DeleteScheduleGroup(ctx, &sdk.DeleteScheduleGroupInput{Name: name})
			return err
		},
		"ListScheduleGroups": func() error { _, err := denied.ListScheduleGroups(ctx, &sdk.ListScheduleGroupsInput{}); return err },
		"TagResource": func() error {
			_, err := denied.TagResource(ctx, &sdk.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{}})
			return err
		},
		"UntagResource": func() error {
			_, err := denied.UntagResource(ctx, &sdk.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"a"}})
			return err
		},
		"ListTagsForResource": func() error {
			_, err := denied.ListTagsForResource(ctx, &sdk.ListTagsForResourceInput{ResourceArn: arn})
			return err
		},
		"UpdateSchedule": func() error {
			in := w.nightly(nil)
			_, err := denied.UpdateSchedule(ctx, &sdk.UpdateScheduleInput{
				Name: name, ScheduleExpression: in.ScheduleExpression, FlexibleTimeWindow: in.FlexibleTimeWindow, Target: in.Target,
			})
			return err
		},
	} {
		requireError(t, call(), "AccessDeniedException", "scheduler:"+action)
	}

	passless := w.as(t, "passless", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"scheduler:*","Resource":"*"}]}`)
	_, err = passless.CreateSchedule(ctx, w.nightly(func(in *sdk.CreateScheduleInput) { in.Name = aws.String("other") }))
	requireError(t, err, "AccessDeniedException", "iam:PassRole")

	passing := w.as(t, "passing", `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["scheduler:CreateSchedule","scheduler:CreateScheduleGroup","scheduler:DeleteScheduleGroup"],"Resource":"*"},
		{"Effect":"Allow","Action":"iam:PassRole","Resource":"`+w.role+
		`","Condition":{"StringEquals":{"iam:PassedToService":"scheduler.amazonaws.com"}}}]}`)
	_, err = passing.CreateSchedule(ctx, w.nightly(func(in *sdk.CreateScheduleInput) { in.Name = aws.String("other") }))
	require.NoError(t, err)
	_, err = passing.CreateScheduleGroup(ctx, &sdk.CreateScheduleGroupInput{Name: aws.String("g")})
	require.NoError(t, err)
	_, err = passing.CreateScheduleGroup(ctx, &sdk.CreateScheduleGroupInput{
		Name: aws.String("h"), Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("1")}},
	})
	requireError(t, err, "AccessDeniedException", "scheduler:TagResource")
	_, err = passing.DeleteScheduleGroup(ctx, &sdk.DeleteScheduleGroupInput{Name: aws.String("g")})
	requireError(t, err, "AccessDeniedException",
		"scheduler:DeleteSchedule on resource: arn:aws:scheduler:eu-central-1:111122223333:schedule/g/*")
}
