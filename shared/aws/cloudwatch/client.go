package cloudwatch

import (
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// operation is one operation of CloudWatch's client.
type operation[In, Out any] = call.Operation[In, Out, cloudwatch.Options]

// client has the operations of CloudWatch that this package needs: see call.Operation.
type client struct {
	DescribeAlarms      operation[cloudwatch.DescribeAlarmsInput, cloudwatch.DescribeAlarmsOutput]
	DisableAlarmActions operation[cloudwatch.DisableAlarmActionsInput, cloudwatch.DisableAlarmActionsOutput]
	EnableAlarmActions  operation[cloudwatch.EnableAlarmActionsInput, cloudwatch.EnableAlarmActionsOutput]
	ListTagsForResource operation[cloudwatch.ListTagsForResourceInput, cloudwatch.ListTagsForResourceOutput]
}

func newClient(c *cloudwatch.Client) client {
	return client{
		DescribeAlarms: c.DescribeAlarms, DisableAlarmActions: c.DisableAlarmActions, EnableAlarmActions: c.EnableAlarmActions,
		ListTagsForResource: c.ListTagsForResource,
	}
}
