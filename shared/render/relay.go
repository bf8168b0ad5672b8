package render

// The relay: the function through which drover reaches an API endpoint that is not open to everyone.

import (
	"errors"
	"regexp"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// RelayCode identifies the code of relays: an object in the state bucket.
type RelayCode struct {
	// Architecture of Lambda: arm64 or x86_64.
	Architecture string
	// SHA256 of the object, in hex.
	SHA256 string
}

// UnknownRelay stands for the code in previews outside drover's functions, which do not know it.
var UnknownRelay = RelayCode{Architecture: "arm64", SHA256: strings.Repeat("0", 64)}

var relayCode = regexp.MustCompile(`^(arm64|x86_64)/([0-9a-f]{64})$`)

// ParseRelayCode reads what String returned, such as an output of a control plane's stack. found is false for other text.
func ParseRelayCode(text string) (code RelayCode, found bool) {
	parts := relayCode.FindStringSubmatch(text)
	if parts == nil {
		return RelayCode{}, false
	}
	return RelayCode{Architecture: parts[1], SHA256: parts[2]}, true
}

// String is <architecture>/<sha256>. It is empty for an unknown code.
func (c RelayCode) String() string {
	if c.SHA256 == "" {
		return ""
	}
	return c.Architecture + "/" + c.SHA256
}

// ErrNoRelayCode is the error for a cluster with a relay if the code is unknown. Then the deployment of drover is damaged. The spec is not
// at fault.
var ErrNoRelayCode = errors.New("the deployed drover has no code for relays: deploy drover again")

// Key of the code in the state bucket.
func (c RelayCode) Key() string { return names.RelayCode(c.SHA256) }

// relayParams are the parameters of a relay.
type relayParams struct {
	Name, Description, ARN string
	// Tag is the key of the EKS cluster's tag.
	Tag            string
	LogGroup, Logs string
	// Interfaces are the ARNs that Lambda needs to connect the function to the VPC.
	Interfaces []string
	RelayCode
	Bucket, Code string
	// Missing leaves out the function.
	Missing bool
}

// addRelay adds a relay, unless the cluster's endpoint is open to everyone. If it was not before, the cluster keeps the relay's security
// group, and the role with which Lambda deletes the network interfaces. CloudFormation waits for these only if the function still exists.
// Otherwise it could not delete the group, and an update forgets what it could not delete.
// https://repost.aws/knowledge-center/cloudformation-stack-cleanup-stuck
func (p *controlPlaneParams) addRelay(in Cluster) error {
	needed := in.Resolved.Spec.ControlPlane.Endpoint.NeedsRelay()
	if !needed && !in.HadRelay {
		return nil
	}
	p.RelayGroup = newRelayParams(in.Cell, in.Resolved, in.Relay)
	if !needed {
		return nil
	}
	if _, found := ParseRelayCode(in.Relay.String()); !found {
		return ErrNoRelayCode
	}
	p.Relay = p.RelayGroup
	return nil
}

func newRelayParams(cell Cell, cluster *api.Cluster, code RelayCode) *relayParams {
	name := names.Relay(cluster.Metadata.Name)
	arn := func(service, resource string) string {
		return strings.Join([]string{"arn", cell.Partition, service, cell.Region, cell.Account, resource}, ":")
	}
	p := &relayParams{
		Name: name, Tag: names.TagRelay,
		Description: "drover: reaches the API of cluster " + cluster.Metadata.Name, ARN: arn("lambda", "function:"+name),
		LogGroup: names.FunctionLogs(name[len(names.Prefix):]), RelayCode: code, Bucket: cell.StateBucket, Code: code.String(),
	}
	p.Logs = arn("logs", "log-group:"+p.LogGroup+":*")
	for _, kind := range []string{"network-interface", "security-group", "subnet"} {
		p.Interfaces = append(p.Interfaces, arn("ec2", kind+"/*"))
	}
	return p
}
