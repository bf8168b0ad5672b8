package render

import (
	"cmp"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// Cell is the deployment of drover that renders: what templates must know of it. It names no function and no version
// of drover, so that deploying another drover renders the same bytes.
type Cell struct {
	// Partition is aws, aws-cn or aws-us-gov.
	Partition string
	Region    string
	// Account is the twelve-digit account id.
	Account string
	// StateBucket is where nodes fetch configuration too large for user data.
	StateBucket string
}

// Cluster is everything rendering needs: the same Cluster renders byte-identical stacks.
type Cluster struct {
	Cell Cell
	// Resolved is the spec with the release's and drover's defaults filled in: see api.Resolve.
	Resolved *api.Cluster
	// RollAt is when the nodes of pools are to be replaced, or were last, by pool: see plan.RollAt. No other time belongs here
	// than one that has come.
	RollAt map[string]time.Time
	// Templates are the template versions of pools, by pool, that have another than the cluster's: see upgrade.Templates.
	Templates map[string]string
}

// firstTemplates is the template version that a pool's stack has that says none.
const firstTemplates = "v1"

// TemplateVersion of a pool, by the tags of its stack.
func TemplateVersion(tags map[string]string) string {
	return cmp.Or(tags[names.TagTemplateVersion], firstTemplates)
}

// Output is a rendered cluster.
type Output struct {
	// Stacks in the order in which they are changed.
	Stacks []Stack
	// UserData are the node configurations that go to the state bucket, by key (names.UserData).
	UserData map[string][]byte
}

// Stack is one rendered CloudFormation stack.
type Stack struct {
	// Name without the cluster's prefix: network, control-plane, addons, pool-<name>, node-addons.
	Name string
	// StackName is the name on AWS: drover-<cluster>-<name>.
	StackName string
	// Template is CloudFormation YAML, at most MaxTemplate bytes.
	Template []byte
	// TemplateKey is where it is kept in the state bucket.
	TemplateKey string
	// FirstTemplate is what the stack is created from, if that is another: one that retains nothing. When neither a creation nor
	// taking it back gets through, CloudFormation would leave what Template retains, and the next creation would find its names taken.
	FirstTemplate []byte
	// FirstKey is where that is kept.
	FirstKey string
	// Parameters of the template, sorted by name.
	Parameters []Parameter
	// Pace gives the rest of the parameters, of a pool's stack.
	Pace *Pace
	// Tags are drover's and the user's, less spec-version, checksum and release, which planning adds.
	Tags map[string]string
	// Protected stacks get termination protection.
	Protected bool
	// Capabilities that the stack needs, such as CAPABILITY_IAM.
	Capabilities []string
}

// Parameter of a stack: a value known now, or an output of another stack of the cluster.
type Parameter struct {
	Name string `json:"name"`
	// Value, when it is known.
	Value string `json:"value,omitempty"`
	// AtFirst is its value while the stack is created, if that is another: what would keep a creation that fails from being
	// taken back.
	AtFirst string `json:"atFirst,omitempty"`
	// From is the output that holds the value once its stack is there.
	From *OutputRef `json:"from,omitempty"`
}

// OutputRef is an output of another stack of the same cluster.
type OutputRef struct {
	// Stack without the cluster's prefix.
	Stack string `json:"stack"`
	// Output name.
	Output string `json:"output"`
}

// Limits of CloudFormation and EC2.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
const (
	// MaxTemplate is the greatest template in bytes, from S3.
	MaxTemplate = 1_000_000
	// MaxUserData is the greatest user data in bytes, before base64.
	MaxUserData = 16 << 10
)
