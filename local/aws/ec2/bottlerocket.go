package ec2

// User data of Bottlerocket nodes: settings in TOML. The OS sends them to its API, which refuses settings that it does not know. Then the
// boot stops, and the node never joins.
// https://bottlerocket.dev/en/os/latest/api/settings/

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// bottlerocketSettings are the groups of settings of images for Kubernetes on AWS.
// https://github.com/bottlerocket-os/bottlerocket/blob/develop/sources/settings-plugins/aws-k8s/src/lib.rs
var bottlerocketSettings = strings.Fields(`
	autoscaling aws boot bootstrap-commands bootstrap-containers cloudformation container-registry container-runtime dns host-containers
	kernel kubernetes metrics motd network ntp oci-defaults oci-hooks pki updates`)

// nvidiaSettings is the group that only images for NVIDIA's GPUs have.
const nvidiaSettings = "kubelet-device-plugins"

// kubernetesSettings are the settings below settings.kubernetes.
// https://github.com/bottlerocket-os/bottlerocket-settings-sdk: bottlerocket-settings-models/settings-extensions/kubernetes/src/lib.rs
var kubernetesSettings = strings.Fields(`
	allowed-unsafe-sysctls api-server authentication-mode bootstrap-token cloud-provider cluster-certificate cluster-dns-ip cluster-domain
	cluster-name container-log-max-files container-log-max-size container-log-max-workers container-log-monitor-interval
	cpu-cfs-quota-enforced cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period credential-providers
	device-ownership-from-security-context event-burst event-qps eviction-hard eviction-max-pod-grace-period eviction-soft
	eviction-soft-grace-period hostname-override hostname-override-source image-gc-high-threshold-percent
	image-gc-low-threshold-percent kube-api-burst kube-api-qps kube-reserved log-level max-pods memory-manager-policy
	memory-manager-reserved-memory memory-swap-behavior node-ip node-labels node-taints pod-infra-container-image pod-pids-limit
	provider-id registry-burst registry-qps reserved-cpus seccomp-default server-certificate server-key server-tls-bootstrap
	shutdown-grace-period shutdown-grace-period-for-critical-pods single-process-oom-kill standalone-mode static-pods
	static-pods-enabled system-reserved topology-manager-policy topology-manager-scope`)

// parseSettings reads the user data of a Bottlerocket node: what of it the registration needs.
func (i Image) parseSettings(data []byte) (registration, error) {
	r := registration{kubelet: kubelet{labels: map[string]string{}}}
	var document map[string]any
	if err := toml.NewDecoder(bytes.NewReader(data)).Decode(&document); err != nil {
		return r, fmt.Errorf("early-boot-config: user data is no TOML: %w", err)
	}
	settings, ok := document["settings"].(map[string]any)
	for name := range document {
		if name != "settings" || !ok {
			return r, fmt.Errorf("early-boot-config: user data has %q, and only settings is known", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		known := slices.Contains(bottlerocketSettings, name) || name == nvidiaSettings && strings.HasPrefix(i.Variant, "nvidia")
		if !known {
			return r, fmt.Errorf("early-boot-config: Error 400 when sending PATCH to /tx: unknown field `%s`", name)
		}
	}
	kubernetes, _ := settings["kubernetes"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(kubernetes)) {
		if !slices.Contains(kubernetesSettings, name) {
			return r, fmt.Errorf("early-boot-config: Error 400 when sending PATCH to /tx: unknown field `kubernetes.%s`", name)
		}
	}
	for _, name := range []string{"kube-reserved", "system-reserved"} {
		reserved, _ := kubernetes[name].(map[string]any)
		for _, resource := range slices.Sorted(maps.Keys(reserved)) {
			if !slices.Contains(reservable, resource) {
				return r, fmt.Errorf("early-boot-config: Error 400 when sending PATCH to /tx: `kubernetes.%s`: unknown variant `%s`, expected one of "+
					"`cpu`, `memory`, `ephemeral-storage`", name, resource)
			}
		}
	}
	return r, r.readKubernetes(kubernetes)
}

// reservable are the resources of settings.kubernetes.kube-reserved and system-reserved.
// https://github.com/bottlerocket-os/bottlerocket-settings-sdk: bottlerocket-settings-models/modeled-types/src/kubernetes.rs
var reservable = []string{"cpu", "memory", "ephemeral-storage"}

// readKubernetes reads settings.kubernetes. A machine without a cluster boots and never joins, like one of AL2023 without a NodeConfig.
func (r *registration) readKubernetes(kubernetes map[string]any) error {
	for name, to := range map[string]*string{
		"api-server": &r.endpoint, "cluster-certificate": &r.authority, "cluster-name": &r.cluster,
	} {
		if *to, _ = kubernetes[name].(string); *to == "" {
			return fmt.Errorf("settings.kubernetes.%s is missing: the kubelet is not started", name)
		}
	}
	dns, _ := kubernetes["cluster-dns-ip"].(string)
	if _, err := netip.ParseAddr(dns); err != nil {
		return fmt.Errorf("settings.kubernetes.cluster-dns-ip: %q is no address", dns)
	}
	switch n := kubernetes["max-pods"].(type) {
	case nil:
	case int64:
		r.maxPods = int(n)
	default:
		return fmt.Errorf("settings.kubernetes.max-pods is %v, not a number", n)
	}
	labels, _ := kubernetes["node-labels"].(map[string]any)
	for key, value := range labels {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("settings.kubernetes.node-labels: %s is no string", key)
		}
		r.labels[key] = text
	}
	taints, _ := kubernetes["node-taints"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(taints)) {
		list, ok := taints[key].([]any)
		if !ok {
			return errors.New("settings.kubernetes.node-taints: each value must be a list")
		}
		for _, item := range list {
			value, effect, _ := strings.Cut(fmt.Sprint(item), ":")
			read, err := parseTaints(key + "=" + value + ":" + effect)
			if err != nil {
				return err
			}
			r.taints = append(r.taints, read...)
		}
	}
	return nil
}

// osImage is the name of the operating system in the node's information.
func (i Image) osImage() string {
	if i.Family == Bottlerocket {
		variant := i.KubernetesVersion
		if i.Variant != "" {
			variant += "-" + i.Variant
		}
		return "Bottlerocket OS 1.60.1 (aws-k8s-" + variant + ")"
	}
	return "Amazon Linux 2023"
}
