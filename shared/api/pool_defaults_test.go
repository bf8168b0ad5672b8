package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// withPools is a spec of three pools with defaults. The first line of the defaults is line 10.
func withPools(defaults, pools string) string {
	return `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: "1.36-1"}
  network:
    cidr: 10.0.0.0/16
    zones: [us-east-1a, us-east-1b]
  poolDefaults:
` + defaults + `  pools:
` + pools
}

const threePools = `    - {name: a}
    - name: b
      instanceTypes: [m7i.large]
      minSize: 0
      labels: {}
      drain: {timeout: 1h}
      spot: {onDemandBase: 0}
    - name: c
      drain: null
      labels: {own: "1"}
      rootVolume: {encrypted: false}
`

const goodDefaults = `    instanceTypes: [c7i.large, m7i.large]
    minSize: 2
    maxSize: 4
    spot: {onDemandBase: 1, onDemandPercentage: 50}
    labels: {team: shop, tier: web}
    drain: {timeout: 10m, onTimeout: Force}
    rootVolume: {sizeGiB: 80, encrypted: true}
    files: [{path: /a, content: b}]
`

// Each default is written once, and a pool's own value wins, also if it is 0, false or empty.
func TestPoolDefaults(t *testing.T) {
	c, errs := api.ReadCluster("f.yaml", []byte(withPools(goodDefaults, threePools)), api.Options{})
	require.Nil(t, errs)
	yes, no := true, false
	labels, files := map[string]string{"team": "shop", "tier": "web"}, []api.File{{Path: "/a", Content: "b"}}
	require.Equal(t, []api.Pool{
		{
			Name: "a", InstanceTypes: []string{"c7i.large", "m7i.large"}, MinSize: 2, MaxSize: 4,
			Spot: &api.Spot{OnDemandBase: 1, OnDemandPercentage: 50}, Labels: labels, Files: files,
			Drain:      api.Drain{Timeout: "10m", OnTimeout: api.OnTimeoutForce},
			RootVolume: api.RootVolume{SizeGiB: 80, Encrypted: &yes},
		},
		{
			Name: "b", InstanceTypes: []string{"m7i.large"}, MaxSize: 4,
			Spot: &api.Spot{OnDemandPercentage: 50}, Labels: map[string]string{}, Files: files,
			Drain:      api.Drain{Timeout: "1h", OnTimeout: api.OnTimeoutForce},
			RootVolume: api.RootVolume{SizeGiB: 80, Encrypted: &yes},
		},
		{
			Name: "c", InstanceTypes: []string{"c7i.large", "m7i.large"}, MinSize: 2, MaxSize: 4,
			Spot: &api.Spot{OnDemandBase: 1, OnDemandPercentage: 50}, Labels: map[string]string{"own": "1"}, Files: files,
			Drain:      api.Drain{Timeout: "10m", OnTimeout: api.OnTimeoutForce},
			RootVolume: api.RootVolume{SizeGiB: 80, Encrypted: &no},
		},
	}, c.Spec.Pools)
	// A pool does not share what it got: a change of one changes no other.
	c.Spec.Pools[0].Files[0].Content = "c"
	require.Equal(t, "b", c.Spec.Pools[2].Files[0].Content)

	resolved, errs := api.Resolve(c, readRelease(t, []byte(goodRelease)))
	require.Nil(t, errs)
	require.Nil(t, resolved.Spec.PoolDefaults, "the pools have them")
	require.NoError(t, api.Validate(resolved, options).Err())
}

// An error of the defaults is reported once, at the default, and not for each pool.
func TestPoolDefaultsRejected(t *testing.T) {
	for name, test := range map[string]struct {
		defaults, pools string
		want            []string
	}{
		"a name": {goodDefaults + "    name: a\n", threePools, []string{
			`f.yaml:18: spec.poolDefaults.name: Forbidden: it cannot have a default`,
		}},
		"an unknown field": {goodDefaults + "    maxPod: 5\n", threePools, []string{
			`f.yaml:18: spec.poolDefaults.maxPod: Forbidden: unknown field, did you mean "maxPods"?`,
		}},
		"an unknown field that resembles the name": {goodDefaults + "    nam: a\n", threePools, []string{
			`f.yaml:18: spec.poolDefaults.nam: Forbidden: unknown field: the fields here are instanceTypes, architecture, minSize, ` +
				`maxSize, zones, subnets, securityGroups, spot, image, imageID, rootVolume, volumes, localStorage, labels, tags, taints, maxPods, ` +
				`metadataHopLimit, detailedMonitoring, kubelet, kubeletFlags, proxy, caBundle, files, commands, drain, update, rollAt, readiness`,
		}},
		"a wrong type": {goodDefaults + "    maxPods: many\n", threePools, []string{
			`f.yaml:18: spec.poolDefaults.maxPods: Invalid value: "many": must be a whole number`,
		}},
		"a wrong value": {strings.Replace(goodDefaults, "timeout: 10m", "timeout: soon", 1), threePools, []string{
			`f.yaml:15: spec.poolDefaults.drain.timeout: Invalid value: "soon": must be a duration, such as "90s" or "1h30m"`,
		}},
		"an unknown field within": {strings.Replace(goodDefaults, "timeout: 10m", "tmeout: 10m", 1), threePools, []string{
			`f.yaml:15: spec.poolDefaults.drain.tmeout: Forbidden: unknown field, did you mean "timeout"?`,
		}},
		"an incomplete item of a list": {strings.Replace(goodDefaults, ", content: b", "", 1), threePools, []string{
			`f.yaml:17: spec.poolDefaults.files[0].content: Required value`,
		}},
		"a zero that is too small": {strings.Replace(goodDefaults, "maxSize: 4", "maxSize: 0", 1), threePools, []string{
			`f.yaml:12: spec.poolDefaults.maxSize: Invalid value: 0: must be greater than or equal to 1`,
		}},
		"no value anywhere": {"    minSize: 1\n    maxSize: 2\n", "    - {name: a}\n", []string{
			`f.yaml:13: spec.pools[0].instanceTypes: Required value`,
		}},
		// What is wrong between a default and a pool's own value names the pool.
		"a default against a pool": {strings.Replace(goodDefaults, "minSize: 2", "minSize: 3", 1), "    - {name: a, maxSize: 2}\n", []string{
			`f.yaml:11: spec.pools[0].minSize: Invalid value: 3: must be less than or equal to maxSize, 2`,
		}},
		"a list": {"    - a\n", threePools, []string{
			`f.yaml:10: spec.poolDefaults: Invalid value: a list: must be an object`,
			`f.yaml:12: spec.pools[0].instanceTypes: Required value`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := api.ReadCluster("f.yaml", []byte(withPools(test.defaults, test.pools)), api.Options{})
			var got []string
			for _, e := range errs[:min(len(errs), len(test.want))] {
				got = append(got, e.Error())
			}
			require.Equal(t, test.want, got)
			if name != "a list" {
				require.Len(t, errs, len(test.want), errs)
			}
		})
	}
}

// A small file cannot become a huge one: 45,000 values of the defaults in each of 500 pools.
func TestPoolDefaultsAreBounded(t *testing.T) {
	var pools strings.Builder
	for i := range 500 {
		fmt.Fprintf(&pools, "    - {name: p%d}\n", i)
	}
	spec := withPools("    commands: ["+strings.Repeat("a,", 45_000)+"a]\n", pools.String())
	_, errs := api.ReadCluster("f.yaml", []byte(spec), api.Options{})
	require.EqualError(t, errs.Err(), `f.yaml:1: Forbidden: with spec.poolDefaults in every pool, the file has more than 50000 values`)
}
