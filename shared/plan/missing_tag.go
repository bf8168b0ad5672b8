package plan

// Stacks without drover's tag. CloudFormation copies the tags of a stack to its resources, and removes them there when the stack loses
// them. The role that CloudFormation uses may change a VPC, a subnet or a key only if it has the tag. So an update that restores the tag
// is denied halfway, and its rollback is denied too.

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

// tagPrefix starts the keys of drover's tags.
const tagPrefix = "drover:"

// byTag reports whether drover may change a stack's resources only with the tag: a network, and a control plane with a key that drover
// created. All other permissions depend on names, or on other tags.
func byTag(stack string, c *api.Cluster) bool {
	return stack == names.Network || stack == names.ControlPlane && c.Spec.ControlPlane.EncryptionKeyARN == ""
}

// MissingTag reports whether a stack cannot be changed because its tag was removed, and why. Another value of the tag does no harm.
func (c Change) MissingTag(deployed stack.Deployed) (reason status.Reason, missing bool) {
	if !c.ByTag || stack.Absent(deployed.Status) || deployed.Tags[names.TagCluster] != "" {
		return status.Reason{}, false
	}
	return status.Reason{
		Field: "tag " + names.TagCluster + " of stack " + c.StackName, Old: "absent",
		New: fmt.Sprintf("%s (without it drover may not change the stack's resources): restore it as an administrator, with a ROLE that "+
			"CloudFormation may assume, then run drover converge %s: %s", c.Tags[names.TagCluster], c.Tags[names.TagCluster],
			c.restoreCommand(deployed)),
	}, true
}

// restoreCommand returns the command that restores the tag. It leaves drover's other tags and the parameters unchanged. Converging
// restores the other tags.
func (c Change) restoreCommand(deployed stack.Deployed) string {
	tags := maps.Clone(deployed.Tags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return !strings.HasPrefix(key, tagPrefix) })
	tags[names.TagCluster], tags[names.TagStack] = c.Tags[names.TagCluster], c.Stack
	words := []string{
		"aws cloudformation update-stack --stack-name", c.StackName, "--use-previous-template --capabilities CAPABILITY_NAMED_IAM " +
			"--role-arn ROLE --tags",
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		words = append(words, "Key="+key+",Value="+tags[key])
	}
	if len(deployed.Parameters) > 0 {
		words = append(words, "--parameters")
	}
	for _, key := range slices.Sorted(maps.Keys(deployed.Parameters)) {
		words = append(words, "ParameterKey="+key+",UsePreviousValue=true")
	}
	return strings.Join(words, " ")
}
