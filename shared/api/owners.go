package api

// AWS resources that a spec names, and the clusters to which they belong.

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ControlPlaneSubnets returns the subnets of a control plane in an existing network, or nil.
func (c *Cluster) ControlPlaneSubnets() []string {
	if own := c.Spec.ControlPlane.Subnets; len(own) > 0 || c.Spec.Network.Existing == nil {
		return own
	}
	return c.Spec.Network.Existing.Subnets
}

// ResourceARNs returns the ARNs of the resources that a spec uses: the VPC and subnets of an existing network, the subnets and security
// groups of the control plane and of pools, and the key for secrets. A key of another account or region is left out, because no cluster of
// this region owns it. prefix starts EC2's ARNs, such as arn:aws:ec2:us-east-1:111122223333.
func (c *Cluster) ResourceARNs(prefix string) (arns []string) {
	add := func(arn string) {
		if !slices.Contains(arns, arn) {
			arns = append(arns, arn)
		}
	}
	if existing := c.Spec.Network.Existing; existing != nil {
		add(prefix + ":vpc/" + existing.VPCID)
		for _, subnet := range existing.Subnets {
			add(prefix + ":subnet/" + subnet)
		}
	}
	for _, subnet := range c.Spec.ControlPlane.Subnets {
		add(prefix + ":subnet/" + subnet)
	}
	for _, group := range c.Spec.ControlPlane.SecurityGroups {
		add(prefix + ":security-group/" + group)
	}
	for i := range c.Spec.Pools {
		for _, subnet := range c.Spec.Pools[i].Subnets {
			add(prefix + ":subnet/" + subnet)
		}
		for _, group := range c.Spec.Pools[i].SecurityGroups {
			add(prefix + ":security-group/" + group)
		}
	}
	if key := c.Spec.ControlPlane.EncryptionKeyARN; strings.HasPrefix(key, strings.Replace(prefix, ":ec2:", ":kms:", 1)+":") {
		add(key)
	}
	return arns
}

// ValidateOwners rejects a spec that names a resource of another drover cluster. Deleting that cluster would delete the resource, or the
// resource would block the deletion. owners maps ARNs to clusters. It does not contain a user's own resources.
func (c *Cluster) ValidateOwners(prefix string, owners map[string]string) Errors {
	var errs field.ErrorList
	check := func(path *field.Path, value, arn string) {
		if owner := owners[arn]; owner != "" && owner != c.Metadata.Name {
			errs = append(errs,
				field.Invalid(path, value, fmt.Sprintf("it is part of cluster %s (tag drover:cluster), and is deleted with it: use one that belongs "+
					"to no cluster; if that cluster was deleted and left it behind, remove the tag", owner)))
		}
	}
	network, key := field.NewPath("spec", "network", "existing"), c.Spec.ControlPlane.EncryptionKeyARN
	if existing := c.Spec.Network.Existing; existing != nil {
		check(network.Child("vpcID"), existing.VPCID, prefix+":vpc/"+existing.VPCID)
		for i, subnet := range existing.Subnets {
			check(network.Child("subnets").Index(i), subnet, prefix+":subnet/"+subnet)
		}
	}
	control := field.NewPath("spec", "controlPlane")
	for i, subnet := range c.Spec.ControlPlane.Subnets {
		check(control.Child("subnets").Index(i), subnet, prefix+":subnet/"+subnet)
	}
	for i, group := range c.Spec.ControlPlane.SecurityGroups {
		check(control.Child("securityGroups").Index(i), group, prefix+":security-group/"+group)
	}
	for i := range c.Spec.Pools {
		pool := field.NewPath("spec", "pools").Index(i)
		for k, subnet := range c.Spec.Pools[i].Subnets {
			check(pool.Child("subnets").Index(k), subnet, prefix+":subnet/"+subnet)
		}
		for k, group := range c.Spec.Pools[i].SecurityGroups {
			check(pool.Child("securityGroups").Index(k), group, prefix+":security-group/"+group)
		}
	}
	check(field.NewPath("spec", "controlPlane", "encryptionKeyARN"), key, key)
	return fromFields(errs)
}
