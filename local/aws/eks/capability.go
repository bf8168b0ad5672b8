package eks

// EKS Capabilities: controllers that EKS runs outside the nodes. A capability is stored with its states. No controller runs, and no access
// entry of its role exists.
// https://docs.aws.amazon.com/eks/latest/userguide/capabilities.html

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
)

// capabilityWork is how long EKS creates, changes or deletes a capability.
const capabilityWork = 3 * time.Minute

// capabilityService is the service that assumes the roles of capabilities.
// https://docs.aws.amazon.com/eks/latest/userguide/capability-role.html
const capabilityService = "capabilities.eks.amazonaws.com"

// capabilityRole is the pattern of RoleArn in the schema of the resource type. It allows no path.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-capability.html
var capabilityRole = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]+:role/[a-zA-Z0-9+=,.@_-]+$`)

// capabilityTypes are the values of Type.
var capabilityTypes = map[string]bool{"ACK": true, "ARGOCD": true, "KRO": true}

// Capability of a cluster.
type Capability struct {
	ClusterName, Name, Type, RoleARN, Status, ARN string
	ArgoCD                                        *ArgoCD
	Tags                                          map[string]string
}

// ArgoCD is the configuration of an Argo CD capability, as its template has it.
type ArgoCD struct {
	Namespace        string
	AwsIdc           struct{ IdcInstanceArn, IdcRegion string }
	RbacRoleMappings []struct {
		Role       string
		Identities []struct{ Id, Type string }
	}
}

// Capability returns a capability of a cluster, or nil.
func (s *Service) Capability(cluster, name string) *Capability {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(cluster)
	if err != nil || c.capabilities[name] == nil {
		return nil
	}
	found := *c.capabilities[name]
	return &found
}

// capabilityByARN finds a capability by arn:…:capability/<cluster>/<type>/<name>/<id>. The caller holds s.mu.
func (s *Service) capabilityByARN(arn string) *Capability {
	for _, c := range s.clusters {
		for _, found := range c.capabilities {
			if found.ARN == arn {
				return found
			}
		}
	}
	return nil
}

// checkCapabilityRole checks that the caller may read and pass the role, and that EKS may assume it. The service authorization reference
// lists eks.amazonaws.com as the service that gets the role. Its trust policy names another one, so both are required.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func (s *Service) checkCapabilityRole(caller iam.Caller, role string) error {
	err := errors.Join(caller.Authorize("iam:GetRole", role, nil), caller.PassRole(role, "eks.amazonaws.com"),
		caller.PassRole(role, capabilityService))
	if err != nil {
		return err
	}
	if _, _, err := s.config.Identities.AssumeRoleAs(role, "eks-capability", capabilityService); err != nil {
		return invalid("The trust policy of role %s must let %s assume it, and the role must exist", role, capabilityService)
	}
	return nil
}

// authorizeAll authorizes actions on a resource.
func authorizeAll(caller iam.Caller, on string, actions ...string) error {
	for _, action := range actions {
		if err := caller.Authorize(action, on, nil); err != nil {
			return err
		}
	}
	return nil
}

// applicationOf returns the ARN of an application in an instance of IAM Identity Center.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsiamidentitycenter.html
func (s *Service) applicationOf(instance string) string {
	_, id, _ := strings.Cut(instance, ":instance/")
	return "arn:" + s.config.Partition + ":sso::" + s.config.Account + ":application/" + id + "/apl-0123456789abcdef"
}

// authorizeArgoCD checks what EKS does in IAM Identity Center with the permissions of its caller, as the schema of the resource type lists
// it. Identity Center itself is not simulated.
func (s *Service) authorizeArgoCD(caller iam.Caller, a *ArgoCD) error {
	instance, application := a.AwsIdc.IdcInstanceArn, s.applicationOf(a.AwsIdc.IdcInstanceArn)
	provider := "arn:" + s.config.Partition + ":sso::aws:applicationProvider/eks"
	return errors.Join(
		authorizeAll(caller, instance, "sso:DescribeInstance", "sso:CreateApplication"),
		authorizeAll(caller, provider, "sso:CreateApplication"),
		authorizeAll(caller, application, "sso:CreateApplication", "sso:PutApplicationAccessScope", "sso:PutApplicationGrant",
			"sso:PutApplicationAuthenticationMethod", "sso:PutApplicationAssignmentConfiguration", "sso:CreateApplicationAssignment",
			"sso:ListApplicationAssignments"),
		authorizeAll(caller, "*", "sso:DescribeRegisteredRegions", "identitystore:ListGroups", "identitystore:ListUsers",
			"identitystore:DescribeGroup"),
	)
}

// createCapability adds a capability to a cluster. EKS allows one of each type.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCapability.html
func (s *Service) createCapability(caller iam.Caller, in Capability) (*Capability, error) {
	err := authorizeAll(caller, s.clusterARN(in.ClusterName), "eks:CreateCapability", "eks:CreateAccessEntry")
	in.ARN = s.arn("capability/" + in.ClusterName + "/" + strings.ToLower(in.Type) + "/" + in.Name + "/" + uuid())
	if err == nil && len(in.Tags) > 0 {
		err = caller.Authorize("eks:TagResource", in.ARN, nil)
	}
	if err == nil {
		err = s.checkCapabilityRole(caller, in.RoleARN)
	}
	if err == nil && in.ArgoCD != nil {
		err = s.authorizeArgoCD(caller, in.ArgoCD)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findActive(in.ClusterName)
	if err != nil {
		return nil, err
	}
	if (in.Type == "ARGOCD") != (in.ArgoCD != nil) || in.ArgoCD != nil && in.ArgoCD.AwsIdc.IdcInstanceArn == "" {
		return nil, invalid("configuration.argoCd with awsIdc is required for the capability type ARGOCD, and not allowed for others")
	}
	for _, other := range c.capabilities {
		if other.Name == in.Name || other.Type == in.Type {
			return nil, inUse("Capability %s of type %s already exists in cluster %s", other.Name, other.Type, in.ClusterName)
		}
	}
	if c.capabilities == nil {
		c.capabilities = map[string]*Capability{}
	}
	c.capabilities[in.Name] = &in
	s.settleCapability(&in, creating)
	return &in, nil
}

// settleCapability gives a capability a status until EKS has done its work. The caller holds s.mu.
func (s *Service) settleCapability(of *Capability, status string) {
	of.Status = status
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		if s.config.Clock.Work(ctx, capabilityWork) == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			of.Status = active
			s.changes.Announce()
		}
	})
}

type capabilityProvider struct{ s *Service }

// Schema lists Configuration as changed in place. Update refuses the parts of it that replace.
func (p capabilityProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"ClusterName": resource.Replaces, "CapabilityName": resource.Replaces, "Type": resource.Replaces,
			"RoleArn": resource.InPlace, "DeletePropagationPolicy": resource.InPlace, "Configuration": resource.InPlace, "Tags": resource.InPlace,
		},
		Required:   []string{"ClusterName", "CapabilityName", "Type", "RoleArn", "DeletePropagationPolicy"},
		Attributes: []string{"Arn", "Status"},
	}
}

type capabilityProperties struct {
	ClusterName, CapabilityName, Type, RoleArn, DeletePropagationPolicy string
	Configuration                                                       struct{ ArgoCd *ArgoCD }
	Tags                                                                []resource.Tag
}

// decodeCapability decodes properties, and checks them as CloudFormation does with the schema.
func decodeCapability(properties map[string]any) (in capabilityProperties, err error) {
	if err := resource.Decode(properties, &in); err != nil {
		return in, err
	}
	switch {
	case !capabilityTypes[in.Type]:
		return in, invalid("Model validation failed (#/Type: #: %s is not one of ARGOCD, ACK, KRO)", in.Type)
	case in.DeletePropagationPolicy != "RETAIN":
		return in, invalid("Model validation failed (#/DeletePropagationPolicy: %s is not RETAIN)", in.DeletePropagationPolicy)
	case !capabilityRole.MatchString(in.RoleArn):
		return in, invalid("Model validation failed (#/RoleArn: failed validation constraint for keyword [pattern]: %s)", in.RoleArn)
	}
	return in, nil
}

func (p capabilityProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	in, err := decodeCapability(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	made, err := p.s.createCapability(r.Caller, Capability{
		ClusterName: in.ClusterName, Name: in.CapabilityName, Type: in.Type, RoleARN: in.RoleArn, ArgoCD: in.Configuration.ArgoCd,
		Tags: tagging.Merge(r.Tags, in.Tags),
	})
	if err != nil {
		return resource.Result{}, err
	}
	return p.stable(ctx, r, made.ARN)
}

// stable waits until a capability is ACTIVE.
func (p capabilityProvider) stable(ctx context.Context, r resource.Request, arn string) (resource.Result, error) {
	result := resource.Result{PhysicalID: arn, Attributes: map[string]any{"Arn": arn, "Status": active}}
	if err := r.Caller.Authorize("eks:DescribeCapability", arn, nil); err != nil {
		return result, err
	}
	return result, p.s.wait(ctx, func() (bool, error) {
		found := p.s.capabilityByARN(arn)
		if found == nil {
			return false, notFound("Capability not found: %s", arn)
		}
		return found.Status == active, nil
	})
}

func (p capabilityProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	in, err := decodeCapability(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	var was capabilityProperties
	if err := resource.Decode(r.Old, &was); err != nil {
		return resource.Result{}, err
	}
	now, before := in.Configuration.ArgoCd, was.Configuration.ArgoCd
	if (now == nil) != (before == nil) || now != nil && (now.Namespace != before.Namespace || now.AwsIdc != before.AwsIdc) {
		return resource.Result{}, unsupportedError("a change of a capability's namespace or Identity Center, which replaces it")
	}
	changesConfiguration := !reflect.DeepEqual(now, before)
	if in.RoleArn != was.RoleArn || changesConfiguration {
		if err := p.change(r, in, changesConfiguration); err != nil {
			return resource.Result{}, err
		}
	}
	result, err := p.stable(ctx, r, r.PhysicalID)
	if err != nil {
		return result, err
	}
	return result, p.s.changeTags(ctx, r.Caller, r.PhysicalID, tagging.Merge(r.Tags, in.Tags))
}

// change changes the role and the role mappings of a capability.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateCapability.html
func (p capabilityProvider) change(r resource.Request, in capabilityProperties, changesConfiguration bool) error {
	err := r.Caller.Authorize("eks:UpdateCapability", r.PhysicalID, nil)
	if err == nil {
		err = p.s.checkCapabilityRole(r.Caller, in.RoleArn)
	}
	if err == nil && changesConfiguration {
		err = authorizeAll(r.Caller, p.s.applicationOf(in.Configuration.ArgoCd.AwsIdc.IdcInstanceArn), "sso:ListApplicationAssignments",
			"sso:CreateApplicationAssignment", "sso:DeleteApplicationAssignment")
	}
	if err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	found := p.s.capabilityByARN(r.PhysicalID)
	if found == nil {
		return notFound("Capability not found: %s", r.PhysicalID)
	}
	if found.Status != active {
		return inUse("Capability %s is %s", found.Name, found.Status)
	}
	found.RoleARN, found.ArgoCD = in.RoleArn, in.Configuration.ArgoCd
	p.s.settleCapability(found, updating)
	return nil
}

func (p capabilityProvider) Delete(ctx context.Context, r resource.Request) error {
	p.s.mu.Lock()
	found := p.s.capabilityByARN(r.PhysicalID)
	p.s.mu.Unlock()
	if found == nil {
		return nil
	}
	err := authorizeAll(r.Caller, found.ARN, "eks:DeleteCapability", "eks:DescribeCapability")
	if err == nil && found.ArgoCD != nil {
		err = authorizeAll(r.Caller, p.s.applicationOf(found.ArgoCD.AwsIdc.IdcInstanceArn), "sso:DeleteApplicationAssignment",
			"sso:DeleteApplicationAccessScope", "sso:DeleteApplicationAuthenticationMethod", "sso:DeleteApplicationGrant", "sso:DeleteApplication")
	}
	if err != nil {
		return err
	}
	p.s.mu.Lock()
	found.Status = deleting
	p.s.changes.Announce()
	p.s.mu.Unlock()
	if err := p.s.config.Clock.Work(ctx, capabilityWork); err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if c, err := p.s.find(found.ClusterName); err == nil {
		delete(c.capabilities, found.Name)
		p.s.changes.Announce()
	}
	return nil
}
