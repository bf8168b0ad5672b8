package cli

// Whom a cluster lets look into it. Dry runs look by the caller's own name, and drover by its roles': that people are
// refused says nothing of what drover would find.

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/survey"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/preflight/collect"
)

// viewPolicy is the access policy of EKS with which everything that dry runs look at may be read.
// https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
const viewPolicy = "AmazonEKSAdminViewPolicy"

// unseen ends a dry run that could not look at everything: nothing blocks as far as it looked, and nothing says that all is well.
type unseen struct{ text string }

func (u *unseen) Error() string { return u.text }

func (u *unseen) ExitCode() int { return exitFindings }

// mayNotLook says whether an error is that a cluster does not let the caller look: it has no access entry, or one that does not allow that.
func mayNotLook(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// asCaller surveys clusters by the caller's own name. why is what a cluster said that refused.
type asCaller struct {
	clusters *kube.Clusters
	why      error
}

func (a *asCaller) Survey(ctx context.Context, cluster string) (preflight.Survey, error) {
	found, err := survey.New(a.clusters).Survey(ctx, cluster)
	if mayNotLook(err) {
		a.why = err
		return preflight.Survey{}, collect.ErrForbidden
	}
	return found, err
}

// refusal says that a cluster refused the caller, and what to do: with the caller's own name in it, ready to be pasted into its spec.
func refusal(ctx context.Context, c *Cell, cluster string, why error) (*unseen, error) {
	identity, err := sts.NewFromConfig(c.cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, fmt.Errorf("asking AWS who you are: %w", err)
	}
	parsed, err := arn.Parse(aws.ToString(identity.Arn))
	if err != nil {
		return nil, err
	}
	said := fmt.Sprintf("not everything could be looked at: cluster %s does not let you see its nodes, pods and disruption budgets "+
		"(%v). You are %s. "+
		"It keeps drover from nothing, which looks by roles of its own.\n", cluster, why, parsed)
	principal, hint := principalOf(parsed, func(role string) (string, error) {
		out, err := iam.NewFromConfig(c.cfg).GetRole(ctx, &iam.GetRoleInput{RoleName: &role})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.Role.Arn), nil
	})
	if principal == "" {
		return &unseen{said + hint}, nil
	}
	said += "Give yourself an access entry in its spec, upload that and look again; if you have one there, give it the policy:\n\n"
	return &unseen{strings.TrimSuffix(said+accessEntry(principal)+hint, "\n")}, nil
}

// principalOf is the IAM principal that an access entry names for who calls as caller; "" when there can be none, and
// why. EKS takes users and roles, not sessions of a role, and a role's ARN with its path. That of a session has no
// path: lookUp asks IAM for it, and the hint says so where it may not.
// https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
func principalOf(caller arn.ARN, lookUp func(role string) (string, error)) (principal, hint string) {
	kind, rest, _ := strings.Cut(caller.Resource, "/")
	switch {
	case caller.Service == "iam" && kind == "user":
		return caller.String(), ""
	case caller.Service == "sts" && kind == "assumed-role":
		role, _, _ := strings.Cut(rest, "/")
		found, err := lookUp(role)
		if err == nil {
			return found, ""
		}
		return fmt.Sprintf("arn:%s:iam::%s:role/%s", caller.Partition, caller.AccountID, role),
			fmt.Sprintf("\nEKS wants the role's path in it, as in role/PATH/%s, if it has one. AWS did not tell you (%v): "+
				"`aws iam get-role --role-name %s` tells who may ask.", role, err, role)
	}
	return "", "EKS lets users and roles in, and neither the root user nor federated ones: sign in as a user, or assume a role, and try again."
}

// accessEntry with which a principal may look, as it is written in a cluster's spec.
func accessEntry(principal string) string {
	return fmt.Sprintf(`spec:
  controlPlane:
    access:
      - principalARN: %s
        policies:
          - name: %s
`, principal, viewPolicy)
}

// AccessLine gives a principal the access entry that dry runs need, as the last line of a spec that has no controlPlane.
func AccessLine(principal string) string {
	return fmt.Sprintf("  controlPlane: {access: [{principalARN: %q, policies: [{name: %s}]}]}", principal, viewPolicy)
}
