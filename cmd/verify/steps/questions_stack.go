package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/names"
)

// roleTemplate makes the roles with which CloudFormation carries out the experiments, and the network and the key that they have in common.
// Each role lacks the permission in question. CLUSTER, GRANTS, SUFFIX and the zones are replaced.
const roleTemplate = `
Resources:
  Network:
    Type: AWS::EC2::VPC
    Properties: {CidrBlock: 10.66.0.0/20}
  SubnetA:
    Type: AWS::EC2::Subnet
    Properties: {VpcId: !Ref Network, CidrBlock: 10.66.0.0/24, AvailabilityZone: ZONE_A}
  SubnetB:
    Type: AWS::EC2::Subnet
    Properties: {VpcId: !Ref Network, CidrBlock: 10.66.1.0/24, AvailabilityZone: ZONE_B}
  ClusterRole:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: eks.amazonaws.com}, Action: "sts:AssumeRole"}]
      ManagedPolicyArns: [!Sub "arn:${AWS::Partition}:iam::aws:policy/AmazonEKSClusterPolicy"]
  Key:
    Type: AWS::KMS::Key
    Properties:
      PendingWindowInDays: 7
      KeyPolicy:
        Version: "2012-10-17"
        Statement:
          - Effect: Allow
            Principal: {AWS: !Sub "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}
            Action: "kms:*"
            Resource: "*"
  KeyGrants:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: ASSUMED_BY_CLOUDFORMATION
      Policies:
        - PolicyName: key-grants
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - Effect: Allow
                Action: ["eks:CreateCluster", "eks:DescribeCluster", "eks:DeleteCluster", "eks:TagResource"]
                Resource: !Sub "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:cluster/GRANTS"
              - Effect: Allow
                Action: ["iam:PassRole", "iam:GetRole"]
                Resource: !GetAtt ClusterRole.Arn
              - Effect: Allow
                Action: ["iam:CreateServiceLinkedRole", "iam:GetRole"]
                Resource: !Sub "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/aws-service-role/eks.amazonaws.com/*"
              - Effect: Allow
                Action: ["ec2:DescribeSubnets", "ec2:DescribeVpcs", "ec2:DescribeSecurityGroups"]
                Resource: "*"
              - Effect: Allow
                Action: "kms:DescribeKey"
                Resource: !GetAtt Key.Arn
              - Effect: Allow
                Action: "kms:CreateGrant"
                Resource: !GetAtt Key.Arn
                Condition: {Bool: {"kms:GrantIsForAWSResource": "true"}}
  RefreshRollback:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: ASSUMED_BY_CLOUDFORMATION
      Policies:
        - PolicyName: refresh-rollback
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - Effect: Allow
                Action: ["autoscaling:*", "ec2:*"]
                Resource: "*"
              - Effect: Allow
                Action: ["iam:CreateServiceLinkedRole", "iam:GetRole"]
                Resource: !Sub "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/aws-service-role/autoscaling.amazonaws.com/*"
              - Effect: Deny
                Action: "autoscaling:RollbackInstanceRefresh"
                Resource: "*"
  KeyTags:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: ASSUMED_BY_CLOUDFORMATION
      Policies:
        - PolicyName: key-tags
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - Effect: Allow
                Action: ["kms:CreateKey", "kms:TagResource"]
                Resource: "*"
                Condition: {StringEquals: {"aws:RequestTag/drover-verify": SUFFIX}}
              - Effect: Allow
                Action: ["kms:DescribeKey", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListResourceTags"]
                Resource: !Sub "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"
              - Effect: Allow
                Action: ["kms:PutKeyPolicy", "kms:ScheduleKeyDeletion"]
                Resource: !Sub "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"
              - Effect: Allow
                Action: "kms:EnableKeyRotation"
                Resource: !Sub "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"
                Condition: {StringEquals: {"aws:ResourceTag/drover-verify": SUFFIX}}
  EntryRoles:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: ASSUMED_BY_CLOUDFORMATION
      Policies:
        - PolicyName: entry-roles
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - Effect: Allow
                Action: ["eks:CreateAccessEntry", "eks:DescribeCluster", "eks:TagResource"]
                Resource: !Sub "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:cluster/CLUSTER"
              - Effect: Allow
                Action: ["eks:DescribeAccessEntry", "eks:DeleteAccessEntry", "eks:ListAssociatedAccessPolicies", "eks:TagResource"]
                Resource: !Sub "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:access-entry/CLUSTER/*"
  Principal:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: ec2.amazonaws.com}, Action: "sts:AssumeRole"}]
  AddonIdentities:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: ASSUMED_BY_CLOUDFORMATION
      Policies:
        - PolicyName: addon-identities
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - Effect: Allow
                Action: ["eks:CreateAddon", "eks:CreatePodIdentityAssociation", "eks:DescribeCluster", "eks:TagResource"]
                Resource: !Sub "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:cluster/CLUSTER"
              - Effect: Allow
                Action: ["eks:CreateAddon", "eks:DescribeAddon", "eks:UpdateAddon", "eks:DeleteAddon", "eks:TagResource"]
                Resource: !Sub "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:addon/CLUSTER/*"
              - Effect: Allow
                Action: ["eks:TagResource", "eks:DescribePodIdentityAssociation", "eks:DeletePodIdentityAssociation"]
                Resource: !Sub "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:podidentityassociation/CLUSTER/*"
              - Effect: Allow
                Action: ["iam:PassRole", "iam:GetRole"]
                Resource: !GetAtt Pods.Arn
  Pods:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: pods.eks.amazonaws.com}, Action: ["sts:AssumeRole", "sts:TagSession"]}]
Outputs:
  KeyTags: {Value: !GetAtt KeyTags.Arn}
  EntryRoles: {Value: !GetAtt EntryRoles.Arn}
  Principal: {Value: !GetAtt Principal.Arn}
  AddonIdentities: {Value: !GetAtt AddonIdentities.Arn}
  Pods: {Value: !GetAtt Pods.Arn}
  KeyGrants: {Value: !GetAtt KeyGrants.Arn}
  RefreshRollback: {Value: !GetAtt RefreshRollback.Arn}
  ClusterRole: {Value: !GetAtt ClusterRole.Arn}
  Key: {Value: !GetAtt Key.Arn}
  SubnetA: {Value: !Ref SubnetA}
  SubnetB: {Value: !Ref SubnetB}
`

// propagation is how long a new role may take to work everywhere.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
const propagation = 30 * time.Second

// prepareExperiments creates the roles and the network of the experiments, and begins those that take long.
func (t *Target) prepareExperiments(ctx context.Context, log *runner.Log) error {
	if err := t.resolveReleases(ctx); err != nil {
		return err
	}
	if err := t.makeRoles(ctx, log); err != nil {
		return err
	}
	return t.beginClusters(ctx, log)
}

// makeRoles creates the roles and the network of the experiments.
func (t *Target) makeRoles(ctx context.Context, log *runner.Log) error {
	if err := t.findZones(ctx); err != nil {
		return err
	}
	made, err := t.createStack(ctx, rolesStep, t.fill(roleTemplate))
	if err != nil {
		return err
	}
	t.experiments = made
	log.Found("the roles of the experiments exist, each without the permission in question")
	return t.pause(ctx, propagation)
}

// assumedByCloudFormation is the trust policy of a role that CloudFormation uses.
const assumedByCloudFormation = `{Version: "2012-10-17", Statement: [` +
	`{Effect: Allow, Principal: {Service: cloudformation.amazonaws.com}, Action: "sts:AssumeRole"}]}`

// fill replaces the names in a template.
func (t *Target) fill(template string) string {
	return strings.NewReplacer("CLUSTER", names.EKSCluster(t.cluster()), "GRANTS", t.grantsCluster(), "SUFFIX", t.Suffix,
		"ZONE_A", t.zones[0], "ZONE_B", t.zones[1], "ASSUMED_BY_CLOUDFORMATION", assumedByCloudFormation).Replace(template)
}

// pause waits, for less time in a local account.
func (t *Target) pause(ctx context.Context, d time.Duration) error {
	if t.Simulated {
		d /= simulatedHaste
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// attempt creates a stack with the role of an experiment, and removes it. It returns the reason why the creation failed, or an empty string
// if it was complete, or if happened returned true before its end.
func (t *Target) attempt(ctx context.Context, name, role, template string, happened func(context.Context) (bool, error)) (
	reason string, err error) {
	if err := t.beginStack(ctx, name, template, t.experiments[role]); err != nil {
		return "", err
	}
	full := t.ownPrefix() + name
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute)
		defer cancel()
		_, waited := t.stackResult(cleanup, full)
		err = errors.Join(err, waited, t.removeStack(cleanup, full))
	}()
	err = t.until(ctx, stackPoll, "stack "+full, func() (bool, error) {
		stack, err := t.stack(ctx, full)
		if err != nil {
			return false, err
		}
		switch {
		case stack == nil:
			return false, fmt.Errorf("stack %s was deleted during the experiment", full)
		case stack.StackStatus == types.StackStatusCreateComplete:
			return true, nil
		case stack.StackStatus != types.StackStatusCreateInProgress:
			if reason, err = t.firstFailure(ctx, full); err == nil && reason == "" {
				err = fmt.Errorf("stack %s is %s without a reason", full, stack.StackStatus)
			}
			return true, err
		}
		return happened(ctx)
	})
	return reason, err
}

// never is for experiments whose stack must be complete.
func never(context.Context) (bool, error) { return false, nil }
