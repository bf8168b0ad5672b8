package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/notice"
)

// Bus is an EventBridge bus.
type Bus struct {
	client *eventbridge.Client
	name   string
}

// NewBus returns the bus of that name.
func NewBus(client *eventbridge.Client, name string) *Bus { return &Bus{client, name} }

// mostEntries of a call.
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
const mostEntries = 10

// Put puts notices on the bus as events. When one of them is refused, that is the error, by EventBridge's own code for it.
func (b *Bus) Put(ctx context.Context, notices []notice.Notice) error {
	for chunk := range slices.Chunk(notices, mostEntries) {
		var entries []types.PutEventsRequestEntry
		for _, n := range chunk {
			detail, err := json.Marshal(n.Detail)
			if err != nil {
				return fmt.Errorf("encoding the detail of %q: %w", n.DetailType, err)
			}
			entries = append(entries, types.PutEventsRequestEntry{
				EventBusName: &b.name, Source: aws.String(events.Source), DetailType: aws.String(n.DetailType), Detail: aws.String(string(detail)),
			})
		}
		out, err := b.client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: entries})
		if err != nil {
			return fmt.Errorf("putting events on the bus %s: %w", b.name, err)
		}
		for _, entry := range out.Entries {
			if code := aws.ToString(entry.ErrorCode); code != "" {
				refused := &smithy.GenericAPIError{Code: code, Message: aws.ToString(entry.ErrorMessage)}
				return fmt.Errorf("putting events on the bus %s: %w", b.name, refused)
			}
		}
	}
	return nil
}
