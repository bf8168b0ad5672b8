package eventbridge

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/kms"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/resource"
)

func TestCustomBus(t *testing.T) {
	w := newWorld(t, 1)
	client := w.client(t)
	seen := make(chan string, 10)
	w.config.Observe = func(bus string, e Event) { seen <- bus + " " + e.DetailType }
	created, err := client.CreateEventBus(t.Context(), &sdk.CreateEventBusInput{
		Name: aws.String("drover"), Description: aws.String("notices"),
	})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:events:eu-central-1:111122223333:event-bus/drover", *created.EventBusArn)
	_, err = client.CreateEventBus(t.Context(), &sdk.CreateEventBusInput{Name: aws.String("drover")})
	require.ErrorContains(t, err, "ResourceAlreadyExistsException")
	_, err = client.CreateEventBus(t.Context(), &sdk.CreateEventBusInput{Name: aws.String("a/b")})
	require.ErrorContains(t, err, "ValidationException")
	all, err := client.ListEventBuses(t.Context(), &sdk.ListEventBusesInput{})
	require.NoError(t, err)
	require.Len(t, all.EventBuses, 2)

	rule, err := client.PutRule(t.Context(), &sdk.PutRuleInput{
		Name: aws.String("failed"), EventBusName: created.EventBusArn, EventPattern: aws.String(`{"source":["drover"]}`),
	})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:events:eu-central-1:111122223333:rule/drover/failed", *rule.RuleArn)
	_, err = client.PutTargets(t.Context(), &sdk.PutTargetsInput{
		Rule: aws.String("failed"), EventBusName: aws.String("drover"), Targets: []types.Target{{Id: aws.String("f"), Arn: aws.String(function)}},
	})
	require.NoError(t, err)
	_, err = client.DescribeRule(t.Context(), &sdk.DescribeRuleInput{Name: aws.String("failed")})
	require.ErrorContains(t, err, "ResourceNotFoundException", "it is a rule of another bus")

	put := func(bus *string) *sdk.PutEventsOutput {
		out, err := client.PutEvents(t.Context(), &sdk.PutEventsInput{Entries: []types.PutEventsRequestEntry{
			{EventBusName: bus, Source: aws.String("drover"), DetailType: aws.String("Changed"), Detail: aws.String("{}")},
		}})
		require.NoError(t, err)
		require.Zero(t, out.FailedEntryCount)
		return out
	}
	put(nil)
	require.Equal(t, "default Changed", <-seen)
	put(aws.String("nowhere"))
	require.Equal(t, "nowhere Changed", <-seen)
	put(aws.String("drover"))
	require.Equal(t, "drover Changed", <-seen)
	require.Contains(t, (<-w.arrived).payload, "Changed")
	require.Empty(t, w.arrived, "only what was on that bus")

	_, err = client.DeleteEventBus(t.Context(), &sdk.DeleteEventBusInput{Name: aws.String("drover")})
	require.ErrorContains(t, err, "has rules")
	_, err = client.DeleteEventBus(t.Context(), &sdk.DeleteEventBusInput{Name: aws.String("default")})
	require.ErrorContains(t, err, "default")
}

func TestEncryptedBus(t *testing.T) {
	w := newWorld(t, 1)
	keys := kms.New(w.identities, &clock.Clock{})
	w.config.Keys = keys
	admin, _ := w.identities.Admin()
	const arn = "arn:aws:events:eu-central-1:111122223333:event-bus/drover"
	policy := func(bus string) map[string]any {
		return map[string]any{"Version": "2012-10-17", "Statement": []any{
			map[string]any{
				"Effect": "Allow", "Principal": map[string]any{"AWS": "arn:aws:iam::111122223333:root"}, "Action": "kms:*", "Resource": "*",
			},
			map[string]any{
				"Effect": "Allow", "Principal": map[string]any{
					"Service": "events.amazonaws.com",
				}, "Action": []any{"kms:GenerateDataKey", "kms:Decrypt"}, "Resource": "*",
				"Condition": map[string]any{
					"StringEquals": map[string]any{"aws:SourceArn": bus, "kms:EncryptionContext:aws:events:event-bus:arn": bus},
				},
			},
		}}
	}
	keyOf := func(bus string) string {
		key, err := keys.Resources()["AWS::KMS::Key"].Create(t.Context(), resource.Request{
			Caller: admin, Properties: map[string]any{"KeyPolicy": policy(bus)},
		})
		require.NoError(t, err)
		return key.PhysicalID
	}
	provider := w.Resources()["AWS::Events::EventBus"]
	r := resource.Request{
		Caller: admin, Properties: map[string]any{"Name": "drover", "KmsKeyIdentifier": keyOf(arn), "Description": "notices"},
	}
	created, err := provider.Create(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "drover", created.PhysicalID)
	require.Equal(t, arn, created.Attributes["Arn"])
	client := w.client(t)
	shown, err := client.DescribeEventBus(t.Context(), &sdk.DescribeEventBusInput{Name: aws.String("drover")})
	require.NoError(t, err)
	require.Equal(t, r.Properties["KmsKeyIdentifier"], *shown.KmsKeyIdentifier)
	put := func() types.PutEventsResultEntry {
		out, err := client.PutEvents(t.Context(), &sdk.PutEventsInput{Entries: []types.PutEventsRequestEntry{
			{EventBusName: aws.String("drover"), Source: aws.String("drover"), DetailType: aws.String("Changed"), Detail: aws.String("{}")},
		}})
		require.NoError(t, err)
		return out.Entries[0]
	}
	require.NotNil(t, put().EventId)

	r.PhysicalID, r.Properties["KmsKeyIdentifier"] = "drover", keyOf("arn:aws:events:eu-central-1:111122223333:event-bus/other")
	_, err = provider.Update(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "AccessDeniedException", aws.ToString(put().ErrorCode), "EventBridge may not use that key for this bus")
	r.Properties["KmsKeyIdentifier"] = "no-key"
	_, err = provider.Update(t.Context(), r)
	require.ErrorContains(t, err, "no-key")

	rule := w.Resources()["AWS::Events::Rule"]
	of := resource.Request{
		Caller: admin, Properties: map[string]any{
			"Name": "r", "EventBusName": "drover", "EventPattern": map[string]any{"source": []any{"drover"}},
		},
	}
	ruled, err := rule.Create(t.Context(), of)
	require.NoError(t, err)
	require.Equal(t, "drover|r", ruled.PhysicalID)
	of.PhysicalID = ruled.PhysicalID
	require.ErrorContains(t, provider.Delete(t.Context(), r), "has rules")
	require.NoError(t, rule.Delete(t.Context(), of))
	require.NoError(t, provider.Delete(t.Context(), r))
	require.NoError(t, provider.Delete(t.Context(), r), "deleting twice succeeds")
}
