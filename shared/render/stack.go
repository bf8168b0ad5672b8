package render

import (
	"cmp"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// Cell is a deployment of drover, as far as templates need it. It contains no function and no version of drover, so another version of
// drover renders the same bytes. It has no settings of the deployment: those are variables that infra sets.
type Cell struct {
	// Partition is aws, aws-cn or aws-us-gov.
	Partition string
	Region    string
	// Account is the twelve-digit account id.
	Account string
	// StateBucket is where nodes read configuration that is too large for user data.
	StateBucket string
}

// Cluster is the whole input of rendering. The same Cluster renders byte-identical stacks.
type Cluster struct {
	Cell Cell
	// Resolved is the spec with the defaults of the release and of drover: see api.Resolve.
	Resolved *api.Cluster
	// RelayMissing reports that the function of the deployed relay was deleted outside drover.
	RelayMissing bool
	// HadRelay reports that the deployed control plane has the security group of a relay. A cluster keeps the group if its endpoint is now
	// open to everyone.
	HadRelay bool
	// RollAt is the time of the latest roll, by pool: see plan.RollAt. Future times do not belong here.
	RollAt map[string]time.Time
	// Relay is the code of the cluster's relay. Only a cluster whose endpoint is not open to everyone has one.
	Relay RelayCode
	// WorkloadBoundary is the permissions boundary of roles with policies of the spec: see api.CellSettings. It is "" where the settings are
	// not known, as in a preview.
	WorkloadBoundary string
	// Templates are the template versions of pools that differ from the cluster's, by pool: see upgrade.Templates.
	Templates map[string]string
}

// firstTemplates is the template version of a pool's stack without a version tag.
const firstTemplates = "v1"

// TemplateVersion returns the template version of a pool from the tags of its stack.
func TemplateVersion(tags map[string]string) string {
	return cmp.Or(tags[names.TagTemplateVersion], firstTemplates)
}

// Output is a rendered cluster.
type Output struct {
	// Stacks in the order in which they are changed.
	Stacks []Stack
	// UserData are the node configurations for the state bucket, by key (names.UserData).
	UserData map[string][]byte
}

// Stack is one rendered CloudFormation stack.
type Stack struct {
	// Name without the cluster's prefix: network, control-plane, addons, identities, capabilities, pool-<name>,
	// addons-on-nodes.
	Name string
	// StackName is the name in CloudFormation: drover-<cluster>-<name>.
	StackName string
	// Template is CloudFormation YAML, at most MaxTemplate bytes.
	Template []byte
	// TemplateKey is its key in the state bucket.
	TemplateKey string
	// FirstTemplate is the template for the creation, if it differs: it retains nothing. If a creation and its rollback fail, CloudFormation
	// would leave what Template retains, and the next creation would find its names taken.
	FirstTemplate []byte
	// FirstKey is the key of FirstTemplate.
	FirstKey string
	// RepairTemplate lacks the resources that were deleted outside drover, if there are any. CloudFormation recreates a resource that an
	// update removes and another one adds. Otherwise it takes the resource for deployed, and fails to update it.
	// https://repost.aws/knowledge-center/cfn-recreate-resource-deleted-outside
	RepairTemplate []byte
	// RepairKey is the key of RepairTemplate.
	RepairKey string
	// Parameters of the template, sorted by name.
	Parameters []Parameter
	// Pace computes the other parameters of a pool's stack.
	Pace *Pace
	// Nodes is what the nodes of a pool's stack are made of.
	Nodes *Fingerprint
	// Tags are drover's and the user's, without spec version, checksum and release, which planning adds.
	Tags map[string]string
	// Protected stacks get termination protection.
	Protected bool
	// Capabilities that the stack needs, such as CAPABILITY_IAM.
	Capabilities []string
}

// Parameter of a stack: a value known now, or an output of another stack of the cluster.
type Parameter struct {
	Name string `json:"name"`
	// Value, if it is known.
	Value string `json:"value,omitempty"`
	// AtFirst is the value during the creation, if it differs: Value would prevent the rollback of a failed creation.
	AtFirst string `json:"atFirst,omitempty"`
	// From is the output that holds the value once its stack exists.
	From *OutputRef `json:"from,omitempty"`
}

// OutputRef is an output of another stack of the same cluster.
type OutputRef struct {
	// Stack without the cluster's prefix.
	Stack string `json:"stack"`
	// Output name.
	Output string `json:"output"`
	// Items are the places, from 0, of the items of the output that the value consists of. The output is a list with commas. Without items,
	// the value is the whole output.
	Items []int `json:"items,omitempty"`
}

// Value returns the value from the outputs of the stack. found is false if the stack lacks the output or an item of it.
func (r *OutputRef) Value(outputs map[string]string) (value string, found bool) {
	value, found = outputs[r.Output]
	if !found || len(r.Items) == 0 {
		return value, found
	}
	list := strings.Split(value, ",")
	picked := make([]string, len(r.Items))
	for i, item := range r.Items {
		if item >= len(list) {
			return "", false
		}
		picked[i] = list[item]
	}
	return strings.Join(picked, ","), true
}

// Limits of CloudFormation and EC2.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
const (
	// MaxTemplate is the maximum size of a template in S3, in bytes.
	MaxTemplate = 1_000_000
	// MaxUserData is the maximum size of user data in bytes, before base64.
	MaxUserData = 16 << 10
)
