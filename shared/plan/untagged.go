package plan

// Stacks that lost drover's tag. CloudFormation copies the tags of a stack to its resources, and removes them from
// there when the stack loses them. The role that CloudFormation uses may change only a VPC, a subnet or a key with the
// tag. So an update that restores the tag is denied halfway, and its rollback is denied too.

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// own begins the keys of drover's tags.
const own = "drover:"

// byTag says whether a stack has resources that are held by the tag: a network has, and a control plane whose key
// drover made. All else is held by its name, or has tags of its own.
func byTag(stack string, c *api.Cluster) bool {
	return stack == names.Network || stack == names.ControlPlane && c.Spec.ControlPlane.EncryptionKeyARN == ""
}

// Untagged says whether the change of a stack cannot be made because its tag was taken away, and why. Another value does no harm.
func (c Change) Untagged(now stack.Deployed) (status.Reason, bool) {
	if !c.ByTag || stack.Absent(now.Status) || now.Tags[names.TagCluster] != "" {
		return status.Reason{}, false
	}
	return status.Reason{
		Field: "tag " + names.TagCluster + " of stack " + c.StackName, Old: "absent",
		New: fmt.Sprintf("%s (without it drover may not touch what is in the stack): put it back as an administrator, by a ROLE that "+
			"CloudFormation may assume, "+
			"and then run drover converge %s: %s", c.Tags[names.TagCluster], c.Tags[names.TagCluster], c.tagBack(now)),
	}, true
}

// tagBack is the command that puts the tag back, and leaves drover's other tags and the parameters as they are.
// Converging puts the rest back.
func (c Change) tagBack(now stack.Deployed) string {
	tags := maps.Clone(now.Tags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return !strings.HasPrefix(key, own) })
	tags[names.TagCluster], tags[names.TagStack] = c.Tags[names.TagCluster], c.Stack
	words := []string{
		"aws cloudformation update-stack --stack-name", c.StackName, "--use-previous-template --capabilities CAPABILITY_NAMED_IAM " +
			"--role-arn ROLE --tags",
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		words = append(words, "Key="+key+",Value="+tags[key])
	}
	if len(now.Parameters) > 0 {
		words = append(words, "--parameters")
	}
	for _, key := range slices.Sorted(maps.Keys(now.Parameters)) {
		words = append(words, "ParameterKey="+key+",UsePreviousValue=true")
	}
	return strings.Join(words, " ")
}
