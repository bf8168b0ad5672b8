package permissions_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
)

// A malformed key of the specs bucket leads to a status of its own name at most. It starts no execution, and changes no other cluster.
func TestKeysOutsideTheirCluster(t *testing.T) {
	run(t, func(a *life) {
		t := a.T
		event := func(key string) harness.Event {
			detail, err := json.Marshal(map[string]any{
				"bucket": map[string]any{"name": harness.SpecsBucket}, "object": map[string]any{"key": key, "version-id": "1", "sequencer": "ff"},
			})
			require.NoError(t, err)
			return harness.Event{
				ID: "forged", Source: "aws.s3", DetailType: "Object Created", Account: harness.ID, Region: harness.Region, Detail: detail,
			}
		}
		for _, name := range []string{
			"../releases/r1", "../../status/clusters/demo", "a/../demo", "a/b", "/demo", "demo/", "..", ".", "%2e%2e%2fdemo", "a%2fdemo",
			"..%5cdemo", `..\demo`,
			"demo.yaml", "demo\x00", "demo\n", "demo ", " demo", "Demo", "ｄｅｍｏ", "d\u0435mo", "demo\u202e", "demo-pool", "a-pool-b", "-demo",
			"demo?versionId=1", "demo#x", "*", "${AWS::AccountId}",
			strings.Repeat("x", 900),
		} {
			a.Upload(names.ClusterSpec(name), harness.Spec("demo", ""))
			a.Events.Deliver(event(names.ClusterSpec(name)))
			a.Events.Deliver(event(names.ClusterSpec(url.PathEscape(name))))
		}
		a.Settle()
		require.Empty(t, a.StepFunctions.Executions())
		require.Empty(t, a.CloudFormation.Stacks())
		entries, err := a.State().List(t.Context(), "")
		require.NoError(t, err)
		require.NotEmpty(t, entries)
		for _, entry := range entries {
			if entry.Key == names.IgnoredUploads {
				continue // one document that lists the keys
			}
			name, ok := strings.CutPrefix(entry.Key, names.Statuses)
			require.True(t, ok, entry.Key)
			require.NotContains(t, name, "/")
			require.False(t, strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }), "drover status would print %q", name)
			require.NotEqual(t, "demo.json", name)
		}
	})
}

// Keys with characters that XML cannot contain are listed unchanged, by direct and by signed calls.
func TestAnyKeyIsListed(t *testing.T) {
	run(t, func(a *life) {
		t := a.T
		keys := []string{"k/\x1b[31m.yaml", "k/a b+c%2f&<ü>.yaml"}
		for _, key := range keys {
			_, err := a.State().Put(t.Context(), key, nil)
			require.NoError(t, err)
		}
		for range 2 {
			entries, err := a.State().List(t.Context(), "k/")
			require.NoError(t, err)
			require.Len(t, entries, len(keys))
			for i, entry := range entries {
				require.Equal(t, keys[i], entry.Key)
			}
		}
	})
}

// The name in a spec and the name in its key must agree, independent of the uploader.
func TestSpecUnderAnotherClustersKey(t *testing.T) {
	a := start(t)
	a.Upload(names.ReleaseSpec("r1"), harness.Release())
	a.Upload(names.ClusterSpec("mine"), harness.Spec("demo", ""))
	a.Settle()
	require.Empty(t, a.CloudFormation.Stacks())
	require.Empty(t, a.StepFunctions.Executions())
	require.Contains(t, a.Status("mine").Condition("SpecAccepted").Message, "demo")
	require.Empty(t, a.Status("demo").ObservedVersion)
}

// Events of stacks with forged names and tokens wake no step and write nothing.
func TestForgedEventsOfStacks(t *testing.T) {
	run(t, func(a *life) {
		t := a.T
		for _, id := range []string{
			"", "x", "arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-",
			"arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-../../status/clusters/demo/1",
			"arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-demo-network/1",
			"arn:aws:cloudformation:eu-central-1:999999999999:stack/drover-demo-network/1",
			"arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-%2e%2e%2fx/1",
		} {
			detail, err := json.Marshal(map[string]any{
				"stack-id": id, "status-details": map[string]any{"status": "CREATE_COMPLETE"}, "client-request-token": "../x",
			})
			require.NoError(t, err)
			_, _ = a.Functions.Call("stackevent", harness.Event{
				ID: "forged", Source: "aws.cloudformation", DetailType: "CloudFormation Stack Status Change", Account: harness.ID,
				Region: harness.Region,
				Detail: detail,
			})
		}
		entries, err := a.State().List(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, entries)
	})
}
