package render_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/templates"
)

// BenchmarkPlanUnchanged measures planning for an unchanged cluster: defaults, templates, user data, checksums, and the comparison with
// each deployed stack.
func BenchmarkPlanUnchanged(b *testing.B) {
	cluster, release, cell := render.ThreePools()
	benchmarkPlan(b, cell, func() (*api.Cluster, *api.Release, api.Errors) { return cluster, release, nil })
}

// BenchmarkPlanFiles also reads and validates the files first, like the plan function. JSON is YAML.
func BenchmarkPlanFiles(b *testing.B) {
	cluster, release, cell := render.ThreePools()
	spec, err := json.Marshal(cluster)
	require.NoError(b, err)
	defaults, err := json.Marshal(release)
	require.NoError(b, err)
	options := api.Options{TemplateVersions: templates.Versions()}
	benchmarkPlan(b, cell, func() (*api.Cluster, *api.Release, api.Errors) {
		cluster, errs := api.ReadCluster("cluster.yaml", spec, options)
		if errs != nil {
			return nil, nil, errs
		}
		release, errs := api.ReadRelease("release.yaml", defaults, options)
		return cluster, release, errs
	})
}

func benchmarkPlan(b *testing.B, cell render.Cell, read func() (*api.Cluster, *api.Release, api.Errors)) {
	compute := func(deployed map[string]stack.Deployed) plan.Plan {
		cluster, release, errs := read()
		if errs != nil {
			b.Fatal(errs)
		}
		resolved, errs := api.Resolve(cluster, release)
		if errs != nil {
			b.Fatal(errs)
		}
		out, err := render.Render(render.Cluster{Cell: cell, Resolved: resolved, Relay: render.UnknownRelay})
		if err != nil {
			b.Fatal(err)
		}
		return plan.Compute(plan.Input{
			Cluster: "demo", SpecVersion: "v1", Release: "1.36-1@sha256", New: resolved, Desired: out.Stacks, Deployed: deployed,
		})
	}
	deployed := createdStacks(compute(nil))
	require.Len(b, deployed, 7, "network, control plane, three pools and two stacks of add-ons")
	b.ReportAllocs()
	for b.Loop() {
		if p := compute(deployed); len(p.Changes) > 0 {
			b.Fatal("an unchanged cluster changes", p.Changes[0].Reasons)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "clusters/s")
}

// createdStacks returns the stacks after a plan was carried out. Every output, and every parameter from an output, has a value.
func createdStacks(p plan.Plan) map[string]stack.Deployed {
	const value = "the value of an output"
	deployed := map[string]stack.Deployed{}
	for _, change := range p.Changes {
		deployed[change.Stack] = stack.Deployed{
			Name: change.Stack, Status: "CREATE_COMPLETE", Tags: change.Tags, TerminationProtection: change.Protected,
			Outputs: map[string]string{}, Parameters: map[string]string{},
		}
	}
	for _, change := range p.Changes {
		for _, parameter := range change.Parameters {
			deployed[change.Stack].Parameters[parameter.Name] = parameter.Value
			if from := parameter.From; from != nil {
				deployed[from.Stack].Outputs[from.Output] = value
				deployed[change.Stack].Parameters[parameter.Name] = value
			}
		}
	}
	return deployed
}
