package main

// Where people hear of drover: the topic of reports and alarms, and the queue of what could not be delivered or handled.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// noticesKey is the logical id of the topic's key: the report function's role names it.
const noticesKey = "NoticesKey"

type notices struct {
	topic       awssns.Topic
	deadLetters awssqs.Queue
}

func newNotices(scope constructs.Construct) notices {
	// CloudWatch publishes alarms, and it may use no AWS managed key, so the topic has a key of its own.
	// https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
	key := awskms.NewKey(scope, jsii.String(noticesKey), &awskms.KeyProps{
		Description:       jsii.String("drover: encrypts notices on their way to subscribers"),
		EnableKeyRotation: jsii.Bool(true),
		// Nothing is stored under it for longer than a delivery takes.
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	key.Node().DefaultChild().(awscdk.CfnElement).OverrideLogicalId(jsii.String(noticesKey))
	alarms := awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)
	ofThisAccount := map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": sub("${AWS::AccountId}")}}
	key.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("Alarms"),
		Principals: &[]awsiam.IPrincipal{alarms},
		Actions:    jsii.Strings("kms:GenerateDataKey*", "kms:Decrypt"),
		Resources:  jsii.Strings("*"),
		Conditions: &ofThisAccount,
	}), nil)

	topic := awssns.NewTopic(scope, jsii.String("Notices"), &awssns.TopicProps{
		TopicName:   jsii.String(noticesTopic),
		DisplayName: jsii.String("drover"),
		MasterKey:   key,
		EnforceSSL:  jsii.Bool(true),
	})
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("Alarms"),
		Principals: &[]awsiam.IPrincipal{alarms},
		Actions:    jsii.Strings("sns:Publish"),
		Resources:  &[]*string{topic.TopicArn()},
		Conditions: &ofThisAccount,
	}))

	return notices{
		topic: topic,
		// One queue for all: a message's attributes name the rule, schedule or function it comes from.
		deadLetters: awssqs.NewQueue(scope, jsii.String("DeadLetters"), &awssqs.QueueProps{
			QueueName:       jsii.String(deadLettersQueue),
			Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
			EnforceSSL:      jsii.Bool(true),
			RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
			RemovalPolicy:   awscdk.RemovalPolicy_DESTROY,
		}),
	}
}
