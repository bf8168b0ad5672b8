package account

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/local/aws/cloudwatch"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/s3"
	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/local/aws/sqs"
	"github.com/drover-run/drover/local/engine/clock"
)

// emitter sends events to the default bus. Services that send events are created before EventBridge, which needs others
// of them as targets.
type emitter struct {
	bus atomic.Pointer[eventbridge.Service]
}

// Emit emits an event.
func (e *emitter) Emit(ctx context.Context, source, detailType string, resources []string, detail any) {
	if bus := e.bus.Load(); bus != nil {
		bus.Emit(ctx, source, detailType, resources, detail)
	}
}

func (e *emitter) s3(ctx context.Context, detailType string, detail any, resources []string) {
	e.Emit(ctx, "aws.s3", detailType, resources, detail)
}

// packages reads the packages of functions.
type packages struct{ s3 *s3.Service }

// ReadObject reads an object if the caller may.
func (p packages) ReadObject(ctx context.Context, caller iam.Caller, bucket, key string) ([]byte, error) {
	return p.s3.ReadObject(ctx, caller, bucket, key, "")
}

// metrics records values of state machines and functions.
type metrics struct{ cloudwatch *cloudwatch.Service }

func (m metrics) put(namespace, name string, dimensions map[string]string, value float64, unit string) {
	m.cloudwatch.Put(context.Background(), namespace, name, dimensions, unit, value)
}

// depthsEvery is the interval of the metrics of queues, as in SQS.
const depthsEvery = time.Minute

// watch records the number of messages in the queues until the context ends.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
func (m metrics) watch(ctx context.Context, c *clock.Clock, queues *sqs.Service) {
	for c.Timer(ctx, depthsEvery) == nil {
		m.depths(queues)
	}
}

func (m metrics) depths(queues *sqs.Service) {
	for name, depth := range queues.Depths() {
		m.put("AWS/SQS", "ApproximateNumberOfMessagesVisible", map[string]string{"QueueName": name}, float64(depth), "Count")
	}
}

// networkQuotas returns the quotas of networks.
func networkQuotas(quotas *servicequotas.Service) ec2.Quotas {
	return ec2.Quotas{
		VPCs: quotas.Of(servicequotas.VPCs), InternetGateways: quotas.Of(servicequotas.InternetGateways),
		NATGateways: quotas.Of(servicequotas.NATGateways), Addresses: quotas.Of(servicequotas.Addresses),
	}
}

// vCPUs returns EC2's quota from Service Quotas.
func vCPUs(quotas *servicequotas.Service) func(spot bool) int {
	return func(spot bool) int {
		if spot {
			return quotas.Limit(servicequotas.StandardSpotVCPUs)
		}
		return quotas.Limit(servicequotas.StandardVCPUs)
	}
}
