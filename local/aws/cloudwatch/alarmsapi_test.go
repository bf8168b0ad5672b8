package cloudwatch_test

import (
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	aws_cw "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/endpoint"
)

// An alarm with disabled actions changes its state without a notification.
func TestAlarmActions(t *testing.T) {
	s, sink, identities := newService()
	role, err := identities.CreateRole(iam.Role{
		Name: "upgrade",
		TrustDocument: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},` +
			`"Action":"sts:AssumeRole"}]}`,
	})
	require.NoError(t, err)
	require.NoError(t, identities.PutRolePolicy("upgrade", "p", `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["cloudwatch:DisableAlarmActions","cloudwatch:EnableAlarmActions"],`+
		`"Resource":"arn:aws:cloudwatch:eu-west-1:111122223333:alarm:errors"},
		{"Effect":"Allow","Action":"cloudwatch:DescribeAlarms","Resource":"arn:aws:cloudwatch:eu-west-1:111122223333:alarm:*"}]}`))
	_, limited, err := identities.AssumeRoleAs(identities.RoleARN(role), "session", "lambda.amazonaws.com")
	require.NoError(t, err)
	e := endpoint.New(identities, nil)
	e.Handle(s.Wire())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	as := func(c iam.Credentials) *aws_cw.Client {
		return aws_cw.New(aws_cw.Options{Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)})
	}
	_, root := identities.Admin()
	admin, upgrade, ctx := as(root), as(limited), t.Context()

	put := func(name string) error {
		_, err := admin.PutMetricAlarm(ctx, &aws_cw.PutMetricAlarmInput{
			AlarmName: aws.String(name), Namespace: aws.String("shop"), MetricName: aws.String("Errors"),
			Statistic: types.StatisticSum, Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1),
			Threshold: aws.Float64(1), ComparisonOperator: types.ComparisonOperatorGreaterThanOrEqualToThreshold,
			TreatMissingData: aws.String("ignore"),
			AlarmActions:     []string{"arn:aws:sns:eu-west-1:111122223333:page"},
		})
		return err
	}
	require.NoError(t, put("errors"))
	require.NoError(t, put("other"))
	state := func(value types.StateValue) {
		_, err := admin.SetAlarmState(ctx, &aws_cw.SetAlarmStateInput{
			AlarmName: aws.String("errors"), StateValue: value, StateReason: aws.String("test"),
		})
		require.NoError(t, err)
	}
	describe := func() types.MetricAlarm {
		out, err := upgrade.DescribeAlarms(ctx, &aws_cw.DescribeAlarmsInput{AlarmNames: []string{"errors", "none"}})
		require.NoError(t, err)
		require.Len(t, out.MetricAlarms, 1)
		return out.MetricAlarms[0]
	}
	require.True(t, *describe().ActionsEnabled)
	_, err = upgrade.DisableAlarmActions(ctx, &aws_cw.DisableAlarmActionsInput{AlarmNames: []string{"errors"}})
	require.NoError(t, err)
	require.False(t, *describe().ActionsEnabled)
	state(types.StateValueAlarm)
	require.Equal(t, types.StateValueAlarm, describe().StateValue)
	require.Empty(t, sink.messages)
	_, err = upgrade.EnableAlarmActions(ctx, &aws_cw.EnableAlarmActionsInput{AlarmNames: []string{"errors"}})
	require.NoError(t, err)
	require.Empty(t, sink.messages, "the change is not reported later")
	state(types.StateValueOk)
	state(types.StateValueAlarm)
	require.Len(t, sink.messages, 1)
	require.NoError(t, put("errors"), "one that is there is changed")
	require.Equal(t, types.StateValueAlarm, describe().StateValue)

	_, err = upgrade.DisableAlarmActions(ctx, &aws_cw.DisableAlarmActionsInput{AlarmNames: []string{"errors", "other"}})
	require.Equal(t, "AccessDenied", code(err), "%v", err)
	silence := func() error {
		_, err := upgrade.DisableAlarmActions(ctx, &aws_cw.DisableAlarmActionsInput{AlarmNames: []string{"other"}})
		return err
	}
	require.NoError(t, identities.PutRolePolicy("upgrade", "tagged", `{"Version":"2012-10-17","Statement":{"Effect":"Allow",`+
		`"Action":"cloudwatch:DisableAlarmActions",
		"Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/drover:silence":"upgrade"}}}}`))
	require.Equal(t, "AccessDenied", code(silence()), "it has no such tag")
	other := aws.String("arn:aws:cloudwatch:eu-west-1:111122223333:alarm:other")
	tag := func(c *aws_cw.Client, value string) error {
		_, err := c.TagResource(ctx, &aws_cw.TagResourceInput{
			ResourceARN: other, Tags: []types.Tag{{Key: aws.String("drover:silence"), Value: aws.String(value)}},
		})
		return err
	}
	require.NoError(t, tag(admin, "never"))
	require.Equal(t, "AccessDenied", code(silence()))
	require.Equal(t, "AccessDenied", code(tag(upgrade, "upgrade")), "a role cannot tag alarms for itself")
	require.NoError(t, tag(admin, "upgrade"))
	require.NoError(t, silence())
	listed, err := admin.ListTagsForResource(ctx, &aws_cw.ListTagsForResourceInput{ResourceARN: other})
	require.NoError(t, err)
	require.Equal(t, []types.Tag{{Key: aws.String("drover:silence"), Value: aws.String("upgrade")}}, listed.Tags)
	_, err = admin.UntagResource(ctx, &aws_cw.UntagResourceInput{ResourceARN: other, TagKeys: []string{"drover:silence"}})
	require.NoError(t, err)
	require.Equal(t, "AccessDenied", code(silence()))
	_, err = admin.ListTagsForResource(ctx, &aws_cw.ListTagsForResourceInput{ResourceARN: aws.String(*other + "-one")})
	require.Equal(t, "ResourceNotFoundException", code(err))
	_, err = admin.DisableAlarmActions(ctx, &aws_cw.DisableAlarmActionsInput{AlarmNames: []string{"none"}})
	require.NoError(t, err)
	_, err = admin.DisableAlarmActions(ctx, &aws_cw.DisableAlarmActionsInput{AlarmNames: []string{}})
	require.Equal(t, "ValidationError", code(err))
	_, err = admin.DeleteAlarms(ctx, &aws_cw.DeleteAlarmsInput{AlarmNames: []string{"errors", "none"}})
	require.Equal(t, "ResourceNotFound", code(err))
	require.Len(t, s.AlarmStates(), 2, "none was deleted")
	_, err = admin.DeleteAlarms(ctx, &aws_cw.DeleteAlarmsInput{AlarmNames: []string{"errors", "other"}})
	require.NoError(t, err)
	require.Empty(t, s.AlarmStates())
}
