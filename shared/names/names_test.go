package names

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClusterOfKey(t *testing.T) {
	tests := map[string]struct {
		cluster string
		ok      bool
	}{
		"clusters/demo.yaml":              {"demo", true},
		"clusters/":                       {}, // the console creates it
		"clusters/.yaml":                  {},
		"demo.yaml":                       {},
		"clusters/a/b.yaml":               {},
		"clusters/../releases/x.yaml":     {},
		"clusters/demo.yml":               {},
		"releases/demo.yaml":              {},
		"clusters/demo.yaml.bak":          {},
		"x/clusters/demo.yaml":            {},
		"clusters/demo.yaml/clusters/":    {},
		"status/clusters/demo.json":       {},
		"clusters/weird näme?.yaml":       {"weird näme?", true}, // validation rejects it with a message
		"clusters/\x1b[31mdemo.yaml":      {},
		"clusters/demo\u2028demo.yaml":    {},
		"clusters/demo\nNAME  Ready.yaml": {},
		"clusters/\xff.yaml":              {},
	}
	for key, want := range tests {
		t.Run(key, func(t *testing.T) {
			cluster, ok := ClusterOfKey(key)
			require.Equal(t, want.ok, ok)
			if ok {
				require.Equal(t, want.cluster, cluster)
			}
		})
	}
}

func TestReleaseOfKey(t *testing.T) {
	for key, want := range map[string]string{"releases/1.36-1.yaml": "1.36-1", "releases/channels.yaml": "channels"} {
		release, ok := ReleaseOfKey(key)
		require.True(t, ok)
		require.Equal(t, want, release)
		require.Equal(t, key, ReleaseSpec(release))
	}
	for _, key := range []string{
		"releases/", "releases/.yaml", "releases/a/b.yaml", "releases/a.yml", "clusters/a.yaml", "x/releases/a.yaml", "a.yaml",
	} {
		_, ok := ReleaseOfKey(key)
		require.False(t, ok, key)
	}
}

func TestStackOfARN(t *testing.T) {
	require.Equal(t, "drover-demo-network", StackOfARN("arn:aws:cloudformation:us-east-1:111122223333:stack/drover-demo-network/uuid"))
	require.Equal(t, "drover-demo-network", StackOfARN("arn:aws:cloudformation:us-east-1:111122223333:stack/drover-demo-network"))
	require.Empty(t, StackOfARN("arn:aws:s3:::stack"))
}

// Two clusters must never share a stack name, or one would change the other's stack. Validation rejects cluster names that end in -pool
// or contain -pool-. All other pairs of cluster and stack have different names.
func TestStackNamesAreUnique(t *testing.T) {
	clusters := []string{
		"a", "a-addons", "a-control", "a-control-plane", "a-network", "a-on-nodes", "a-addons-on", "b", "a-plane", "pool", "pool-b",
	}
	stacks := []string{Network, ControlPlane, Addons, NodeAddons}
	for _, pool := range []string{"x", "network", "addons", "control-plane", "pool", "pool-x", "addons-on-nodes", "a-network"} {
		stacks = append(stacks, PoolStack(pool))
	}
	seen := map[string]string{}
	for _, cluster := range clusters {
		require.False(t, strings.HasSuffix(cluster, "-pool") || strings.Contains(cluster, "-pool-"))
		for _, stack := range stacks {
			name := Stack(cluster, stack)
			require.Empty(t, seen[name], "%s is of %s and of %s %s", name, seen[name], cluster, stack)
			seen[name] = cluster + " " + stack
		}
	}
}

// TestWordsInExecutionNames fails when a word that an execution's name hashes changes. Then a running execution gets a second one.
func TestWordsInExecutionNames(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var words []string
	for _, retry := range []Retry{
		RetryDue, RetryNotStarted, RetryDeletionPending, RetrySpecPending, RetrySilentExecution, RetryReleaseArrived, RetryUpgradePending,
		RetryDrift, RetryAbortedExecution, RetryAfterUpgrade, RetryNextUpgrade, RetryUpgradeNotBegun, RetryAccount,
	} {
		words = append(words, string(retry))
	}
	words = append(words, EarlyCheckKey("Spec", "r2", at), EndedKey("x", at))
	require.Equal(t, "376e9148c70366cd", SHA256([]byte(strings.Join(words, "\n")))[:16])
}

func TestExecutionNames(t *testing.T) {
	require.Equal(t, ConvergeExecution("demo", "v2", "v1"), ConvergeExecution("demo", "v2", "v1"))
	require.NotEqual(t, ConvergeExecution("demo", "v1", ""), ConvergeExecution("demo", "v2", ""))
	require.NotEqual(t, ConvergeExecution("demo", "v1", ""), ConvergeExecution("demo", "v1", "v2"), "a return is another execution")
	require.NotEqual(t, ConvergeExecution("demo1", "v", ""), ConvergeExecution("demo2", "v", ""))
	require.LessOrEqual(t, len(ConvergeExecution(strings.Repeat("x", 100), strings.Repeat("v", 1024), "")), 80)

	require.Equal(t, RetryExecution("demo", "v1", "why"), RetryExecution("demo", "v1", "why"))
	require.NotEqual(t, RetryExecution("demo", "v1", "why"), RetryExecution("demo", "v1", "another"))
	require.LessOrEqual(t, len(RetryExecution(strings.Repeat("x", 100), "v", "why")), 80)
	require.True(t, IsRetry("arn:aws:states:eu-central-1:123456789012:execution:drover-converge:"+RetryExecution("demo", "v1", "why")))
	for _, name := range []string{
		"", ConvergeExecution("demo-again", "v1", ""), UpgradeStepExecution("demo-again", "x", 1, 2), DueExecution("demo-again", time.Time{}),
	} {
		require.False(t, IsRetry(name), name)
	}
}

func TestDecisionOfKey(t *testing.T) {
	rollout, decision, ok := DecisionOfKey(Decision("next", "approve-1"))
	require.True(t, ok)
	require.Equal(t, []string{"next", "approve-1"}, []string{rollout, decision})
	for _, key := range []string{
		"decisions/", "decisions/next.yaml", "decisions/next/", "decisions/next/.yaml", "decisions//a.yaml", "decisions/next/a/b.yaml",
		"decisions/next/a.yml", "x/decisions/next/a.yaml", "decisions/next/\x1b.yaml",
	} {
		_, _, ok := DecisionOfKey(key)
		require.False(t, ok, key)
	}
}

func TestKeysOfFleets(t *testing.T) {
	for want, key := range map[string]string{
		"rollouts/runs/next.json":                   RolloutRecord("next"),
		"rollouts/runs/next/00000012.json":          EndedRun("next", 12),
		"rollouts/plans/abc.json":                   RolloutPlan("abc"),
		"rollouts/answers/next/go.json":             DecisionAnswer("next", "go"),
		"fleet/desired/111122223333-eu-west-1.json": DesiredState(Cell("111122223333", "eu-west-1")),
		"fleet/reports/111122223333-eu-west-1.json": CellReport(Cell("111122223333", "eu-west-1")),
		"assignments/demo.json":                     Assignment("demo"),
		"status/rollouts/next.json":                 RolloutStatus("next"),
	} {
		require.Equal(t, want, key)
	}
	for _, key := range []string{Rollout("next"), Freeze("next")} {
		_, isRollout := RolloutOfKey(key)
		_, isFreeze := FreezeOfKey(key)
		require.NotEqual(t, isRollout, isFreeze, key)
	}
}
