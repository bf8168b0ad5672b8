package plan

// Changes of EKS Capabilities. EKS keeps the Kubernetes objects of a capability that it deletes.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DeleteCapability.html

import (
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// replacedCapabilities refuses changes that would replace a capability: its type, its namespace, its instance of Identity Center, or
// another name for the same type.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-capability.html
func replacedCapabilities(old, now []api.Capability) (refusals []status.Reason) {
	refuse := func(field, before, after string) {
		refusals = append(refusals, status.Reason{
			Field: field, Old: before, New: after + " (EKS would replace the capability and keep its Kubernetes objects, which nothing manages: " +
				"remove the capability, and add the other one in a second edit)",
		})
	}
	for _, before := range old {
		at := "spec.capabilities[" + before.Name + "]"
		i := slices.IndexFunc(now, func(c api.Capability) bool { return c.Name == before.Name })
		if i < 0 {
			if renamed := slices.IndexFunc(now, func(c api.Capability) bool { return c.Type == before.Type }); renamed >= 0 {
				refuse(at+".name", before.Name, now[renamed].Name)
			}
			continue
		}
		after := now[i]
		if after.Type != before.Type {
			refuse(at+".type", string(before.Type), string(after.Type))
			continue
		}
		if before.ArgoCD == nil || after.ArgoCD == nil {
			continue
		}
		if before.ArgoCD.Namespace != after.ArgoCD.Namespace {
			refuse(at+".argoCD.namespace", before.ArgoCD.Namespace, after.ArgoCD.Namespace)
		}
		if before.ArgoCD.IdentityCenterARN != after.ArgoCD.IdentityCenterARN {
			refuse(at+".argoCD.identityCenterARN", before.ArgoCD.IdentityCenterARN, after.ArgoCD.IdentityCenterARN)
		}
	}
	return refusals
}

// RemovedCapabilities returns the fields of the capabilities that a change removes.
func (c Change) RemovedCapabilities() (fields []string) {
	if c.Stack != names.Capabilities {
		return nil
	}
	for _, reason := range c.Reasons {
		field, isType := strings.CutSuffix(reason.Field, ".type")
		if isType && reason.New == "" || c.Operation == Delete {
			fields = append(fields, field)
		}
	}
	return fields
}
