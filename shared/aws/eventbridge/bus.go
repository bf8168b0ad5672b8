// Package eventbridge puts drover's events on its EventBridge bus. Bus implements notification.Bus.
package eventbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseventbridge "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/notification"
)

// Bus is an EventBridge bus.
type Bus struct {
	putEvents call.Operation[awseventbridge.PutEventsInput, awseventbridge.PutEventsOutput, awseventbridge.Options]
	name      string
}

var _ notification.Bus = &Bus{}

// NewBus returns the bus with that name.
func NewBus(cfg aws.Config, name string) *Bus {
	return &Bus{awseventbridge.NewFromConfig(cfg).PutEvents, name}
}

// maxEntries is the limit of one call.
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
const maxEntries = 10

// Put puts notices on the bus as events. If EventBridge refuses one of them, the error has the code of the refusal.
func (b *Bus) Put(ctx context.Context, notices []notification.Notice) error {
	for chunk := range slices.Chunk(notices, maxEntries) {
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
		out, err := b.putEvents(ctx, &awseventbridge.PutEventsInput{Entries: entries})
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
