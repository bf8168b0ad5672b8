package main

// The SNS topic for notifications and alarms, the event bus for the same notifications, and the dead-letter queue for events that could
// not be delivered or handled.

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

// noticesKey is the logical ID of the key of the topic and the bus.
const noticesKey = "NoticesKey"

type notices struct {
	topic       awssns.Topic
	deadLetters awssqs.Queue
	bus         awsevents.EventBus
}

func newNotices(scope constructs.Construct, roles functionRoles) notices {
	// CloudWatch publishes alarms and cannot use an AWS managed key, so the topic has a customer managed key.
	// https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
	key := awskms.NewKey(scope, jsii.String(noticesKey), &awskms.KeyProps{
		Description:       jsii.String("drover: encrypts notices on their way to subscribers"),
		EnableKeyRotation: jsii.Bool(true),
		// Messages are encrypted with the key only until they are delivered.
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
	// EventBridge itself uses the key for the bus. To publish to the topic, a function needs the key.
	var publishers []awsiam.IPrincipal
	for _, f := range functionTable {
		if f.notifies {
			publishers = append(publishers, awsiam.NewArnPrincipal(roles[f.name].RoleArn()))
		}
	}
	key.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("Publishers"),
		Principals: &publishers,
		Actions:    jsii.Strings("kms:GenerateDataKey", "kms:Decrypt"),
		Resources:  jsii.Strings("*"),
	}), nil)

	topic := awssns.NewTopic(scope, jsii.String("Notices"), &awssns.TopicProps{
		TopicName:   jsii.String(noticesTopic),
		DisplayName: jsii.String("drover"),
		MasterKey:   key,
		EnforceSSL:  jsii.Bool(true),
	})
	// One queue for all sources: the attributes of a message name its rule, bus, schedule or function.
	deadLetters := awssqs.NewQueue(scope, jsii.String("DeadLetters"), &awssqs.QueueProps{
		QueueName:       jsii.String(deadLettersQueue),
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
		RemovalPolicy:   awscdk.RemovalPolicy_DESTROY,
	})
	// The bus stores an event for at most a day until it is delivered. The construct allows EventBridge to use the key for this bus only.
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-encryption-key-policy.html
	// Events that cannot be encrypted or decrypted go to the bus's dead-letter queue. Events that a rule cannot deliver go to the rule's.
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-encryption-event-bus-dlq.html
	bus := awsevents.NewEventBus(scope, jsii.String("Bus"), &awsevents.EventBusProps{
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

	return notices{topic, deadLetters, bus}
}
