package eks

// The authenticator. API servers call it as a webhook to authenticate a bearer token. The token is a presigned call to STS. The
// authenticator looks up the principal that signed it among the cluster's access entries.
// https://docs.aws.amazon.com/eks/latest/userguide/cluster-auth.html
// https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/drover-run/drover/local/aws/iam"
)

const tokenPrefix = "k8s-aws-v1."

// serveTokenReview handles POST /<cluster>.
func (s *Service) serveTokenReview(w http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&review); err != nil || r.Method != http.MethodPost {
		http.Error(w, "a TokenReview is needed", http.StatusBadRequest)
		return
	}
	name := path.Base(r.URL.Path)
	user, err := s.authenticate(r.Context(), name, review.Spec.Token)
	review.Status = authenticationv1.TokenReviewStatus{}
	if err != nil {
		s.config.Log.Info("access denied", "cluster", name, "error", err)
		review.Status.Error = err.Error()
	} else {
		review.Status.Authenticated, review.Status.User, review.Status.Audiences = true, user, review.Spec.Audiences
	}
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	review.Spec = authenticationv1.TokenReviewSpec{}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// Authenticate verifies a bearer token as the API server of a cluster does. It returns why the cluster refuses it, or nil.
func (s *Service) Authenticate(ctx context.Context, name, token string) error {
	_, err := s.authenticate(ctx, name, token)
	return err
}

// authenticate returns the Kubernetes user of a token.
func (s *Service) authenticate(ctx context.Context, name, token string) (authenticationv1.UserInfo, error) {
	none := authenticationv1.UserInfo{}
	encoded, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return none, fmt.Errorf("the token does not begin with %s", tokenPrefix)
	}
	url, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil {
		return none, fmt.Errorf("decode the token: %w", err)
	}
	caller, err := s.config.Identities.VerifyPresigned(ctx, string(url), name)
	if err != nil {
		return none, err
	}
	user, bindings, client, err := s.identify(name, caller)
	if err != nil {
		return none, err
	}
	return user, s.bindNamespaces(ctx, client, bindings)
}

// scopedPolicy is a policy for namespaces, which may be patterns.
type scopedPolicy struct {
	policy, role string
	namespaces   []string
}

// identify finds the access entry of a caller, and returns its user name, its groups, and its policies that are bound to namespaces.
func (s *Service) identify(name string, caller iam.Caller) (authenticationv1.UserInfo, []scopedPolicy, dynamic.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	none := authenticationv1.UserInfo{}
	c, err := s.find(name)
	if err != nil {
		return none, nil, nil, err
	}
	principal := caller.RoleARN()
	if principal == "" {
		principal = caller.ARN()
	}
	e := c.entries[principal]
	if e == nil {
		return none, nil, nil, fmt.Errorf("%s has no access entry in cluster %s", principal, name)
	}
	if id := strings.Split(caller.UserID(), ":")[0]; e.roleID != "" && e.roleID != id {
		return none, nil, nil, fmt.Errorf("the access entry of %s in cluster %s is for %s, and the caller is %s: the role was recreated",
			principal, name, e.roleID, id)
	}
	session := caller.SessionName()
	username := strings.NewReplacer("{{SessionName}}", strings.ReplaceAll(session, "@", "-"), "{{SessionNameRaw}}", session, "{{AccountID}}",
		caller.Account()).Replace(e.Username)
	if strings.Contains(username, "{{EC2PrivateDNSName}}") {
		// The session name of a node is its instance ID.
		node, ok := c.nodes[session]
		if !ok {
			return none, nil, nil, fmt.Errorf("no node of cluster %s is the instance %q", name, session)
		}
		username = strings.ReplaceAll(username, "{{EC2PrivateDNSName}}", node)
	}
	user := authenticationv1.UserInfo{
		Username: username, UID: "aws-iam-authenticator:" + caller.Account() + ":" + strings.Split(caller.UserID(), ":")[0],
		Groups: append([]string{}, e.KubernetesGroups...),
		Extra: map[string]authenticationv1.ExtraValue{
			"arn": {caller.ARN()}, "canonicalArn": {principal}, "principalId": {strings.Split(caller.UserID(), ":")[0]}, "sessionName": {session},
		},
	}
	var bindings []scopedPolicy
	for arn, p := range e.policies {
		policy := strings.TrimPrefix(arn, s.policyARN(""))
		if p.AccessScope.Type == "cluster" {
			user.Groups = append(user.Groups, policyGroup(policy, ""))
			continue
		}
		for _, namespace := range p.AccessScope.Namespaces {
			user.Groups = append(user.Groups, policyGroup(policy, namespace))
		}
		bindings = append(bindings, scopedPolicy{policy, policyRoles[policy], p.AccessScope.Namespaces})
	}
	return user, bindings, c.admin, nil
}

// bindNamespaces binds the groups of policies for namespaces in the existing namespaces.
func (s *Service) bindNamespaces(ctx context.Context, client dynamic.Interface, bindings []scopedPolicy) error {
	if len(bindings) == 0 {
		return nil
	}
	namespaces, err := client.Resource(namespaceResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing namespaces: %w", err)
	}
	for _, b := range bindings {
		for _, pattern := range b.namespaces {
			for _, n := range namespaces.Items {
				if ok, err := path.Match(pattern, n.GetName()); err != nil || !ok {
					continue
				}
				group := policyGroup(b.policy, pattern)
				object := binding("RoleBinding", n.GetName(), strings.ReplaceAll(group, "*", "any"), b.role, group)
				if err := ensure(ctx, client, roleBindingResource, object); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
