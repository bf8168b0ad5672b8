package events

// StackStatus is the detail of CloudFormation's "CloudFormation Stack Status Change".
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stacks-event-bridge.html
type StackStatus struct {
	StackID       string `json:"stack-id"`
	StatusDetails struct {
		Status       string `json:"status"`
		StatusReason string `json:"status-reason,omitempty"`
	} `json:"status-details"`
	ClientRequestToken string `json:"client-request-token,omitempty"`
}
