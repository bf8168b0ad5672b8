// Package questions lists the questions that AWS's documentation leaves open. The documentation has two readings of each. By default
// the local account behaves as in the strict one, in which AWS allows or does less. Readings selects the other one, question by question.
// drover works under both.
//
// A question is open until it is tried in an account. Each entry names the page that leaves it open, and the call that answers it.
package questions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Name is the name of an open question.
type Name string

// The open questions.
const (
	KeyTags         Name = "key-tags"
	KeyGrants       Name = "key-grants"
	EntryRoles      Name = "entry-roles"
	AddonIdentities Name = "addon-identities"
	TerminateHooks  Name = "terminate-hooks"
	OtherSignals    Name = "other-signals"
	RefreshRollback Name = "refresh-rollback"
	OtherInstances  Name = "other-instances"
	LowerVersion    Name = "lower-version"
)

// Question is an open question.
type Question struct {
	Name Name
	// Text is answered yes by one reading and no by the other.
	Text string
	// Strict is what the account does by default. Other is what it does if Readings has the question.
	Strict, Other string
	// Page is the page of AWS's documentation that permits both readings.
	Page string
	// Trial is the call or the step that answers the question in an account.
	Trial string
}

var all = []Question{
	{
		Name:   KeyTags,
		Text:   "Do the tags of CreateKey count at once for permissions on the key?",
		Strict: "they count five minutes later, as changed tags do",
		Other:  "they count at once",
		Page:   "https://docs.aws.amazon.com/kms/latest/developerguide/tag-authorization.html",
		Trial:  "call EnableKeyRotation right after CreateKey, allowed by aws:ResourceTag alone",
	},
	{
		Name:   KeyGrants,
		Text:   "Does the grant that EKS creates on a key have kms:GrantIsForAWSResource?",
		Strict: "it does not: an older user guide has that EKS does not support the condition",
		Other:  "it does, as for a service that is integrated with KMS",
		Page:   "https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-grant-is-for-aws-resource",
		Trial:  "create a cluster with a key whose policy allows kms:CreateGrant with this condition alone",
	},
	{
		Name:   EntryRoles,
		Text:   "Can a STANDARD access entry be created without iam:PassRole on its role?",
		Strict: "its creator needs iam:PassRole with iam:PassedToService ec2.amazonaws.com, as for EC2_LINUX",
		Other:  "only entries of nodes need it",
		Page:   "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html",
		Trial:  "call CreateAccessEntry of type STANDARD without iam:PassRole",
	},
	{
		Name:   AddonIdentities,
		Text:   "Are CreateAddon, UpdateAddon and DeleteAddon allowed on the cluster and the add-on enough for pod identities?",
		Strict: "they must also be allowed on the resource type podidentityassociation",
		Other:  "they are enough",
		Page:   "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html",
		Trial:  "create an add-on with a pod identity association, allowed on cluster and addon alone",
	},
	{
		Name:   TerminateHooks,
		Text:   "Does a rolling update wait for the termination hooks of a batch before the next one?",
		Strict: "it does not",
		Other:  "it does, and so does an instance refresh",
		Page:   "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html",
		Trial:  "roll two batches of a group whose termination hook waits",
	},
	{
		Name:   OtherSignals,
		Text:   "Does a rolling update ignore the signals of instances that are not of its batch?",
		Strict: "it counts the signals of all instances that were launched since the update began",
		Other:  "it counts only the signals of instances that it added itself",
		Page:   "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html",
		Trial:  "add an instance to a group during a rolling update, and send its signal before that of the batch",
	},
	{
		Name:   RefreshRollback,
		Text:   "Can CloudFormation undo an instance refresh without autoscaling:RollbackInstanceRefresh?",
		Strict: "it cannot: a rollback calls RollbackInstanceRefresh",
		Other:  "it calls CancelInstanceRefresh, and starts another refresh",
		Page:   "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html",
		Trial:  "cancel the update of a group during its instance refresh, with a role that may not call RollbackInstanceRefresh",
	},
	{
		Name:   OtherInstances,
		Text:   "Does an update of a group that leaves its launch template alone replace instances of another version of it?",
		Strict: "it does not: only another launch template, mixed instances policy or subnets do",
		Other:  "it does, whatever the update changes, as documented for launch configurations",
		Page:   "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html",
		Trial:  "change the launch template of a group without an update policy, then add the policy and a tag of the group",
	},
	{
		Name:   LowerVersion,
		Text:   "Does a lower Version in the template of an AWS::EKS::Cluster start a version rollback?",
		Strict: "it fails: only UpdateClusterVersion starts a rollback",
		Other:  "it does",
		Page:   "https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html",
		Trial:  "update a cluster to the next minor version, then deploy a template of the version before",
	},
}

// All returns the open questions.
func All() []Question { return slices.Clone(all) }

// Readings has the questions to which the account gives the other answer. The zero value is strict.
type Readings map[Name]bool

// Other reports whether the account plays the other reading.
func (r Readings) Other(n Name) bool { return r[n] }

// Every is the word for all questions in Parse.
const Every = "all"

// Parse reads Readings: names of questions with commas between them, or all.
func Parse(text string) (Readings, error) {
	r := Readings{}
	if text == "" {
		return r, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		ok := name == Every
		for _, q := range all {
			if name == string(q.Name) || name == Every {
				r[q.Name], ok = true, true
			}
		}
		if !ok {
			return nil, fmt.Errorf("%q is no open question: give %s or some of %s", name, Every, Names())
		}
	}
	return r, nil
}

// String returns the questions in the form that Parse reads.
func (r Readings) String() string {
	var list []string
	for _, f := range slices.Sorted(maps.Keys(r)) {
		if r[f] {
			list = append(list, string(f))
		}
	}
	return strings.Join(list, ",")
}

// Names returns the names of all questions in the form that Parse reads.
func Names() string {
	var list []string
	for _, q := range all {
		list = append(list, string(q.Name))
	}
	return strings.Join(list, ",")
}
