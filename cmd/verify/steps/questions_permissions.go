package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/names"
)

// askKeyTags creates a key with a tag, with a role that may enable the rotation of keys with that tag. CloudFormation enables it right
// after CreateKey. https://docs.aws.amazon.com/kms/latest/developerguide/tag-authorization.html
func (t *Target) askKeyTags(ctx context.Context, _ *runner.Log) (yes bool, evidence string, err error) {
	reason, err := t.attempt(ctx, "key-tags", "KeyTags", `
Resources:
  Key:
    Type: AWS::KMS::Key
    Properties:
      EnableKeyRotation: true
      PendingWindowInDays: 7
      Tags: [{Key: drover-verify, Value: `+t.Suffix+`}]
      KeyPolicy:
        Version: "2012-10-17"
        Statement:
          - Effect: Allow
            Principal: {AWS: !Sub "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}
            Action: "kms:*"
            Resource: "*"
`, never)
	return answer(reason, err, "kms:EnableKeyRotation", "EnableKeyRotation was allowed by the key's tag right after CreateKey")
}

// askEntryRoles creates an access entry with a role that may not pass roles.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func (t *Target) askEntryRoles(ctx context.Context, _ *runner.Log) (yes bool, evidence string, err error) {
	reason, err := t.attempt(ctx, "entry-roles", "EntryRoles", `
Resources:
  Entry:
    Type: AWS::EKS::AccessEntry
    Properties:
      ClusterName: `+names.EKSCluster(t.cluster())+`
      PrincipalArn: `+t.experiments["Principal"]+`
      Type: STANDARD
`, never)
	return answer(reason, err, "iam:PassRole", "the entry was created by a role without iam:PassRole")
}

// identityAddon is an add-on with a pod identity that the run's clusters do not have.
const identityAddon = "aws-ebs-csi-driver"

// askAddonIdentities creates an add-on with a pod identity association, with a role whose permission for eks:CreateAddon names the cluster
// and the add-on. The add-on need not become active.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func (t *Target) askAddonIdentities(ctx context.Context, _ *runner.Log) (yes bool, evidence string, err error) {
	cluster := names.EKSCluster(t.cluster())
	reason, err := t.attempt(ctx, "addon-identities", "AddonIdentities", `
Resources:
  Addon:
    Type: AWS::EKS::Addon
    Properties:
      ClusterName: `+cluster+`
      AddonName: `+identityAddon+`
      PodIdentityAssociations: [{ServiceAccount: ebs-csi-controller-sa, RoleArn: `+t.experiments["Pods"]+`}]
`, func(ctx context.Context) (bool, error) {
		_, err := eks.NewFromConfig(t.cfg).DescribeAddon(ctx, &eks.DescribeAddonInput{
			ClusterName: &cluster, AddonName: aws.String(identityAddon),
		})
		if absent := (*types.ResourceNotFoundException)(nil); errors.As(err, &absent) {
			return false, nil
		}
		return err == nil, err
	})
	return answer(reason, err, "eks:CreateAddon", "the add-on with a pod identity association was created")
}

// answer interprets the result of an attempt without a permission: it succeeded, or it failed because of this permission. Another failure
// answers nothing.
func answer(reason string, err error, action, succeeded string) (yes bool, evidence string, _ error) {
	switch {
	case err != nil:
		return false, "", err
	case reason == "":
		return true, succeeded, nil
	case isDenied(reason, action):
		return false, reason, nil
	}
	return false, "", fmt.Errorf("the experiment failed for another reason: %s", reason)
}
