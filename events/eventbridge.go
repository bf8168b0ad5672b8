// Package events holds the payloads that move between AWS, drover's functions and its state machines: one file an
// event, a JSON sample of each in samples/. Unknown fields are ignored and missing optional ones tolerated, as AWS adds
// fields without notice.
package events

import "time"

// Event is an EventBridge event with a typed detail.
// https://docs.aws.amazon.com/eventbridge/latest/ref/overview-event-structure.html
type Event[D any] struct {
	ID         string    `json:"id"`
	DetailType string    `json:"detail-type"`
	Source     string    `json:"source"`
	Account    string    `json:"account"`
	Time       time.Time `json:"time"`
	Region     string    `json:"region"`
	Resources  []string  `json:"resources"`
	Detail     D         `json:"detail"`
}
