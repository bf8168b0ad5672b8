package resource

import (
	"crypto/rand"
	"strings"
)

// GeneratedName is the physical name that CloudFormation gives a resource whose name property is not set: the stack's
// name, the logical id and 12 random characters, the first two cut so that limit characters suffice.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-name.html
func (r Request) GeneratedName(limit int) string {
	stack, logical := r.StackName, r.LogicalID
	room := limit - 14 // two dashes and the random part
	if over := len(stack) + len(logical) - room; over > 0 {
		kept := max(room/2, room-len(logical))
		stack = stack[:min(len(stack), kept)]
		logical = logical[:min(len(logical), room-len(stack))]
	}
	return strings.TrimSuffix(stack, "-") + "-" + logical + "-" + rand.Text()[:12]
}
