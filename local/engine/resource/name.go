package resource

import (
	"crypto/rand"
	"strings"
)

// GeneratedName returns the physical name that CloudFormation gives a resource without a name property: the stack's
// name, the logical ID and 12 random characters. The first two are truncated so that the name has at most limit
// characters. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-name.html
func (r Request) GeneratedName(limit int) string {
	stack, logical := r.StackName, r.LogicalID
	room := limit - 14 // two dashes and the random part
	if excess := len(stack) + len(logical) - room; excess > 0 {
		length := max(room/2, room-len(logical))
		stack = stack[:min(len(stack), length)]
		logical = logical[:min(len(logical), room-len(stack))]
	}
	return strings.TrimSuffix(stack, "-") + "-" + logical + "-" + rand.Text()[:12]
}
