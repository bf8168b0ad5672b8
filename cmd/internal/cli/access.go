package cli

// Access to a cluster's Kubernetes API. Dry runs read with the caller's identity; drover reads with its own roles. drover
// may therefore read a cluster that refuses the caller.

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/survey"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/preflight/collect"
)

// viewPolicy is the EKS access policy that allows a principal to read everything that dry runs read.
// https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
const viewPolicy = "AmazonEKSAdminViewPolicy"

// accessDenied ends a dry run that could not read everything. No check that it made blocks, but some checks are missing.
type accessDenied struct{ text string }

func (e *accessDenied) Error() string { return e.text }

func (e *accessDenied) ExitCode() int { return exitFindings }

// callerSurvey surveys clusters with the caller's identity. denied is the error of a cluster that refused the caller.
type callerSurvey struct {
	clusters *kube.Clusters
	denied   error
}

func (a *callerSurvey) Survey(ctx context.Context, cluster string) (preflight.Survey, error) {
	found, err := survey.New(a.clusters).Survey(ctx, cluster)
	if kube.IsDenied(err) {
		a.denied = err
		return preflight.Survey{}, collect.ErrForbidden
	}
	return found, err
}

// explainDenied returns the error for a cluster that refused the caller. It contains the access entry that the caller needs,
// ready to paste into the cluster's spec.
func explainDenied(ctx context.Context, c *Cell, cluster string, cause error) (*accessDenied, error) {
	principal, hint, caller, err := callerPrincipal(ctx, c.cfg)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("some checks are missing: cluster %s does not allow you to read its nodes, pods and disruption budgets (%v). "+
		"You are %s. drover itself is not affected: it reads with its own roles.\n", cluster, cause, caller)
	if principal == "" {
		return &accessDenied{text + hint}, nil
	}
	text += "Add an access entry to its spec, upload the spec and try again; if the spec has your entry, add the policy to it:\n\n"
	return &accessDenied{strings.TrimSuffix(text+AccessEntry(principal)+hint, "\n")}, nil
}

// callerPrincipal returns the IAM principal that an access entry must name for the caller, as PrincipalOf does, and the caller itself.
func callerPrincipal(ctx context.Context, cfg aws.Config) (principal, hint string, caller arn.ARN, err error) {
	identity, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", "", caller, explainIdentity(cfg, err)
	}
	if caller, err = arn.Parse(aws.ToString(identity.Arn)); err != nil {
		return "", "", caller, err
	}
	principal, hint = PrincipalOf(caller, func(role string) (string, error) {
		out, err := iam.NewFromConfig(cfg).GetRole(ctx, &iam.GetRoleInput{RoleName: &role})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.Role.Arn), nil
	})
	return principal, hint, caller, nil
}

// PrincipalOf returns the IAM principal that an access entry must name for a caller. It is empty, with the reason as hint,
// for a caller that EKS does not accept. EKS accepts users and roles, but no role sessions, and it needs a role's ARN with
// its path. The ARN of a session has no path, so lookUp reads the role from IAM. If that fails, the hint explains it.
// https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
func PrincipalOf(caller arn.ARN, lookUp func(role string) (string, error)) (principal, hint string) {
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
			fmt.Sprintf("\nIf the role has a path, EKS needs it in the ARN, as in role/PATH/%s. It could not be read (%v): "+
				"`aws iam get-role --role-name %s` shows it to a caller with that permission.", role, err, role)
	}
	return "", "EKS accepts users and roles, and neither the root user nor federated ones: sign in as a user, or assume a role, and try again."
}

// AccessEntry returns the part of a spec that allows a principal to read the cluster.
func AccessEntry(principal string) string {
	return fmt.Sprintf(`spec:
  controlPlane:
    access:
      - principalARN: %s
        policies:
          - name: %s
`, principal, viewPolicy)
}

// AccessLine returns the access entry that dry runs need, as the last line of a spec without a controlPlane.
func AccessLine(principal string) string {
	return fmt.Sprintf("  controlPlane: {access: [{principalARN: %q, policies: [{name: %s}]}]}", principal, viewPolicy)
}
