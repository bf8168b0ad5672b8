package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// maxShown bounds a value in a reason, in bytes. Longer and confidential values are shown by their length only. A hash would not help: a
// short secret could be guessed from it.
const maxShown = 120

// Diff returns the fields of a stack's part of the spec that differ, with their old and new values. Without an old spec it returns none.
func Diff(stack string, old, now *api.Cluster) []status.Reason {
	if old == nil || now == nil {
		return nil
	}
	before, after := part(stack, old), part(stack, now)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var reasons []status.Reason
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if before[key] == after[key] {
			continue
		}
		reason := status.Reason{Field: key, Old: show(key, before[key]), New: show(key, after[key])}
		if reason.Old == reason.New {
			reason.New += ", other content"
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

// part flattens the part of a spec that a stack is rendered from: field path → JSON of the value.
func part(stack string, c *api.Cluster) map[string]string {
	flat := map[string]string{}
	add := func(path string, v any) { flatten(flat, path, plain(v)) }
	add("spec.tags", c.Spec.Tags)
	add("spec.templateVersion", c.Spec.TemplateVersion)
	switch {
	case stack == names.Network:
		add("spec.network", c.Spec.Network)
		add("spec.deletionProtection", c.Spec.DeletionProtection)
	case stack == names.ControlPlane:
		add("spec.release.name", c.Spec.Release.Name)
		add("spec.kubernetesVersion", c.Spec.KubernetesVersion)
		add("spec.controlPlane", c.Spec.ControlPlane)
		add("spec.network.existing", c.Spec.Network.Existing)
		add("spec.deletionProtection", c.Spec.DeletionProtection)
	case stack == names.Identities:
		for _, identity := range c.Spec.PodIdentities {
			add("spec.podIdentities["+identity.Namespace+"/"+identity.ServiceAccount+"]", identity)
		}
	case stack == names.Capabilities:
		for _, capability := range c.Spec.Capabilities {
			add("spec.capabilities["+capability.Name+"]", capability)
		}
	case stack == names.Addons || stack == names.NodeAddons:
		for _, addon := range c.Spec.Addons {
			if api.NodesNeed(addon.Name) == (stack == names.Addons) {
				add("spec.addons["+addon.Name+"]", addon)
			}
		}
	default:
		for _, pool := range c.Spec.Pools {
			if names.PoolStack(pool.Name) == stack {
				add("spec.pools["+pool.Name+"]", pool)
				if pool.Proxy != nil { // what its nodes reach without the proxy
					add("spec.network.cidr", c.Spec.Network.CIDR)
					add("spec.network.secondaryCIDRs", c.Spec.Network.SecondaryCIDRs)
					add("spec.network.natGateways", c.Spec.Network.NATGateways)
					add("spec.network.endpoints", c.Spec.Network.Endpoints)
				}
			}
		}
		add("spec.controlPlane.serviceCIDR", c.Spec.ControlPlane.ServiceCIDR)
		add("spec.controlPlane.zonalShift", c.Spec.ControlPlane.ZonalShift)
		add("spec.network.existing", c.Spec.Network.Existing)
	}
	return flat
}

// plain converts a value to what JSON decodes.
func plain(v any) (out any) {
	body, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil { // specs are decoded from JSON
		panic(fmt.Sprintf("a spec that is not JSON: %v", err))
	}
	return out
}

func flatten(flat map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			flatten(flat, path+"."+key, value)
		}
	case nil:
	default: // a list is one value: its order matters
		body, _ := json.Marshal(v)
		flat[path] = string(body)
	}
}

func show(path, value string) string {
	confidential := strings.HasSuffix(path, ".files") || strings.HasSuffix(path, ".commands") || strings.Contains(path, ".configuration.")
	if confidential && value != "" || len(value) > maxShown {
		return fmt.Sprintf("(%d bytes)", len(value))
	}
	return strings.Trim(value, `"`)
}

// stateful lists the fields whose change would replace stateful resources, with what to do instead.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-cluster.html
var stateful = map[string]map[string]string{
	names.Network: {
		"spec.network.cidr":           "a VPC's CIDR cannot change: add a secondary CIDR, or create a new cluster",
		"spec.network.existing.vpcID": "a cluster cannot move to another VPC: create a new cluster",
	},
	names.ControlPlane: {
		"spec.controlPlane.serviceCIDR":      "EKS cannot change it: create a new cluster",
		"spec.controlPlane.encryptionKeyARN": "EKS would replace the cluster: create a new cluster",
		"spec.network.existing.vpcID":        "a cluster cannot move to another VPC: create a new cluster",
	},
}

// refusedReasons returns the changes of a stack that would replace or delete stateful resources.
func refusedReasons(stack string, old, now *api.Cluster) []status.Reason {
	var refusals []status.Reason
	for _, reason := range Diff(stack, old, now) {
		if instead, ok := stateful[stack][reason.Field]; ok {
			refusals = append(refusals, status.Reason{Field: reason.Field, Old: reason.Old, New: reason.New + " (" + instead + ")"})
		}
	}
	if stack == names.ControlPlane && old != nil && now != nil {
		refusals = append(refusals, changedProvider(old.Spec.ControlPlane.IdentityProvider, now.Spec.ControlPlane.IdentityProvider)...)
	}
	if stack == names.Capabilities && old != nil && now != nil {
		refusals = append(refusals, replacedCapabilities(old.Spec.Capabilities, now.Spec.Capabilities)...)
	}
	if stack == names.Network && old != nil && now != nil {
		for _, zone := range old.Spec.Network.Zones {
			if !slices.Contains(now.Spec.Network.Zones, zone) {
				refusals = append(refusals, status.Reason{
					Field: "spec.network.zones", Old: zone, New: "(removing a zone deletes its subnets: create a new cluster)",
				})
			}
		}
		refusals = append(refusals, changedAddresses(&old.Spec.Network, &now.Spec.Network)...)
	}
	return refusals
}

// changedProvider refuses another identity provider in the place of one. CloudFormation would create the new one first, and EKS allows one.
// https://docs.aws.amazon.com/eks/latest/userguide/authenticate-oidc-identity-provider.html
func changedProvider(old, now *api.IdentityProvider) []status.Reason {
	if old == nil || now == nil || reflect.DeepEqual(old, now) {
		return nil
	}
	return []status.Reason{{
		Field: "spec.controlPlane.identityProvider", Old: old.IssuerURL,
		New: now.IssuerURL + " (EKS allows one identity provider, and changes none: remove it, and add the other one in a second edit)",
	}}
}

// changedAddresses returns the NAT gateways that would be replaced, and their addresses with them.
func changedAddresses(old, now *api.Network) (refusals []status.Reason) {
	for _, zone := range now.GatewayZones() {
		before, after := old.NATAddresses[zone], now.NATAddresses[zone]
		if before != after && slices.Contains(old.GatewayZones(), zone) {
			refusals = append(refusals, status.Reason{
				Field: "spec.network.natAddresses." + zone, Old: before,
				New: strings.TrimSpace(after + " (the NAT gateway would be replaced, and its address would change: keep it, or create a new cluster)"),
			})
		}
	}
	return refusals
}
