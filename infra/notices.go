package main

// Where people and their tools hear of drover: the topic of reports and alarms, the bus of the same as events, and the queue of
// what could not be delivered or handled.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

// noticesKey is the logical id of the topic's and the bus's key: the roles of the functions that publish name it.
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
	// One queue for all: a message's attributes name the rule, bus, schedule or function it comes from.
	deadLetters := awssqs.NewQueue(scope, jsii.String("DeadLetters"), &awssqs.QueueProps{
		QueueName:       jsii.String(deadLettersQueue),
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
		RemovalPolicy:   awscdk.RemovalPolicy_DESTROY,
	})
	// Events wait on a bus until they are delivered, a day at most; the construct lets EventBridge use the key for this bus alone.
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-encryption-key-policy.html
	// What it cannot encrypt or decrypt goes to its own dead-letter queue; what a rule on it cannot deliver, to that rule's.
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-encryption-event-bus-dlq.html
	awsevents.NewEventBus(scope, jsii.String("Bus"), &awsevents.EventBusProps{
		EventBusName:    jsii.String(names.Bus),
		Description:     jsii.String("drover: what changes in the status of clusters"),
		KmsKey:          key,
		DeadLetterQueue: deadLetters,
	})
	deadLetters.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("Bus"),
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("events.amazonaws.com"), nil)},
		Actions:    jsii.Strings("sqs:SendMessage"),
		Resources:  &[]*string{deadLetters.QueueArn()},
		Conditions: &map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": sub(busARN)}},
	}))

	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("Alarms"),
		Principals: &[]awsiam.IPrincipal{alarms},
		Actions:    jsii.Strings("sns:Publish"),
		Resources:  &[]*string{topic.TopicArn()},
		Conditions: &ofThisAccount,
	}))

	return notices{topic, deadLetters}
}
