package eks

// Pod identity associations: the role of the pods of a service account.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-identities.html

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
)

// PodIdentityAssociation as the API describes it.
type PodIdentityAssociation struct {
	ClusterName        string            `json:"clusterName"`
	Namespace          string            `json:"namespace"`
	ServiceAccount     string            `json:"serviceAccount"`
	RoleArn            string            `json:"roleArn"`
	TargetRoleArn      string            `json:"targetRoleArn,omitempty"`
	ExternalID         string            `json:"externalId,omitempty"`
	AssociationARN     string            `json:"associationArn"`
	AssociationID      string            `json:"associationId"`
	Tags               map[string]string `json:"tags"`
	CreatedAt          time.Time         `json:"createdAt"`
	ModifiedAt         time.Time         `json:"modifiedAt"`
	OwnerARN           string            `json:"ownerArn,omitempty"`
	DisableSessionTags bool              `json:"disableSessionTags"`
}

// PodIdentityOutput of the operations that return an association.
type PodIdentityOutput struct {
	Association *PodIdentityAssociation `json:"association"`
}

func (a *PodIdentityAssociation) output() *PodIdentityOutput {
	c := *a
	c.Tags = cloneTags(a.Tags)
	return &PodIdentityOutput{&c}
}

// CreatePodIdentityAssociationInput of the API.
type CreatePodIdentityAssociationInput struct {
	ClusterName, Namespace, ServiceAccount, RoleArn, TargetRoleArn, ClientRequestToken string
	DisableSessionTags                                                                 bool
	Tags                                                                               map[string]string
}

// CreatePodIdentityAssociation of the API.
func (s *Service) CreatePodIdentityAssociation(_ context.Context, caller iam.Caller,
	in CreatePodIdentityAssociationInput) (*PodIdentityOutput, error) {
	if err := s.authorizePodIdentity(caller, in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findActive(in.ClusterName)
	if err != nil {
		return nil, err
	}
	a, err := s.newPodIdentity(c, in, "")
	if err != nil {
		return nil, err
	}
	return a.output(), nil
}

func (s *Service) authorizePodIdentity(caller iam.Caller, in CreatePodIdentityAssociationInput) error {
	if err := caller.Authorize("eks:CreatePodIdentityAssociation", s.clusterARN(in.ClusterName), nil); err != nil {
		return err
	}
	if len(in.Tags) > 0 {
		if err := caller.Authorize("eks:TagResource", s.arn("podidentityassociation/"+in.ClusterName+"/*"), nil); err != nil {
			return err
		}
	}
	return s.checkPodRole(caller, in.RoleArn)
}

// checkPodRole checks that the caller may read and pass the role, and that pods may assume it.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func (s *Service) checkPodRole(caller iam.Caller, role string) error {
	if err := caller.Authorize("iam:GetRole", role, nil); err != nil {
		return err
	}
	if err := caller.PassRole(role, "pods.eks.amazonaws.com"); err != nil {
		return err
	}
	if _, _, err := s.config.Identities.AssumeRoleAs(role, "eks-pod-identity", "pods.eks.amazonaws.com"); err != nil {
		return invalid("Trust policy of role %s must let pods.eks.amazonaws.com assume it, and the role must exist", role)
	}
	return nil
}

// newPodIdentity creates an association. The caller holds s.mu.
func (s *Service) newPodIdentity(c *cluster, in CreatePodIdentityAssociationInput, owner string) (*PodIdentityAssociation, error) {
	if in.Namespace == "" || in.ServiceAccount == "" {
		return nil, invalid("namespace and serviceAccount are required")
	}
	for _, a := range c.identities {
		if a.Namespace == in.Namespace && a.ServiceAccount == in.ServiceAccount {
			return nil, inUse("Association already exists: %s", a.AssociationID)
		}
	}
	id, now := "a-"+randomHex(9)[:17], s.config.Clock.Now()
	a := &PodIdentityAssociation{
		ClusterName: c.Name, Namespace: in.Namespace, ServiceAccount: in.ServiceAccount, RoleArn: in.RoleArn, AssociationID: id,
		AssociationARN: s.arn(fmt.Sprintf("podidentityassociation/%s/%s", c.Name, id)), Tags: cloneTags(in.Tags), CreatedAt: now, ModifiedAt: now,
		OwnerARN: owner, DisableSessionTags: in.DisableSessionTags,
	}
	a.setTarget(in.TargetRoleArn)
	c.identities[id] = a
	return a, nil
}

// setTarget sets the role that EKS assumes through the role of the association. Its trust policy may require the external ID.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_PodIdentityAssociation.html
func (a *PodIdentityAssociation) setTarget(role string) {
	if a.TargetRoleArn, a.ExternalID = role, ""; role != "" {
		a.ExternalID = a.AssociationARN
	}
}

// PodIdentityInput names an association.
type PodIdentityInput struct{ ClusterName, AssociationID string }

// podIdentity authorizes an action on an association and finds the association. The caller holds s.mu.
func (s *Service) podIdentity(caller iam.Caller, action string, in PodIdentityInput) (*cluster, *PodIdentityAssociation, error) {
	if err := caller.Authorize("eks:"+action, s.arn(fmt.Sprintf("podidentityassociation/%s/%s", in.ClusterName, in.AssociationID)),
		nil); err != nil {
		return nil, nil, err
	}
	c, err := s.find(in.ClusterName)
	if err != nil {
		return nil, nil, err
	}
	a, ok := c.identities[in.AssociationID]
	if !ok {
		return nil, nil, notFound("Association not found: %s", in.AssociationID)
	}
	return c, a, nil
}

// DescribePodIdentityAssociation of the API.
func (s *Service) DescribePodIdentityAssociation(_ context.Context, caller iam.Caller, in PodIdentityInput) (*PodIdentityOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, a, err := s.podIdentity(caller, "DescribePodIdentityAssociation", in)
	if err != nil {
		return nil, err
	}
	return a.output(), nil
}

// UpdatePodIdentityAssociationInput of the API.
type UpdatePodIdentityAssociationInput struct {
	PodIdentityInput
	RoleArn, ClientRequestToken string
	TargetRoleArn               *string
	DisableSessionTags          *bool
}

// UpdatePodIdentityAssociation of the API.
func (s *Service) UpdatePodIdentityAssociation(_ context.Context, caller iam.Caller,
	in UpdatePodIdentityAssociationInput) (*PodIdentityOutput, error) {
	if in.RoleArn != "" {
		if err := s.checkPodRole(caller, in.RoleArn); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, a, err := s.podIdentity(caller, "UpdatePodIdentityAssociation", in.PodIdentityInput)
	if err != nil {
		return nil, err
	}
	if a.OwnerARN != "" {
		return nil, invalidRequest("The association %s is managed by its add-on %s", a.AssociationID, a.OwnerARN)
	}
	if in.RoleArn != "" {
		a.RoleArn = in.RoleArn
	}
	if in.TargetRoleArn != nil {
		a.setTarget(*in.TargetRoleArn)
	}
	if in.DisableSessionTags != nil {
		a.DisableSessionTags = *in.DisableSessionTags
	}
	a.ModifiedAt = s.config.Clock.Now()
	return a.output(), nil
}

// DeletePodIdentityAssociation of the API.
func (s *Service) DeletePodIdentityAssociation(_ context.Context, caller iam.Caller, in PodIdentityInput) (*PodIdentityOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, a, err := s.podIdentity(caller, "DeletePodIdentityAssociation", in)
	if err != nil {
		return nil, err
	}
	delete(c.identities, a.AssociationID)
	return a.output(), nil
}

// ListPodIdentityAssociationsInput of the API.
type ListPodIdentityAssociationsInput struct {
	ClusterName, Namespace, ServiceAccount string
	Page
}

// PodIdentitySummary is an association in a list.
type PodIdentitySummary struct {
	ClusterName    string `json:"clusterName"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	AssociationARN string `json:"associationArn"`
	AssociationID  string `json:"associationId"`
	OwnerARN       string `json:"ownerArn,omitempty"`
}

// ListPodIdentityAssociationsOutput of the API.
type ListPodIdentityAssociationsOutput struct {
	Associations []PodIdentitySummary `json:"associations"`
	NextToken    *string              `json:"nextToken"`
}

// ListPodIdentityAssociations of the API.
func (s *Service) ListPodIdentityAssociations(_ context.Context, caller iam.Caller,
	in ListPodIdentityAssociationsInput) (*ListPodIdentityAssociationsOutput, error) {
	if err := caller.Authorize("eks:ListPodIdentityAssociations", s.clusterARN(in.ClusterName), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var ids []string
	for id, a := range c.identities {
		if (in.Namespace == "" || in.Namespace == a.Namespace) && (in.ServiceAccount == "" || in.ServiceAccount == a.ServiceAccount) {
			ids = append(ids, id)
		}
	}
	names, next := in.paginate(ids)
	out := &ListPodIdentityAssociationsOutput{[]PodIdentitySummary{}, next}
	for _, id := range names {
		a := c.identities[id]
		out.Associations = append(out.Associations, PodIdentitySummary{
			a.ClusterName, a.Namespace, a.ServiceAccount, a.AssociationARN, a.AssociationID, a.OwnerARN,
		})
	}
	return out, nil
}
