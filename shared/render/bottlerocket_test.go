package render

// User data of Bottlerocket, as a TOML parser reads it that drover does not use.

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

func TestTOMLRoundTrip(t *testing.T) {
	value := map[string]any{
		"list": []any{true, 1.5, float64(7), "x", []any{"y"}, map[string]any{"a b": "c"}}, "empty": map[string]any{}, "none": []any{},
		"large": int64(math.MaxInt64), "small": 1e-7, "huge": 1e300, "whole": 7,
	}
	for _, s := range nasty {
		value[s] = s
	}
	encoded, err := encodeTOML(value)
	require.NoError(t, err)
	require.NotContains(t, encoded, "\n")
	got := readTOML(t, "a = "+encoded+"\n")["a"].(map[string]any)
	require.Len(t, got, len(value))
	for _, s := range nasty {
		require.Equal(t, s, got[s])
	}
	require.Equal(t, value["list"], got["list"])
	require.Equal(t, []any{}, got["none"])
	require.Equal(t, map[string]any{}, got["empty"])
	require.Equal(t, []any{float64(math.MaxInt64), 1e-7, 1e300, 7.0}, []any{got["large"], got["small"], got["huge"], got["whole"]})

	for name, test := range map[string]struct {
		value any
		says  string
	}{
		"null":                     {map[string]any{"a": nil}, "no TOML encoding of a <nil>"},
		"a type that TOML has not": {func() {}, "no TOML encoding"},
		"text that is not UTF-8":   {[]any{"\xff"}, "not UTF-8"},
		"a key that is not UTF-8":  {map[string]any{"\xff": 1}, "not UTF-8"},
		"a dynamic reference":      {"{{resolve:ssm:/secret}}", "{{resolve:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := encodeTOML(test.value)
			require.ErrorContains(t, err, test.says)
		})
	}
	for _, none := range []any{nil, []string{}, 7} {
		_, err := encodeTOMLKey(none)
		require.ErrorContains(t, err, "no TOML key")
	}
}

// FuzzTOML checks that any string is the same key and the same value to a parser, alone and in a table's header.
func FuzzTOML(f *testing.F) {
	for _, s := range nasty {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		value, err := encodeTOML(map[string]any{s: []any{s}})
		key, failed := encodeTOMLKey([]string{"settings", s})
		require.Equal(t, err == nil, failed == nil)
		if err != nil {
			return
		}
		got := readTOML(t, "["+key+"]\na = "+value+"\n")
		require.Equal(t, map[string]any{"settings": map[string]any{s: map[string]any{"a": map[string]any{s: []any{s}}}}}, got)
	})
}

func bottlerocketPool(t *testing.T, change func(*api.Pool)) (map[string]any, error) {
	t.Helper()
	in := resolve(t, fullCluster())
	change(&in.Resolved.Spec.Pools[1])
	out, err := Render(in)
	if err != nil {
		return nil, err
	}
	return readUserData(t, userDataOf(t, stackOf(t, out, "pool-batch"))).Config, nil
}

func TestBottlerocketHasThePoolsFields(t *testing.T) {
	settings, err := bottlerocketPool(t, func(p *api.Pool) {
		p.MaxPods, p.Labels = 58, map[string]string{"example.com/team": "shop"}
		p.Taints = append(p.Taints, api.Taint{Key: "example.com/dedicated", Effect: "NoExecute"},
			api.Taint{Key: "spot", Effect: "PreferNoSchedule"})
	})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"settings": map[string]any{
		"motd": "hello", "kernel": map[string]any{"lockdown": "integrity", "sysctl": map[string]any{"net.core.somaxconn": "4096"}},
		"container-registry": map[string]any{"mirrors": []any{map[string]any{
			"registry": "docker.io", "endpoint": []any{"https://mirror.example.com"},
		}}},
		"kubernetes": map[string]any{
			"api-server": parameterValues["ClusterEndpoint"], "cluster-certificate": parameterValues["ClusterCertificateAuthority"],
			"cluster-name": "drover-full", "cluster-dns-ip": "172.21.0.10", "max-pods": 58.0, "log-level": 3.0,
			"node-labels": map[string]any{names.LabelPool: "batch", "example.com/team": "shop"},
			"node-taints": map[string]any{
				"example.com/dedicated": []any{"batch:NoSchedule", ":NoExecute"}, "spot": []any{":PreferNoSchedule"},
			},
			"eviction-hard": map[string]any{"memory.available": "5%"}, "pod-pids-limit": 1024.0,
		},
	}}, settings)
}

func TestBottlerocketWithAProxy(t *testing.T) {
	settings, err := bottlerocketPool(t, func(p *api.Pool) {
		p.Proxy = &api.Proxy{URL: "http://proxy.example.com:3128", NoProxy: []string{".example.com"}}
		p.Image.Settings["network"] = map[string]any{"hostname": "batch"}
	})
	require.NoError(t, err)
	settings = settings["settings"].(map[string]any)
	network := settings["network"].(map[string]any)
	require.Equal(t, "http://proxy.example.com:3128", network["https-proxy"])
	require.Equal(t, "batch", network["hostname"])
	direct := network["no-proxy"].([]any)
	require.Equal(t, []any{"localhost", ".example.com"}, []any{direct[0], direct[len(direct)-1]})
	in := resolve(t, fullCluster())
	in.Resolved.Spec.Pools[1].CABundle = rootCertificate
	require.Equal(t, rootCertificate, readUserData(t, userDataOf(t, stackOf(t, render(t, in), "pool-batch"))).Certificates)

	_, err = bottlerocketPool(t, func(p *api.Pool) {
		p.Proxy = &api.Proxy{URL: "http://proxy.example.com:3128"}
		p.Image.Settings["network"] = map[string]any{"https-proxy": "http://other"}
	})
	require.ErrorContains(t, err, "image.settings.network.https-proxy: it is stated twice")
}

func TestBottlerocketRefusesToRender(t *testing.T) {
	for want, change := range map[string]func(*api.Pool){
		"has no files":  func(p *api.Pool) { p.Files = []api.File{{Path: "/a"}} },
		"commands":      func(p *api.Pool) { p.Commands = []string{"true"} },
		"kubelet flags": func(p *api.Pool) { p.KubeletFlags = []string{"--v=2"} },
		"kubelet.failSwapOn: Bottlerocket has no": func(p *api.Pool) { p.Kubelet = map[string]any{"failSwapOn": false} },
		"image.settings.kubernetes.cluster-name: it is stated twice": func(p *api.Pool) {
			p.Image.Settings["kubernetes"] = map[string]any{"cluster-name": "other"}
		},
		"image.settings.kubernetes: it is stated twice": func(p *api.Pool) { p.Image.Settings["kubernetes"] = "x" },
		"a taint of the kubelet cannot hold":            func(p *api.Pool) { p.Taints[0].Value = "a:NoExecute" },
		"bytes, and EC2 takes at most":                  func(p *api.Pool) { p.Image.Settings["motd"] = strings.Repeat("x", MaxUserData) },
	} {
		t.Run(want, func(t *testing.T) {
			_, err := bottlerocketPool(t, change)
			require.ErrorContains(t, err, want)
		})
	}
}

func TestClusterDNS(t *testing.T) {
	for cidr, want := range map[string]string{
		"172.20.0.0/16": "172.20.0.10", "10.100.0.0/12": "10.96.0.10", "192.168.7.0/24": "192.168.7.10", "10.0.16.0/20": "10.0.16.10",
	} {
		got, err := clusterDNS(cidr)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, none := range []string{"", "x", "fd00::/108"} {
		_, err := clusterDNS(none)
		require.ErrorContains(t, err, "no IPv4 range")
	}
}
