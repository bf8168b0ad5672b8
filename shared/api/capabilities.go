package api

// EKS Capabilities: controllers that EKS runs outside the nodes of a cluster.
// https://docs.aws.amazon.com/eks/latest/userguide/capabilities.html

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Capability is a controller that EKS runs for the cluster.
type Capability struct {
	// Name of the capability, unique in its cluster.
	Name string `json:"name" rule:"format=capability-name"`
	// Type of the capability: Argo CD, AWS Controllers for Kubernetes, or Kube Resource Orchestrator. It cannot change.
	Type CapabilityType `json:"type" rule:"enum=ArgoCD,ACK,KRO"`
	// RoleARN is a role of drover's account that capabilities.eks.amazonaws.com may assume, with sts:AssumeRole and sts:TagSession. It has no
	// path. EKS gives it access to the cluster. The platform team lists the roles that specs may name in workloadRoles of cellSettings.
	RoleARN string `json:"roleARN" rule:"format=role-arn"`
	// ArgoCD configures Argo CD. The type ArgoCD needs it, and no other type has it.
	ArgoCD *ArgoCD `json:"argoCD,omitempty"`
}

// ArgoCD is the configuration of Argo CD. Its users are those of IAM Identity Center.
// https://docs.aws.amazon.com/eks/latest/userguide/create-argocd-capability.html
type ArgoCD struct {
	// IdentityCenterARN is the instance of IAM Identity Center, which EKS adds an application to. It cannot change. It is identityCenter of
	// cellSettings, which the platform team sets.
	IdentityCenterARN string `json:"identityCenterARN" rule:"format=identity-center"`
	// Namespace of Argo CD's objects in the cluster. It cannot change.
	Namespace string `json:"namespace,omitempty" rule:"default=argocd;format=namespace-name"`
	// Admins are groups of IAM Identity Center, by ID, whose users administer Argo CD. Without any, no user can sign in to it.
	Admins []string `json:"admins,omitempty" rule:"format=identity-group;unique;maxItems=50"`
}

// CapabilityType is what a capability runs.
type CapabilityType string

// The values of CapabilityType.
const (
	CapabilityArgoCD CapabilityType = "ArgoCD"
	CapabilityACK    CapabilityType = "ACK"
	CapabilityKRO    CapabilityType = "KRO"
)

// validateCapabilities checks capabilities with their defaults.
func validateCapabilities(path *field.Path, capabilities []Capability, cell *CellSettings) (errs field.ErrorList) {
	seen := map[CapabilityType]bool{}
	for i := range capabilities {
		c, at := &capabilities[i], path.Index(i)
		if seen[c.Type] && c.Type != "" {
			errs = append(errs, field.Invalid(at.Child("type"), string(c.Type),
				"EKS allows one capability of each type: remove this one or the other"))
		}
		seen[c.Type] = true
		switch {
		case c.Type == CapabilityArgoCD && c.ArgoCD == nil:
			errs = append(errs, field.Required(at.Child("argoCD"), "its users are those of IAM Identity Center: state at least identityCenterARN"))
		case c.Type != CapabilityArgoCD && c.ArgoCD != nil:
			errs = append(errs, field.Forbidden(at.Child("argoCD"), "only the type ArgoCD has it: remove this field"))
		case c.ArgoCD != nil:
			errs = append(errs, cell.validateIdentityCenter(at.Child("argoCD", "identityCenterARN"), c.ArgoCD.IdentityCenterARN)...)
		}
		errs = append(errs, cell.validateCapabilityRole(at.Child("roleARN"), c.RoleARN)...)
	}
	return errs
}

// validateCapabilityRole returns an error if a capability cannot have a role. The pattern of RoleArn in the schema of the resource type
// allows no path. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-capability.html
func (s *CellSettings) validateCapabilityRole(path *field.Path, arn string) field.ErrorList {
	if len(formatNamed("role-arn").Wrong(arn)) > 0 {
		return nil
	}
	_, name, _ := strings.Cut(arn, ":role/")
	switch {
	case strings.Contains(name, "/"):
		return field.ErrorList{field.Invalid(path, arn, "has a path, and CloudFormation accepts no path in the role of a capability: name a "+
			"role without one, such as "+strings.Replace(arn, name, name[strings.LastIndex(name, "/")+1:], 1))}
	case s != nil && !s.isOwn(arn):
		return field.ErrorList{field.Invalid(path, arn, fmt.Sprintf("is a role of another account, and EKS accepts roles of the cluster's "+
			"account only: name one of account %s", s.Account))}
	}
	return s.validateRole(path, arn)
}

// validateIdentityCenter returns an error if the cell does not allow an instance. Without settings it checks nothing.
func (s *CellSettings) validateIdentityCenter(path *field.Path, arn string) field.ErrorList {
	switch {
	case s == nil || len(formatNamed("identity-center").Wrong(arn)) > 0 || arn == s.IdentityCenter:
		return nil
	case s.IdentityCenter == "":
		return field.ErrorList{field.Forbidden(path, "the cell allows no instance of IAM Identity Center: the platform team sets identityCenter "+
			askPlatformTeam)}
	}
	return field.ErrorList{field.Invalid(path, arn, fmt.Sprintf("the cell allows the instance %s: name it, or the platform team changes "+
		"identityCenter %s", s.IdentityCenter, askPlatformTeam))}
}
