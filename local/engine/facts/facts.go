// Package facts lists what AWS's documentation leaves open. Each fact has two readings. By default
// the local account behaves as in the strict one, in which AWS allows or does less. Readings selects the other one, fact by fact. drover
// works under both.
//
// A fact is open until it is tried in an account. Each entry names the page and the call that answers it.
package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fact is the name of an open fact.
type Fact string

// The open facts.
const (
	KeyTags         Fact = "key-tags"
	KeyGrants       Fact = "key-grants"
	EntryRoles      Fact = "entry-roles"
	AddonIdentities Fact = "addon-identities"
	TerminateHooks  Fact = "terminate-hooks"
	OtherSignals    Fact = "other-signals"
	RefreshRollback Fact = "refresh-rollback"
	LowerVersion    Fact = "lower-version"
)

// Entry describes an open fact.
type Entry struct {
	Fact Fact
	// Question is answered yes by one reading and no by the other.
	Question string
	// Strict is what the account does by default. Other is what it does if Readings has the fact.
	Strict, Other string
	// Page is the page of AWS's documentation that permits both readings.
	Page string
	// Trial is the call or the step that answers the question in an account.
	Trial string
}

var entries = []Entry{
	{
		Fact:     KeyTags,
		Question: "Do the tags of CreateKey count at once for permissions on the key?",
		Strict:   "they count five minutes later, as changed tags do",
		Other:    "they count at once",
		Page:     "https://docs.aws.amazon.com/kms/latest/developerguide/tag-authorization.html",
		Trial:    "call EnableKeyRotation right after CreateKey, allowed by aws:ResourceTag alone",
	},
	{
		Fact:     KeyGrants,
		Question: "Does the grant that EKS creates on a key have kms:GrantIsForAWSResource?",
		Strict:   "it does not: an older user guide has that EKS does not support the condition",
		Other:    "it does, as for a service that is integrated with KMS",
		Page:     "https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-grant-is-for-aws-resource",
		Trial:    "create a cluster with a key whose policy allows kms:CreateGrant with this condition alone",
	},
	{
		Fact:     EntryRoles,
		Question: "Can a STANDARD access entry be created without iam:PassRole on its role?",
		Strict:   "its creator needs iam:PassRole with iam:PassedToService ec2.amazonaws.com, as for EC2_LINUX",
		Other:    "only entries of nodes need it",
		Page:     "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html",
		Trial:    "call CreateAccessEntry of type STANDARD without iam:PassRole",
	},
	{
		Fact:     AddonIdentities,
		Question: "Are CreateAddon, UpdateAddon and DeleteAddon allowed on the cluster and the add-on enough for pod identities?",
		Strict:   "they must also be allowed on the resource type podidentityassociation",
		Other:    "they are enough",
		Page:     "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html",
		Trial:    "create an add-on with a pod identity association, allowed on cluster and addon alone",
	},
	{
		Fact:     TerminateHooks,
		Question: "Does a rolling update wait for the termination hooks of a batch before the next one?",
		Strict:   "it does not",
		Other:    "it does, and so does an instance refresh",
		Page:     "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html",
		Trial:    "roll two batches of a group whose termination hook waits",
	},
	{
		Fact:     OtherSignals,
		Question: "Does a rolling update ignore the signals of instances that are not of its batch?",
		Strict:   "it counts the signals of all instances that were launched since the update began",
		Other:    "it counts only the signals of instances that it added itself",
		Page:     "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html",
		Trial:    "add an instance to a group during a rolling update, and send its signal before that of the batch",
	},
	{
		Fact:     RefreshRollback,
		Question: "Can CloudFormation undo an instance refresh without autoscaling:RollbackInstanceRefresh?",
		Strict:   "it cannot: a rollback calls RollbackInstanceRefresh",
		Other:    "it calls CancelInstanceRefresh, and starts another refresh",
		Page:     "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html",
		Trial:    "cancel the update of a group during its instance refresh, with a role that may not call RollbackInstanceRefresh",
	},
	{
		Fact:     LowerVersion,
		Question: "Does a lower Version in the template of an AWS::EKS::Cluster start a version rollback?",
		Strict:   "it fails: only UpdateClusterVersion starts a rollback",
		Other:    "it does",
		Page:     "https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html",
		Trial:    "update a cluster to the next minor version, then deploy a template of the version before",
	},
}

// All returns the open facts.
func All() []Entry { return slices.Clone(entries) }

// Readings has the facts that the account reads the other way. The zero value is strict.
type Readings map[Fact]bool

// Other reports whether the account plays the other reading of a fact.
func (r Readings) Other(f Fact) bool { return r[f] }

// Every is the word for all facts in Parse.
const Every = "all"

// Parse reads Readings: names of facts with commas between them, or all.
func Parse(text string) (Readings, error) {
	r := Readings{}
	if text == "" {
		return r, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		ok := name == Every
		for _, e := range entries {
			if name == string(e.Fact) || name == Every {
				r[e.Fact], ok = true, true
			}
		}
		if !ok {
			return nil, fmt.Errorf("%q is no open fact: give %s or some of %s", name, Every, Names())
		}
	}
	return r, nil
}

// String returns the facts in the form that Parse reads.
func (r Readings) String() string {
	var list []string
	for _, f := range slices.Sorted(maps.Keys(r)) {
		if r[f] {
			list = append(list, string(f))
		}
	}
	return strings.Join(list, ",")
}

// Names returns the names of all facts in the form that Parse reads.
func Names() string {
	var list []string
	for _, e := range entries {
		list = append(list, string(e.Fact))
	}
	return strings.Join(list, ",")
}
