package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

// The measured fleet is what the page claims: all clusters are members, in stages by region and wave.
func TestMeasuredFleet(t *testing.T) {
	spec, errs := api.ReadRollout("next.yaml", []byte(fleetRollout), api.Options{})
	require.NoError(t, errs.Err())
	subject := rollout.Subject{Releases: []rollout.Release{{Name: "1.37-1", KubernetesVersion: "1.37"}}}
	plan, errs := rollout.Compute(spec, subject, fleetFacts())
	require.NoError(t, errs.Err())
	require.Equal(t, fleetClusters, plan.Size())
	require.Len(t, plan.Stages, 1+4*fleetRegions)
	require.Empty(t, plan.LeftOut)
}
