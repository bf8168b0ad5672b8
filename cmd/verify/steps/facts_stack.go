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

// roleTemplate makes the roles with which CloudFormation carries out the experiments. Each lacks the permission in question. CLUSTER and
// SUFFIX are replaced.
const roleTemplate = `
Resources:
  KeyTags:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: cloudformation.amazonaws.com}, Action: "sts:AssumeRole"}]
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
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: cloudformation.amazonaws.com}, Action: "sts:AssumeRole"}]
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
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: cloudformation.amazonaws.com}, Action: "sts:AssumeRole"}]
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
`

// propagation is how long a new role may take to work everywhere.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
const propagation = 30 * time.Second

// makeRoles creates the roles of the experiments.
func (t *Target) makeRoles(ctx context.Context, log *runner.Log) error {
	template := strings.NewReplacer("CLUSTER", names.EKSCluster(t.cluster()), "SUFFIX", t.Suffix).Replace(roleTemplate)
	roles, err := t.createStack(ctx, "facts", template)
	if err != nil {
		return err
	}
	t.experiments = roles
	log.Found("%d roles exist, each without the permission in question", len(roles))
	if t.Simulated {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(propagation):
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
