// Package events defines the payloads that AWS, drover's functions and its state machines exchange: one file for each kind, with JSON
// samples in samples/. Decoding ignores unknown fields and tolerates missing optional ones, because AWS adds fields without notice. The
// package is pure.
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
