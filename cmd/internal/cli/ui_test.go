package cli

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli/live"
	"github.com/drover-run/drover/shared/pool"
)

func TestParsePublish(t *testing.T) {
	for url, want := range map[string][2]string{
		"s3://pages/fleet":    {"pages", "fleet/"},
		"s3://pages/a/fleet/": {"pages", "a/fleet/"},
		"s3://pages":          {"pages", ""},
	} {
		bucket, prefix, err := parsePublish(url)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{bucket, prefix}, url)
	}
	for url, want := range map[string]string{
		"pages/fleet":               "is invalid: use s3://BUCKET/PREFIX",
		"s3:///fleet":               "is invalid",
		"s3://drover-state-0-x/ui/": "are drover's own",
	} {
		_, _, err := parsePublish(url)
		require.ErrorContains(t, err, want, url)
	}
}

func TestNodesByVersion(t *testing.T) {
	observed := &live.Cluster{
		Groups: map[string]pool.Group{"workers": {Desired: 3, TemplateVersion: "8", Instances: []pool.Instance{
			{ID: "i-1", State: pool.InService, TemplateVersion: "7"}, {ID: "i-2", State: pool.InService, TemplateVersion: "7"},
			{ID: "i-3", State: pool.InService, TemplateVersion: "8"},
		}}},
		Nodes: []pool.NodeHealth{{Instance: "i-1", Ready: true, KubeletVersion: "v1.36.1"}, {Instance: "i-2", KubeletVersion: "v1.36.1"}},
	}
	document := func() string {
		body, err := json.Marshal(nodesByVersion(observed))
		require.NoError(t, err)
		return string(body)
	}
	require.JSONEq(t, `{"pools":[{"name":"workers","desired":3,"inService":3,"ready":1,"versions":[
		{"template":"7","kubelet":"v1.36.1","nodes":2},{"template":"8","nodes":1}]}]}`, document())
	observed.Nodes, observed.NodesErr = nil, errors.New("forbidden")
	require.Contains(t, document(), `"unread":"the cluster was not read: forbidden"`)
	require.NotContains(t, document(), `"ready"`)
}
