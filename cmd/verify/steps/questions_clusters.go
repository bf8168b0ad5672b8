package steps

// The experiments with EKS clusters of their own, without nodes. They begin early, because EKS needs a quarter of an hour for each.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// The stacks of the clusters.
const (
	grantsStack  = "key-grants"
	versionStack = "lower-version"
)

// grantsCluster and versionCluster are the names of the clusters in EKS.
func (t *Target) grantsCluster() string  { return t.ownPrefix() + "grants" }
func (t *Target) versionCluster() string { return t.ownPrefix() + "version" }

// clusterTemplate is a control plane.
func (t *Target) clusterTemplate(name, version, more string) string {
	return `
Resources:
  Cluster:
    Type: AWS::EKS::Cluster
    Properties:
      Name: ` + name + `
      Version: "` + version + `"
      RoleArn: ` + t.experiments["ClusterRole"] + `
      AccessConfig: {AuthenticationMode: API, BootstrapClusterCreatorAdminPermissions: false}
      ResourcesVpcConfig: {SubnetIds: [` + t.experiments["SubnetA"] + `, ` + t.experiments["SubnetB"] + `]}
      Tags: [{Key: ` + tagKey + `, Value: ` + t.Suffix + `}]
` + more
}

// beginClusters begins to create both clusters.
func (t *Target) beginClusters(ctx context.Context, log *runner.Log) error {
	encryption := "      EncryptionConfig: [{Resources: [secrets], Provider: {KeyArn: " + t.experiments["Key"] + "}}]\n"
	for _, c := range []struct{ stack, name, more, role string }{
		{
			stack: grantsStack, name: t.grantsCluster(), more: encryption, role: t.experiments["KeyGrants"],
		}, {stack: versionStack, name: t.versionCluster()},
	} {
		t.Meter.Start(c.stack, time.Now(), controlPlanePrice)
		if err := t.beginStack(ctx, c.stack, t.clusterTemplate(c.name, t.older.kubernetes, c.more), c.role); err != nil {
			return err
		}
	}
	log.Found("the control planes of the questions %s and %s are being created", grantsStack, versionStack)
	return nil
}

// askKeyGrants waits for the cluster with a key. Its stack has a role that may create grants only for AWS resources.
// https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-grant-is-for-aws-resource
func (t *Target) askKeyGrants(ctx context.Context, _ *runner.Log) (yes bool, evidence string, err error) {
	reason, err := t.waitForCreation(ctx, grantsStack)
	return answer(reason, err, "kms:CreateGrant", "EKS created a cluster with a role that may create grants with this condition only")
}

// waitForCreation waits for the creation of a stack. It returns the reason why it failed, or an empty string.
func (t *Target) waitForCreation(ctx context.Context, name string) (reason string, err error) {
	stack, err := t.stackResult(ctx, t.ownPrefix()+name)
	switch {
	case err != nil:
		return "", err
	case stack == nil:
		return "", fmt.Errorf("stack %s does not exist", t.ownPrefix()+name)
	case stack.StackStatus == types.StackStatusCreateComplete:
		return "", nil
	}
	reason, err = t.firstFailure(ctx, t.ownPrefix()+name)
	if err == nil && reason == "" {
		err = fmt.Errorf("stack %s is %s without a reason", t.ownPrefix()+name, stack.StackStatus)
	}
	return reason, err
}

// askLowerVersion upgrades a cluster with its stack, and then deploys the version before.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
func (t *Target) askLowerVersion(ctx context.Context, log *runner.Log) (yes bool, evidence string, err error) {
	if reason, err := t.waitForCreation(ctx, versionStack); err != nil || reason != "" {
		return false, "", errors.Join(err, fmt.Errorf("the cluster of the experiment was not created: %s", reason))
	}
	if err := t.updateVersion(ctx, t.newer.kubernetes); err != nil {
		return false, "", err
	}
	stack, err := t.stackResult(ctx, t.ownPrefix()+versionStack)
	if err != nil {
		return false, "", err
	}
	if stack == nil || stack.StackStatus != types.StackStatusUpdateComplete {
		reason, err := t.firstFailure(ctx, t.ownPrefix()+versionStack)
		return false, "", errors.Join(err, fmt.Errorf("the upgrade to %s failed: %s", t.newer.kubernetes, reason))
	}
	log.Show("the cluster has version %s; deploying %s", t.newer.kubernetes, t.older.kubernetes)
	began := time.Now()
	if err := t.updateVersion(ctx, t.older.kubernetes); err != nil {
		return false, "", err
	}
	err = t.until(ctx, stackPoll, "a rollback of the version, or a failed stack", func() (bool, error) {
		rolls, err := t.rollsBack(ctx)
		if err != nil {
			return false, err
		}
		if rolls {
			yes, evidence = true, "EKS reports an update of the type VersionRollback"
			return true, nil
		}
		stack, err := t.stack(ctx, t.ownPrefix()+versionStack)
		if err != nil || stack == nil || stack.StackStatus == types.StackStatusUpdateInProgress {
			return false, err
		}
		evidence, err = t.failureSince(ctx, t.ownPrefix()+versionStack, began)
		if err == nil && evidence == "" {
			evidence = "the stack is " + string(stack.StackStatus) + ", and EKS reports no rollback"
		}
		return true, err
	})
	if err == nil && !yes && !strings.Contains(strings.ToLower(evidence), "version") && !strings.Contains(evidence, "no rollback") {
		err = fmt.Errorf("the experiment failed for another reason: %s", evidence)
	}
	return yes, evidence, err
}

// updateVersion deploys a version of the cluster.
func (t *Target) updateVersion(ctx context.Context, version string) error {
	name, template := t.ownPrefix()+versionStack, t.clusterTemplate(t.versionCluster(), version, "")
	_, err := cloudformation.NewFromConfig(t.cfg).UpdateStack(ctx, &cloudformation.UpdateStackInput{
		StackName: &name, TemplateBody: &template, Capabilities: []types.Capability{types.CapabilityCapabilityIam},
	})
	if err != nil {
		return fmt.Errorf("updating stack %s: %w", name, err)
	}
	return nil
}

// rollsBack reports whether EKS rolls the version of the cluster back, or did so.
func (t *Target) rollsBack(ctx context.Context) (bool, error) {
	client, name := eks.NewFromConfig(t.cfg), t.versionCluster()
	listed, err := client.ListUpdates(ctx, &eks.ListUpdatesInput{Name: &name})
	if err != nil {
		return false, fmt.Errorf("listing the updates of %s: %w", name, err)
	}
	for _, id := range listed.UpdateIds {
		out, err := client.DescribeUpdate(ctx, &eks.DescribeUpdateInput{Name: &name, UpdateId: &id})
		if err != nil {
			return false, fmt.Errorf("reading update %s of %s: %w", id, name, err)
		}
		if out.Update.Type == ekstypes.UpdateType("VersionRollback") {
			return true, nil
		}
	}
	return false, nil
}
