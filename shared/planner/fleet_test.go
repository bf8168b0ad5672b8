package planner

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestDecisionWithARollout(t *testing.T) {
	sale := api.Freeze{Metadata: api.Metadata{Name: "sale"}, Spec: api.FreezeSpec{
		From: "2026-11-26T00:00:00Z", Until: "2026-11-27T00:00:00Z", Clusters: api.Selector{MatchLabels: map[string]string{
			api.LabelAccount: "111122223333", api.LabelKubernetes: "1.36",
		}},
	}}
	errThrottled := errors.New("throttled")
	for name, test := range map[string]struct {
		given   func(*cluster, *api.Cluster)
		release string
		wait    string
		err     error
		reads   int
	}{
		"reads no freezes without a request": {given: func(c *cluster, _ *api.Cluster) { c.assignment = nil }},
		"begins the release by content, whatever the specs bucket has": {
			given: func(c *cluster, _ *api.Cluster) { delete(c.objects, names.ReleaseSpec("1.37-1")) }, release: "1.37-1", reads: 1,
		},
		"waits for content that is not there": {
			given: func(c *cluster, _ *api.Cluster) { delete(c.objects, names.PinnedRelease("sha37")) }, wait: "no such object",
		},
		"ignores the assignment of an earlier cluster": {given: func(c *cluster, _ *api.Cluster) { c.assignment.Stack = "stack-0" }},
		"ignores a withdrawn assignment":               {given: func(c *cluster, _ *api.Cluster) { c.assignment.Withdrawn = true }},
		"waits for a freeze that selects the cluster": {
			given: func(c *cluster, _ *api.Cluster) { c.freezes.Freezes = []api.Freeze{sale} }, wait: "the freeze sale delays it", reads: 1,
		},
		"ignores a freeze that the run overrides": {
			given: func(c *cluster, _ *api.Cluster) {
				c.freezes.Freezes, c.assignment.Overrides = []api.Freeze{sale}, []string{"sale"}
			}, release: "1.37-1", reads: 1,
		},
		"keeps the channel from a claimed cluster": {
			given: func(c *cluster, spec *api.Cluster) {
				c.assignment, c.freezes.Claims, spec.Spec.Upgrade.Channel = nil, []string{"demo"}, api.ChannelStable
			}, reads: 1,
		},
		"lets the channel move another cluster": {
			given: func(c *cluster, spec *api.Cluster) {
				c.assignment, c.freezes.Claims, spec.Spec.Upgrade.Channel = nil, []string{"shop"}, api.ChannelStable
			}, release: "1.37-1", reads: 1,
		},
		"fails when the assignment is unknown": {
			given: func(c *cluster, _ *api.Cluster) { c.err["assignment"] = errThrottled }, err: errThrottled,
		},
		"fails when the freezes are unknown": {
			given: func(c *cluster, _ *api.Cluster) { c.err["freezes"] = errThrottled }, err: errThrottled, reads: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec, errs := api.ReadCluster("", []byte(specOfA), api.Options{})
			require.Empty(t, errs)
			s := withSpec(t)
			s.objects[names.PinnedRelease("sha")] = s.objects[names.ReleaseSpec("1.36-1")]
			newer := strings.NewReplacer("1.36-1", "1.37-1", `kubernetesVersion: "1.36"`, `kubernetesVersion: "1.37"`)
			s.objects[names.ReleaseSpec("1.37-1")] = newer.Replace(s.objects[names.ReleaseSpec("1.36-1")])
			s.objects[names.PinnedRelease("sha37")] = s.objects[names.ReleaseSpec("1.37-1")]
			channels, err := os.ReadFile("../../examples/releases/channels.yaml")
			require.NoError(t, err)
			s.objects[names.ReleaseSpec(api.ChannelsName)] = strings.ReplaceAll(string(channels), "1.36-1", "1.37-1")
			s.assignment = &rollout.CellAssignment{
				Assignment: rollout.Assignment{
					Cluster: "demo", Rollout: "next", Run: 1, Attempt: 1, Plan: "0123456789abcdef",
					To: rollout.ReleaseRef{Name: "1.37-1", SHA256: "sha37"},
				},
				Stack: "stack-1", Taken: planTime.Add(-time.Minute),
			}
			test.given(s, spec)
			w := work{cluster: "demo", releases: map[string]content{}, deployed: map[string]stack.Deployed{names.ControlPlane: {
				ID: "stack-1", Status: "CREATE_COMPLETE", Outputs: map[string]string{"KubernetesVersion": "1.36"},
				Tags: map[string]string{names.TagRelease: "1.36-1@sha"},
			}}}
			p := s.planner()
			p.Cell.Account, p.Cell.Region = "111122223333", "us-east-1"
			err = p.decide(t.Context(), &w, spec)
			require.ErrorIs(t, err, test.err)
			require.Len(t, s.reads, test.reads)
			if err != nil {
				return
			}
			if d := w.decision; test.wait != "" {
				require.Contains(t, d.Pending.Message, test.wait)
			} else if test.release == "" {
				require.Nil(t, d.Start)
			} else {
				require.Equal(t, test.release, d.Start.Release)
				start := p.plannedUpgrade(w).Start
				require.Equal(t, []string{string(d.Start.Origin), d.Start.Key, d.Start.SHA256}, []string{start.Origin, start.Key, start.SHA256})
				require.Equal(t, d.Start.Origin == upgrade.OriginRollout, start.SHA256 == "sha37")
			}
		})
	}
}
