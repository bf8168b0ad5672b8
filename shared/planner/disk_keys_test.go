package planner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// keyring has the states of keys. It records the requests.
type keyring struct {
	states   map[string]string
	err      error
	requests []string
}

func (k *keyring) Describe(_ context.Context, arn string) (state string, found, permitted bool, err error) {
	k.requests = append(k.requests, arn)
	state, found = k.states[arn]
	return state, found, state != "secret", k.err
}

// key returns the ARN of a key.
func key(region, id string) string { return "arn:aws:kms:" + region + ":111122223333:key/" + id }

func TestKeysOfDisks(t *testing.T) {
	good, other := key("us-east-1", "good"), key("us-east-1", "other")
	given := func(root, data string) (*keyring, *Outcome) {
		k := &keyring{states: map[string]string{
			good: "Enabled", other: "Enabled", key("us-east-1", "off"): "Disabled", key("us-east-1", "secret"): "secret",
		}}
		pool := api.Pool{Name: "a", RootVolume: api.RootVolume{KMSKeyARN: root}, Volumes: []api.Volume{{Device: "/dev/xvdb", KMSKeyARN: data}}}
		o := &Outcome{work: work{cluster: "demo", resolved: &api.Cluster{Spec: api.ClusterSpec{Pools: []api.Pool{
			pool, {Name: "b", RootVolume: api.RootVolume{KMSKeyARN: root}}, {Name: "still", RootVolume: api.RootVolume{KMSKeyARN: "unchanged"}},
		}}}}}
		o.work.deployed = map[string]stack.Deployed{"pool-a": {Outputs: map[string]string{"DiskKeys": other}}}
		for _, name := range []string{"pool-a", "pool-b"} {
			o.Plan.Changes = append(o.Plan.Changes, plan.Change{Stack: name, Operation: plan.Update})
		}
		return k, o
	}
	check := func(k *keyring, o *Outcome) error {
		return (&Planner{Keys: k, Cell: render.Cell{Region: "us-east-1"}}).checkDiskKeys(t.Context(), o)
	}

	t.Run("asks once for each key, and not about deployed ones", func(t *testing.T) {
		k, o := given(good, other)
		require.NoError(t, check(k, o))
		require.Equal(t, []string{good}, k.requests)
		require.Empty(t, o.Plan.Changes[0].Reasons)
		k, o = given("", other)
		require.NoError(t, check(k, o))
		require.Empty(t, k.requests)
		require.NoError(t, (&Planner{}).checkDiskKeys(t.Context(), o), "in previews")
	})
	for name, test := range map[string]struct{ key, says string }{
		"a key that is off":         {key("us-east-1", "off"), "is not enabled: its state is Disabled"},
		"a key that does not exist": {key("us-east-1", "x"), "does not exist"},
		"a key of another region":   {key("eu-west-1", "good"), "is a key of eu-west-1, and the cluster is in us-east-1"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			k, o := given(test.key, good)
			err := check(k, o)
			var stopped *Stop
			require.ErrorAs(t, err, &stopped)
			require.Equal(t, status.ReasonChangeRefused, stopped.Reason)
			require.Equal(t, "no stack was changed, because EC2 could create no disks with these keys:\n"+
				"pool a: kmsKeyARN: "+test.key+" "+test.says+"\npool b: kmsKeyARN: "+test.key+" "+test.says+"\n"+
				"Enable the key, or name another", err.Error())
		})
	}
	t.Run("gives a reason where it may not describe a key", func(t *testing.T) {
		k, o := given(key("us-east-1", "secret"), good)
		require.NoError(t, check(k, o))
		require.Equal(t, []status.Reason{{Field: "KMS key of disks of pool a, not verified", New: key("us-east-1", "secret")}},
			o.Plan.Changes[0].Reasons)
		require.Len(t, k.requests, 2)
		require.Equal(t, 1, strings.Count(strings.Join(k.requests, " "), "secret"))
	})
	t.Run("fails if KMS does", func(t *testing.T) {
		k, o := given(good, "")
		k.err = errors.New("throttled")
		require.ErrorIs(t, check(k, o), k.err)
	})
}
