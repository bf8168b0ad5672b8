// Package render turns a cluster into CloudFormation templates and node configuration. It is pure: the same cluster renders the same bytes.
// No string of a spec can change the structure of the output, because each value is encoded for the language of its place in the output.
package render

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// Render renders a cluster. Every error names the field or the stack at fault, and is fixed in the spec, except ErrNoRelayCode.
func Render(in Cluster) (*Output, error) {
	versions, err := load()
	if err != nil {
		return nil, err
	}
	return renderWith(versions, in)
}

// renderWith renders with the given template versions.
func renderWith(versions map[string]*template.Template, in Cluster) (*Output, error) {
	for _, version := range append([]string{in.Resolved.Spec.TemplateVersion}, slices.Sorted(maps.Values(in.Templates))...) {
		if versions[version] == nil {
			return nil, fmt.Errorf("spec.templateVersion: %q is not one of %s", version, strings.Join(slices.Sorted(maps.Keys(versions)), ", "))
		}
	}
	r := &renderer{
		Cluster: in, versions: versions, set: versions[in.Resolved.Spec.TemplateVersion], out: &Output{UserData: map[string][]byte{}},
	}
	for _, step := range []func() error{r.network, r.controlPlane, r.addons, r.identities, r.capabilities, r.pools, r.nodeAddons} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

// renderer renders one cluster.
type renderer struct {
	Cluster
	versions map[string]*template.Template
	// set is the template version of the current stack.
	set *template.Template
	out *Output
	buf bytes.Buffer
}

func (r *renderer) network() error {
	if r.Resolved.Spec.Network.Existing != nil {
		return nil
	}
	params, err := newNetworkParams(r.Cell, r.Resolved)
	if err != nil {
		return err
	}
	return r.stack(Stack{Name: names.Network, Protected: params.Retain}, "network.yaml.tmpl", params)
}

func (r *renderer) controlPlane() error {
	params, err := newControlPlaneParams(r.Cluster)
	if err != nil {
		return err
	}
	const file = "control-plane.yaml.tmpl"
	stack := Stack{
		Name: names.ControlPlane, Protected: params.Retain, Capabilities: []string{"CAPABILITY_IAM"},
		Parameters: []Parameter{protection(params.Retain), r.controlPlaneSubnets()},
	}
	if params.RelayGroup != nil {
		stack.Parameters = append(stack.Parameters, r.vpc())
	}
	if params.Retain {
		first := *params
		first.Retain = false
		if stack.FirstTemplate, err = r.execute(file, &first); err != nil {
			return fmt.Errorf("stack %s: %w", stack.Name, err)
		}
		stack.FirstKey = names.Template(stack.FirstTemplate)
	}
	if params.Relay != nil && r.RelayMissing {
		without, relay := *params, *params.Relay
		relay.Missing, without.Relay = true, &relay
		if stack.RepairTemplate, err = r.execute(file, &without); err != nil {
			return fmt.Errorf("stack %s: %w", stack.Name, err)
		}
		stack.RepairKey = names.Template(stack.RepairTemplate)
	}
	return r.stack(stack, file, params)
}

func (r *renderer) addons() error {
	return r.addonStack(names.Addons, "add-ons that nodes need", api.NodesNeed)
}

func (r *renderer) nodeAddons() error {
	return r.addonStack(names.NodeAddons, "add-ons that need nodes", func(name string) bool { return !api.NodesNeed(name) })
}

func (r *renderer) addonStack(stack, what string, belongs func(string) bool) error {
	params, err := newAddonsParams(r.Cell, r.Resolved, "drover: "+what+" of cluster "+r.Resolved.Metadata.Name, belongs)
	if params == nil || err != nil {
		return err
	}
	s := Stack{Name: stack, Parameters: []Parameter{fromControlPlane("ClusterName")}}
	if slices.ContainsFunc(params.Addons, func(a addon) bool { return len(a.Roles) > 0 }) {
		s.Capabilities = []string{"CAPABILITY_IAM"}
	}
	return r.stack(s, "addons.yaml.tmpl", params)
}

func (r *renderer) pools() error {
	defer func(set *template.Template) { r.set = set }(r.set)
	for i := range r.Resolved.Spec.Pools {
		pool := &r.Resolved.Spec.Pools[i]
		version := cmp.Or(r.Templates[pool.Name], r.Resolved.Spec.TemplateVersion)
		r.set = r.versions[version]
		userData, err := r.userData(pool)
		if err != nil {
			return fmt.Errorf("spec.pools[%s]: %w", pool.Name, err)
		}
		params, err := newPoolParams(r.Resolved, pool, userData, r.RollAt[pool.Name])
		if err != nil {
			return err
		}
		subnets, err := r.poolSubnets(pool)
		if err != nil {
			return err
		}
		err = r.stack(Stack{Name: names.PoolStack(pool.Name), Parameters: []Parameter{
			fromControlPlane("ClusterCertificateAuthority"), fromControlPlane("ClusterEndpoint"),
			fromControlPlane("ClusterSecurityGroupId"), fromControlPlane("NodeInstanceProfileArn"), subnets,
		}, Pace: newPace(params.GroupName, pool)}, "pool.yaml.tmpl", params)
		if err != nil {
			return err
		}
		stack := &r.out.Stacks[len(r.out.Stacks)-1]
		if stack.Nodes, err = newFingerprint(stack, params.RollAt); err != nil {
			return fmt.Errorf("stack %s: %w", stack.Name, err)
		}
		tags := stack.Tags
		if params.RollAt != "" {
			tags[names.TagRollAt] = params.RollAt
		}
		if version != firstTemplates {
			tags[names.TagTemplateVersion] = version
		}
	}
	return nil
}

// controlPlaneSubnets returns the parameter with the subnets of the control plane: its own, or those of the nodes.
func (r *renderer) controlPlaneSubnets() Parameter {
	if own := r.Resolved.Spec.ControlPlane.Subnets; len(own) > 0 {
		return Parameter{Name: SubnetIDs, Value: strings.Join(own, ",")}
	}
	return r.subnets()
}

// subnets returns the parameter with the subnets of the nodes: the private subnets, or those of an existing VPC.
func (r *renderer) subnets() Parameter {
	if existing := r.Resolved.Spec.Network.Existing; existing != nil {
		return Parameter{Name: SubnetIDs, Value: strings.Join(existing.Subnets, ",")}
	}
	return Parameter{Name: SubnetIDs, From: &OutputRef{Stack: names.Network, Output: "PrivateSubnetIds"}}
}

// poolSubnets returns the parameter with the subnets of a pool: its own, or those of its zones. The output of the network lists its subnets
// in the order of its zones.
func (r *renderer) poolSubnets(pool *api.Pool) (Parameter, error) {
	subnets := r.subnets()
	if len(pool.Subnets) > 0 {
		if subnets.From != nil {
			return subnets, fmt.Errorf("spec.pools[%s].subnets: only an existing network has them", pool.Name)
		}
		own := slices.Sorted(slices.Values(pool.Subnets)) // their order means nothing
		return Parameter{Name: SubnetIDs, Value: strings.Join(own, ",")}, nil
	}
	if len(pool.Zones) == 0 {
		return subnets, nil
	}
	if subnets.From == nil {
		return subnets, fmt.Errorf("spec.pools[%s].zones: an existing network has no zones", pool.Name)
	}
	for i, zone := range pool.Zones {
		at := slices.Index(r.Resolved.Spec.Network.Zones, zone)
		if at < 0 {
			return subnets, fmt.Errorf("spec.pools[%s].zones[%d]: %q is none of spec.network.zones", pool.Name, i, zone)
		}
		subnets.From.Items = append(subnets.From.Items, at)
	}
	slices.Sort(subnets.From.Items) // the order of a pool's zones means nothing
	return subnets, nil
}

// vpc returns the parameter with the VPC of the cluster.
func (r *renderer) vpc() Parameter {
	const name = "VpcId"
	if existing := r.Resolved.Spec.Network.Existing; existing != nil {
		return Parameter{Name: name, Value: existing.VPCID}
	}
	return Parameter{Name: name, From: &OutputRef{Stack: names.Network, Output: "VpcId"}}
}

// protection returns the parameter for the EKS cluster's deletion protection. It is off during the creation: a failed creation of a
// protected cluster could not be rolled back.
func protection(on bool) Parameter {
	if on {
		return Parameter{Name: "DeletionProtection", Value: "true", AtFirst: "false"}
	}
	return Parameter{Name: "DeletionProtection", Value: "false"}
}

// fromControlPlane returns a parameter with the name and value of an output of the control plane.
func fromControlPlane(name string) Parameter {
	return Parameter{Name: name, From: &OutputRef{Stack: names.ControlPlane, Output: name}}
}

// stack renders a template and adds the stack.
func (r *renderer) stack(s Stack, file string, params any) error {
	if slices.ContainsFunc(r.out.Stacks, func(other Stack) bool { return other.Name == s.Name }) {
		return fmt.Errorf("stack %s: there are two of that name", s.Name)
	}
	body, err := r.execute(file, params)
	if err != nil {
		return fmt.Errorf("stack %s: %w", s.Name, err)
	}
	if len(body) > MaxTemplate {
		return fmt.Errorf("stack %s: its template has %d bytes, and CloudFormation takes at most %d", s.Name, len(body), MaxTemplate)
	}
	s.StackName = names.Stack(r.Resolved.Metadata.Name, s.Name)
	s.Template, s.TemplateKey = body, names.Template(body)
	s.Tags = stackTags(r.Resolved, s.Name)
	slices.SortFunc(s.Parameters, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	r.out.Stacks = append(r.out.Stacks, s)
	return nil
}

// execute renders one file.
func (r *renderer) execute(file string, params any) ([]byte, error) {
	r.buf.Reset()
	if err := r.set.ExecuteTemplate(&r.buf, file, params); err != nil {
		return nil, err
	}
	return bytes.Clone(r.buf.Bytes()), nil
}

// stackTags returns the tags of a stack: the user's and drover's. Those of a pool take precedence over those of the cluster, and drover's
// over both.
func stackTags(cluster *api.Cluster, stack string) map[string]string {
	tags := maps.Clone(cluster.Spec.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	for i := range cluster.Spec.Pools {
		if pool := &cluster.Spec.Pools[i]; names.PoolStack(pool.Name) == stack {
			maps.Copy(tags, pool.Tags)
		}
	}
	tags[names.TagCluster] = cluster.Metadata.Name
	tags[names.TagStack] = stack
	tags[names.OwnershipTag(cluster.Metadata.Name)] = "owned"
	return tags
}

// eksName returns the EKS cluster's name.
func eksName(cluster *api.Cluster) string { return names.EKSCluster(cluster.Metadata.Name) }

// isProtected reports whether the spec forbids the deletion of the cluster: it does so by default.
func isProtected(cluster *api.Cluster) bool { return isEnabled(cluster.Spec.DeletionProtection) }

// isEnabled reports whether a switch is on: it is on by default.
func isEnabled(b *bool) bool { return b == nil || *b }
