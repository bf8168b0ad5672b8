package eks

// EKS Auth: the exchange of a pod's service account token for credentials of a role.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_auth_AssumeRoleForPodIdentity.html

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// podAudience is the audience of the tokens that pods exchange.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html
const podAudience = "pods.eks.amazonaws.com"

var tokenReviewResource = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}

// AuthWire returns the API of EKS Auth for the endpoint.
func (s *Service) AuthWire() *wire.Service {
	return &wire.Service{
		Name: "eks-auth", Protocol: wire.RESTJSON, Version: "2023-11-26",
		Routes:     map[string]string{"POST /clusters/{clusterName}/assume-role-for-pod-identity": "AssumeRoleForPodIdentity"},
		Operations: map[string]wire.Operation{"AssumeRoleForPodIdentity": operation(s.AssumeRoleForPodIdentity)},
	}
}

// AssumeRoleForPodIdentityInput of the API.
type AssumeRoleForPodIdentityInput struct{ ClusterName, Token string }

// AssumeRoleForPodIdentityOutput of the API.
type AssumeRoleForPodIdentityOutput struct {
	Subject struct {
		Namespace      string `json:"namespace"`
		ServiceAccount string `json:"serviceAccount"`
	} `json:"subject"`
	Audience    string `json:"audience"`
	Association struct {
		ARN string `json:"associationArn"`
		ID  string `json:"associationId"`
	} `json:"podIdentityAssociation"`
	AssumedRoleUser struct {
		ARN string `json:"arn"`
		ID  string `json:"assumeRoleId"`
	} `json:"assumedRoleUser"`
	Credentials struct {
		AccessKeyID     string    `json:"accessKeyId"`
		SecretAccessKey string    `json:"secretAccessKey"`
		SessionToken    string    `json:"sessionToken"`
		Expiration      time.Time `json:"expiration"`
	} `json:"credentials"`
}

// AssumeRoleForPodIdentity exchanges a token of a pod for credentials of the role of its service account. The API server of the cluster
// verifies the token.
func (s *Service) AssumeRoleForPodIdentity(ctx context.Context, caller iam.Caller, in AssumeRoleForPodIdentityInput) (
	*AssumeRoleForPodIdentityOutput, error) {
	if err := caller.Authorize("eks-auth:AssumeRoleForPodIdentity", s.clusterARN(in.ClusterName), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c, err := s.findActive(in.ClusterName)
	var plane ControlPlane
	if err == nil {
		plane = c.plane
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	user, err := reviewToken(ctx, plane, in.Token)
	if err != nil {
		return nil, err
	}
	out := &AssumeRoleForPodIdentityOutput{Audience: podAudience}
	parts := strings.Split(user.Username, ":")
	pod := extra(user, "authentication.kubernetes.io/pod-name")
	if len(parts) != 4 || parts[1] != "serviceaccount" || pod == "" {
		return nil, authError("InvalidTokenException", "the token is not of a service account of a pod")
	}
	out.Subject.Namespace, out.Subject.ServiceAccount = parts[2], parts[3]
	association, err := s.associationOf(c, parts[2], parts[3])
	if err != nil {
		return nil, err
	}
	out.Association.ARN, out.Association.ID = association.AssociationARN, association.AssociationID
	tags := map[string]string{
		"eks-cluster-arn": s.clusterARN(c.Name), "eks-cluster-name": c.Name, "kubernetes-namespace": parts[2],
		"kubernetes-service-account": parts[3], "kubernetes-pod-name": pod,
		"kubernetes-pod-uid": extra(user, "authentication.kubernetes.io/pod-uid"),
	}
	if association.DisableSessionTags {
		tags = nil
	}
	assumed, credentials, err := s.config.Identities.AssumeRoleForPod(association.RoleArn, sessionName(c.Name, pod), tags)
	if err != nil {
		return nil, authError("AccessDeniedException", "EKS does not have permissions to assume the associated role: %v", err)
	}
	if target := association.TargetRoleArn; target != "" {
		keys := map[string]string{"sts:ExternalId": association.ExternalID, "sts:RoleSessionName": sessionName(c.Name, pod)}
		assumed, credentials, err = s.config.Identities.AssumeRole(assumed, target, keys["sts:RoleSessionName"], time.Hour, keys, nil)
		if err != nil {
			return nil, authError("AccessDeniedException", "EKS does not have permissions to assume the target role: %v", err)
		}
	}
	out.AssumedRoleUser.ARN, out.AssumedRoleUser.ID = assumed.ARN(), assumed.UserID()
	out.Credentials.AccessKeyID, out.Credentials.SecretAccessKey = credentials.AccessKeyID, credentials.SecretAccessKey
	out.Credentials.SessionToken, out.Credentials.Expiration = credentials.SessionToken, credentials.Expires
	return out, nil
}

func authError(code, format string, args ...any) error {
	return &wire.Error{Code: code, Message: fmt.Sprintf(format, args...), Status: 400}
}

// reviewToken has the API server verify a token for the audience of pod identity.
func reviewToken(ctx context.Context, plane ControlPlane, token string) (user authenticationv1.UserInfo, err error) {
	client, err := plane.Client("", nil)
	if err != nil {
		return user, err
	}
	created, err := client.Resource(tokenReviewResource).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]any{"token": token, "audiences": []any{podAudience}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return user, fmt.Errorf("asking the API server about a token: %w", err)
	}
	var review authenticationv1.TokenReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(created.Object, &review); err != nil {
		return user, err
	}
	switch {
	case strings.Contains(review.Status.Error, "expired"):
		return user, authError("ExpiredTokenException", "The token in the request is expired")
	case !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, podAudience):
		return user, authError("InvalidTokenException", "The token in the request is invalid: %s", review.Status.Error)
	}
	return review.Status.User, nil
}

// extra returns a value that the API server knows about the user of a token, or "".
func extra(user authenticationv1.UserInfo, key string) string {
	if values := user.Extra[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// associationOf returns the association of a service account.
func (s *Service) associationOf(c *cluster, namespace, account string) (*PodIdentityAssociation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range c.identities {
		if a.Namespace == namespace && a.ServiceAccount == account {
			return a.output().Association, nil
		}
	}
	return nil, notFound("No association found for service account %s in namespace %s of cluster %s", account, namespace, c.Name)
}

// sessionName returns the name of a pod's session, of at most 64 characters.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
func sessionName(cluster, pod string) string {
	const most, random = 64, 32
	name := "eks-" + cluster + "-" + pod
	return name[:min(len(name), most-random-1)] + "-" + randomHex(random/2)
}
