package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/local/aws/ec2"
)

func TestWithImage(t *testing.T) {
	for name, tt := range map[string]struct {
		pool    string
		replace []string
		fails   string
	}{
		"of the pool":        {pool: "workers"},
		"of another pool":    {pool: "spot"},
		"of an unknown pool": {pool: "absent", fails: "has no pool absent"},
		"of a pool in another format": {
			pool: "workers", replace: []string{"- name: workers", `- name: "workers"`}, fails: "is not written as - name: workers",
		},
		"of a pool with an image": {
			pool: "workers", replace: []string{
				"minSize: 2\n      maxSize: 4", "minSize: 2\n      imageID: ami-00000000000000000\n      maxSize: 4",
			}, fails: "imageID",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := []byte(example(t, "clusters/demo.yaml", tt.replace...))
			cluster, err := cli.ParseCluster("demo.yaml", spec)
			require.NoError(t, err)
			image, changed, err := withImage("demo.yaml", cluster, "1.36", spec, tt.pool)
			if tt.fails != "" {
				require.ErrorContains(t, err, tt.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, ec2.RebuiltImageID("1.36", "amd64"), image)
			line := "      imageID: " + image + "\n"
			require.Equal(t, string(spec), strings.Replace(string(changed), line, "", 1), "nothing else changes")
			read, err := cli.ParseCluster("demo.yaml", changed)
			require.NoError(t, err)
			for _, pool := range read.Spec.Pools {
				require.Equal(t, pool.Name == tt.pool, pool.ImageID == image, pool.Name)
			}
		})
	}
}

func TestPrintDisruption(t *testing.T) {
	least := map[string]int{"web": 9, "cart": 3, "search": 3, "database": 2}
	healthy := func(_, name string) (int, int) { return 0, least[name] }
	var out bytes.Buffer
	require.NoError(t, printDisruption(&out, healthy))
	require.Regexp(t, `shop/web +Deployment +12 +maxUnavailable 25% +9 +9\n`, out.String())
	require.Regexp(t, `shop/log-agent +DaemonSet +each node +none +— +0\n`, out.String())
	least["web"], least["database"] = 8, 1
	require.EqualError(t, printDisruption(&out, healthy), "broken disruption budgets: shop/web, shop/database")
}

func TestRollOfNoCluster(t *testing.T) {
	r := drover(t, "local", "--roll", "workers")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, "give both")
}
