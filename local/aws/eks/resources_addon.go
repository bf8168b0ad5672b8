package eks

// The CloudFormation resource types of add-ons and pod identity associations.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
)

type addonProvider struct{ s *Service }

func (p addonProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"ClusterName": resource.Replaces, "AddonName": resource.Replaces,
			"AddonVersion": resource.InPlace, "ServiceAccountRoleArn": resource.InPlace, "ResolveConflicts": resource.InPlace,
			"ConfigurationValues":     resource.InPlace,
			"PodIdentityAssociations": resource.InPlace, "PreserveOnDelete": resource.InPlace, "Tags": resource.InPlace,
		},
		Required:   []string{"ClusterName", "AddonName"},
		Attributes: []string{"Arn"},
	}
}

type addonProperties struct {
	ClusterName, AddonName, AddonVersion, ServiceAccountRoleArn, ResolveConflicts, ConfigurationValues string
	PodIdentityAssociations                                                                            []AddonPodIdentity
	PreserveOnDelete                                                                                   bool
	Tags                                                                                               []resource.Tag
}

func splitAddonID(id string) AddonInput {
	cluster, name, _ := strings.Cut(id, "|")
	return AddonInput{ClusterName: cluster, AddonName: name}
}

func (p addonProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in addonProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	_, err := p.s.CreateAddon(ctx, r.Caller, CreateAddonInput{
		ClusterName: in.ClusterName, AddonName: in.AddonName, AddonVersion: in.AddonVersion, ServiceAccountRoleArn: in.ServiceAccountRoleArn,
		ResolveConflicts: in.ResolveConflicts, ConfigurationValues: in.ConfigurationValues, Tags: tagging.Merge(r.Tags, in.Tags),
		PodIdentityAssociations: in.PodIdentityAssociations,
	})
	if err != nil {
		return resource.Result{}, err
	}
	return p.stable(ctx, r, in.ClusterName+"|"+in.AddonName)
}

// stable waits until an add-on is ACTIVE. Any other end is an error with the add-on's issues.
func (p addonProvider) stable(ctx context.Context, r resource.Request, id string) (resource.Result, error) {
	result := resource.Result{PhysicalID: id}
	name := splitAddonID(id)
	if _, err := p.s.DescribeAddon(ctx, r.Caller, name); err != nil {
		return result, err
	}
	err := p.s.wait(ctx, func() (bool, error) {
		c, err := p.s.find(name.ClusterName)
		if err != nil {
			return false, err
		}
		a, ok := c.addons[name.AddonName]
		if !ok {
			return false, notFound("No addon: %s found in cluster: %s", name.AddonName, name.ClusterName)
		}
		result.Attributes = map[string]any{"Arn": a.AddonARN}
		switch a.Status {
		case creating, updating:
			return false, nil
		case active:
			return true, nil
		}
		var issues []string
		for _, i := range a.Health.Issues {
			issues = append(issues, fmt.Sprintf("%s: %s (%s)", i.Code, i.Message, strings.Join(i.ResourceIDs, ", ")))
		}
		return false, fmt.Errorf("Add-on %s is %s: %s", a.AddonName, a.Status, strings.Join(issues, "; "))
	})
	return result, err
}

func (p addonProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in, was addonProperties
	if err := errors.Join(resource.Decode(r.Properties, &in), resource.Decode(r.Old, &was)); err != nil {
		return resource.Result{}, err
	}
	change := UpdateAddonInput{
		AddonInput: splitAddonID(r.PhysicalID), AddonVersion: in.AddonVersion, ServiceAccountRoleArn: in.ServiceAccountRoleArn,
		ResolveConflicts: in.ResolveConflicts,
	}
	if in.ConfigurationValues != was.ConfigurationValues {
		change.ConfigurationValues = &in.ConfigurationValues
	}
	if join(in.PodIdentityAssociations) != join(was.PodIdentityAssociations) {
		change.PodIdentityAssociations = &in.PodIdentityAssociations
	}
	if in.AddonVersion != was.AddonVersion || in.ServiceAccountRoleArn != was.ServiceAccountRoleArn || change.ConfigurationValues != nil ||
		change.PodIdentityAssociations != nil {
		if _, err := p.s.UpdateAddon(ctx, r.Caller, change); err != nil {
			return resource.Result{}, err
		}
	}
	result, err := p.stable(ctx, r, r.PhysicalID)
	if err != nil {
		return result, err
	}
	return result, p.s.changeTags(ctx, r.Caller, result.Attributes["Arn"].(string), tagging.Merge(r.Tags, in.Tags))
}

func (p addonProvider) Delete(ctx context.Context, r resource.Request) error {
	preserve := r.Properties["PreserveOnDelete"] == true
	id := splitAddonID(r.PhysicalID)
	if _, err := p.s.DeleteAddon(ctx, r.Caller, DeleteAddonInput{id, preserve}); err != nil {
		return ignoreNotFound(err)
	}
	return p.s.wait(ctx, func() (bool, error) {
		c, err := p.s.find(id.ClusterName)
		return err != nil || c.addons[id.AddonName] == nil, nil
	})
}

type podIdentityProvider struct{ s *Service }

func (p podIdentityProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"ClusterName": resource.Replaces, "Namespace": resource.Replaces, "ServiceAccount": resource.Replaces,
			"RoleArn": resource.InPlace, "TargetRoleArn": resource.InPlace, "DisableSessionTags": resource.InPlace, "Tags": resource.InPlace,
		},
		Required:   []string{"ClusterName", "Namespace", "RoleArn", "ServiceAccount"},
		Attributes: []string{"AssociationArn", "AssociationId", "ExternalId"},
	}
}

type podIdentityProperties struct {
	ClusterName, Namespace, ServiceAccount, RoleArn, TargetRoleArn string
	DisableSessionTags                                             bool
	Tags                                                           []resource.Tag
}

// splitAssociationARN returns the cluster and the ID of arn:…:podidentityassociation/<cluster>/<id>.
func splitAssociationARN(arn string) PodIdentityInput {
	parts := strings.Split(arn, "/")
	if len(parts) != 3 {
		return PodIdentityInput{}
	}
	return PodIdentityInput{ClusterName: parts[1], AssociationID: parts[2]}
}

func podIdentityResult(a *PodIdentityAssociation) resource.Result {
	return resource.Result{
		PhysicalID: a.AssociationARN, Attributes: map[string]any{
			"AssociationArn": a.AssociationARN, "AssociationId": a.AssociationID, "ExternalId": a.ExternalID,
		},
	}
}

func (p podIdentityProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in podIdentityProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	out, err := p.s.CreatePodIdentityAssociation(ctx, r.Caller, CreatePodIdentityAssociationInput{
		ClusterName: in.ClusterName, Namespace: in.Namespace, ServiceAccount: in.ServiceAccount, RoleArn: in.RoleArn,
		TargetRoleArn: in.TargetRoleArn, DisableSessionTags: in.DisableSessionTags, Tags: tagging.Merge(r.Tags, in.Tags),
	})
	if err != nil {
		return resource.Result{}, err
	}
	return p.read(ctx, r, out.Association.AssociationARN)
}

// read describes the association, as the handler of the resource type does after it made or changed one: its schema lists the permission.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-podidentityassociation.html
func (p podIdentityProvider) read(ctx context.Context, r resource.Request, arn string) (resource.Result, error) {
	out, err := p.s.DescribePodIdentityAssociation(ctx, r.Caller, splitAssociationARN(arn))
	if err != nil {
		return resource.Result{}, err
	}
	return podIdentityResult(out.Association), nil
}

func (p podIdentityProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in podIdentityProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	if _, err := p.s.UpdatePodIdentityAssociation(ctx, r.Caller, UpdatePodIdentityAssociationInput{
		PodIdentityInput: splitAssociationARN(r.PhysicalID), RoleArn: in.RoleArn, TargetRoleArn: &in.TargetRoleArn,
		DisableSessionTags: &in.DisableSessionTags,
	}); err != nil {
		return resource.Result{}, err
	}
	if err := p.s.changeTags(ctx, r.Caller, r.PhysicalID, tagging.Merge(r.Tags, in.Tags)); err != nil {
		return resource.Result{}, err
	}
	return p.read(ctx, r, r.PhysicalID)
}

func (p podIdentityProvider) Delete(ctx context.Context, r resource.Request) error {
	_, err := p.s.DeletePodIdentityAssociation(ctx, r.Caller, splitAssociationARN(r.PhysicalID))
	return ignoreNotFound(err)
}
