package status

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIgnoredOf(t *testing.T) {
	uploads, more := IgnoredOf([]string{
		"clusters/demo.yaml", "releases/r1.yaml", "releases/channels.yaml", "clusters/", "clusters/old/",
		"clusters/x.yml", "clusters/a/x.yaml", "cluster/x.yaml", "x.YAML", "Releases/r2.yaml", "releases/r2.yml", "channels.yaml", "README.md",
		"clusters/.yaml", "rollouts/next.yaml", "freezes/sale.yaml", "decisions/next/go.yaml",
		"rollouts/next.yml", "freeze/sale.yaml", "decisions/go.yaml", "decision/next/go.yaml",
	})
	require.Equal(t, []IgnoredUpload{
		{"README.md", ""}, {
			"Releases/r2.yaml", "releases/r2.yaml",
		}, {"channels.yaml", "releases/channels.yaml"}, {"cluster/x.yaml", "clusters/x.yaml"},
		{"clusters/.yaml", ""}, {"clusters/a/x.yaml", "clusters/x.yaml"}, {"clusters/x.yml", "clusters/x.yaml"},
		{"decision/next/go.yaml", "decisions/next/go.yaml"}, {"decisions/go.yaml", ""}, {"freeze/sale.yaml", "freezes/sale.yaml"},
		{"releases/r2.yml", "releases/r2.yaml"}, {"rollouts/next.yml", "rollouts/next.yaml"}, {"x.YAML", "clusters/x.yaml"},
	}, uploads)
	require.Zero(t, more)

	var many []string
	for i := range 130 {
		many = append(many, fmt.Sprintf("%03d.txt", i))
	}
	uploads, more = IgnoredOf(many)
	require.Len(t, uploads, 100)
	require.Equal(t, 30, more)
}
