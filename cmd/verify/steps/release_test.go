package steps

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestChoose(t *testing.T) {
	for name, c := range map[string]struct {
		minors       []int
		wanted       string
		older, newer string
		err          string
	}{
		"the newest two":                {minors: []int{35, 37, 36}, older: "1.36", newer: "1.37"},
		"the wanted one and its former": {minors: []int{35, 37, 36}, wanted: "1.36", older: "1.35", newer: "1.36"},
		"not beyond a gap":              {minors: []int{34, 35, 37}, older: "1.34", newer: "1.35"},
		"an unknown one":                {minors: []int{35, 36}, wanted: "1.38", err: "does not offer 1.38"},
		"one without a former":          {minors: []int{35, 36}, wanted: "1.35", err: "does not offer 1.35"},
		"a single one":                  {minors: []int{36}, err: "no two consecutive"},
	} {
		t.Run(name, func(t *testing.T) {
			older, newer, err := choose(c.minors, c.wanted)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{c.older, c.newer}, []string{older, newer})
		})
	}
}

func TestReleaseYAML(t *testing.T) {
	r := release{
		name: "1.36-verify-abcdef", kubernetes: "1.36", image: "ami-0123456789abcdef0", addons: []addon{{"vpc-cni", "v1.21.1-eksbuild.1"}},
	}
	read, errs := api.ReadRelease("releases/"+r.name+".yaml", []byte(r.yaml()), api.Options{})
	require.Empty(t, errs)
	require.Equal(t, "1.36", read.Spec.KubernetesVersion)
	require.Equal(t, "ami-0123456789abcdef0", read.Spec.Images["amd64"])
	require.Equal(t, []api.Addon{{Name: "vpc-cni", Version: "v1.21.1-eksbuild.1"}}, read.Spec.Addons)
}
