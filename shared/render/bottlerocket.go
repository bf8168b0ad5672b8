package render

// User data of Bottlerocket: its settings in TOML. It has no script that fetches more from the state bucket.
// https://bottlerocket.dev/en/os/latest/api/settings/kubernetes/

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// bottlerocketParams are the parameters of user-data.toml.tmpl.
type bottlerocketParams struct{ Tables []tomlTable }

// bottlerocketData renders the user data of a pool of Bottlerocket.
func (r *renderer) bottlerocketData(pool *api.Pool) ([]part, error) {
	if len(pool.Files)+len(pool.Commands)+len(pool.KubeletFlags) > 0 {
		return nil, errors.New("Bottlerocket has no files, commands or kubelet flags")
	}
	settings, err := r.bottlerocketSettings(pool)
	if err != nil {
		return nil, err
	}
	text, err := r.execute("user-data.toml.tmpl", &bottlerocketParams{tomlTables([]string{"settings"}, settings)})
	if err != nil {
		return nil, err
	}
	parts, size := splitParts(text)
	if size > MaxUserData {
		return nil, fmt.Errorf("its user data has %d bytes, and EC2 takes at most %d", size, MaxUserData)
	}
	return parts, nil
}

// bottlerocketSettings returns everything below settings.
func (r *renderer) bottlerocketSettings(pool *api.Pool) (map[string]any, error) {
	dns, err := clusterDNS(r.Resolved.Spec.ControlPlane.ServiceCIDR)
	if err != nil {
		return nil, err
	}
	labels := map[string]any{}
	for key, value := range nodeLabels(pool) {
		labels[key] = value
	}
	kubernetes := map[string]any{
		"api-server":          stackValue("ClusterEndpoint"),
		"cluster-certificate": stackValue("ClusterCertificateAuthority"),
		"cluster-name":        eksName(r.Resolved),
		"cluster-dns-ip":      dns,
		"node-labels":         labels,
	}
	if pool.MaxPods > 0 {
		kubernetes["max-pods"] = pool.MaxPods
	}
	if len(pool.Taints) > 0 {
		taints := map[string]any{}
		for i, taint := range pool.Taints {
			if strings.Contains(taint.Value+taint.Effect, ":") {
				return nil, fmt.Errorf("taints[%d]: a taint of the kubelet cannot hold %q", i, taint)
			}
			effects, _ := taints[taint.Key].([]any)
			taints[taint.Key] = append(effects, taint.Value+":"+taint.Effect)
		}
		kubernetes["node-taints"] = taints
	}
	for name, value := range pool.Kubelet {
		setting, found := api.BottlerocketSetting(name)
		if !found {
			return nil, fmt.Errorf("kubelet.%s: Bottlerocket has no setting for it", name)
		}
		kubernetes[setting] = value
	}
	settings := map[string]any{"kubernetes": kubernetes}
	if pool.Proxy != nil {
		var direct []any
		for _, host := range append(directHosts(r.Cell, r.Resolved), pool.Proxy.NoProxy...) {
			direct = append(direct, host)
		}
		settings["network"] = map[string]any{"https-proxy": pool.Proxy.URL, "no-proxy": direct}
	}
	certificates, err := pool.Certificates()
	if err != nil {
		return nil, fmt.Errorf("caBundle: %w", err)
	}
	if certificates != "" {
		bundle := base64.StdEncoding.EncodeToString([]byte(certificates))
		settings["pki"] = map[string]any{"drover": map[string]any{"data": bundle, "trusted": true}}
	}
	if err := mergeSettings(settings, pool.Image.Settings); err != nil {
		return nil, fmt.Errorf("image.settings.%w", err)
	}
	return settings, nil
}

// clusterDNS returns the address of the cluster's DNS service: the tenth of the range of services.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_KubernetesNetworkConfigRequest.html
func clusterDNS(serviceCIDR string) (string, error) {
	prefix, err := netip.ParsePrefix(serviceCIDR)
	if err != nil || !prefix.Addr().Is4() {
		return "", fmt.Errorf("controlPlane.serviceCIDR: %q is no IPv4 range", serviceCIDR)
	}
	address := prefix.Masked().Addr().As4()
	address[3] += 10 // a range of services starts at a multiple of 256: it is a /24 or larger
	return netip.AddrFrom4(address).String(), nil
}
