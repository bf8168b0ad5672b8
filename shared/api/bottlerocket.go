package api

// Bottlerocket: the settings of its nodes, and the fields of pools that it does not have.
// https://bottlerocket.dev/en/os/latest/api/settings/

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// bottlerocketKubelet are the fields of KubeletConfiguration that Bottlerocket has as settings of the same shape, and the names of those
// below settings.kubernetes.
// https://github.com/bottlerocket-os/bottlerocket-settings-sdk: bottlerocket-settings-models/settings-extensions/kubernetes/src/lib.rs
var bottlerocketKubelet = map[string]string{
	"allowedUnsafeSysctls":            "allowed-unsafe-sysctls",
	"containerLogMaxFiles":            "container-log-max-files",
	"containerLogMaxSize":             "container-log-max-size",
	"containerLogMaxWorkers":          "container-log-max-workers",
	"containerLogMonitorInterval":     "container-log-monitor-interval",
	"cpuCFSQuota":                     "cpu-cfs-quota-enforced",
	"cpuManagerPolicy":                "cpu-manager-policy",
	"cpuManagerReconcilePeriod":       "cpu-manager-reconcile-period",
	"eventBurst":                      "event-burst",
	"eventRecordQPS":                  "event-qps",
	"evictionHard":                    "eviction-hard",
	"evictionMaxPodGracePeriod":       "eviction-max-pod-grace-period",
	"evictionSoft":                    "eviction-soft",
	"evictionSoftGracePeriod":         "eviction-soft-grace-period",
	"imageGCHighThresholdPercent":     "image-gc-high-threshold-percent",
	"imageGCLowThresholdPercent":      "image-gc-low-threshold-percent",
	"kubeAPIBurst":                    "kube-api-burst",
	"kubeAPIQPS":                      "kube-api-qps",
	"kubeReserved":                    "kube-reserved",
	"memoryManagerPolicy":             "memory-manager-policy",
	"podPidsLimit":                    "pod-pids-limit",
	"registryBurst":                   "registry-burst",
	"registryPullQPS":                 "registry-qps",
	"reservedSystemCPUs":              "reserved-cpus",
	"seccompDefault":                  "seccomp-default",
	"shutdownGracePeriod":             "shutdown-grace-period",
	"shutdownGracePeriodCriticalPods": "shutdown-grace-period-for-critical-pods",
	"singleProcessOOMKill":            "single-process-oom-kill",
	"systemReserved":                  "system-reserved",
	"topologyManagerPolicy":           "topology-manager-policy",
	"topologyManagerScope":            "topology-manager-scope",
}

// BottlerocketSetting returns the setting below settings.kubernetes for a field of KubeletConfiguration.
func BottlerocketSetting(kubeletField string) (setting string, found bool) {
	setting, found = bottlerocketKubelet[kubeletField]
	return setting, found
}

// ownSettings are set by drover, or by Bottlerocket, or keep a node from joining. Their values say what to do instead.
var ownSettings = map[string]string{
	"kubernetes.api-server":               "drover sets it: remove it",
	"kubernetes.authentication-mode":      "Bottlerocket sets it, and EKS accepts no other: remove it",
	"kubernetes.bootstrap-token":          "nodes of EKS have no bootstrap tokens: remove it",
	"kubernetes.cloud-provider":           "Bottlerocket sets it, and EKS needs it: remove it",
	"kubernetes.cluster-certificate":      "drover sets it: remove it",
	"kubernetes.cluster-dns-ip":           "drover sets it from controlPlane.serviceCIDR: remove it",
	"kubernetes.cluster-domain":           "Bottlerocket sets it, and EKS uses cluster.local: remove it",
	"kubernetes.cluster-name":             "drover sets it: remove it",
	"kubernetes.hostname-override":        "Bottlerocket sets it, and drover finds the node of an instance by it: remove it",
	"kubernetes.hostname-override-source": "Bottlerocket sets it, and drover finds the node of an instance by it: remove it",
	"kubernetes.max-pods":                 "drover sets it: use maxPods of the pool",
	"kubernetes.node-labels":              "drover sets the labels: use labels of the pool",
	"kubernetes.node-taints":              "drover sets the taints: use taints of the pool",
	"kubernetes.provider-id":              "Bottlerocket sets it, and drover finds the node of an instance by it: remove it",
	"kubernetes.server-certificate":       "EKS signs the certificate of the kubelet: remove it",
	"kubernetes.server-key":               "EKS signs the certificate of the kubelet: remove it",
	"kubernetes.server-tls-bootstrap":     "Bottlerocket sets it, and EKS signs the certificate: remove it",
	"kubernetes.standalone-mode":          "a node that does not register never joins: remove it",
	"network.https-proxy":                 "drover sets it: use proxy of the pool",
	"network.no-proxy":                    "drover sets it: use proxy of the pool",
	"pki.drover":                          "drover sets it: use caBundle of the pool",
	// The node would wait for its instance to be in service, and the launch hook for the node.
	"autoscaling":    "drover's launch hook puts a node into service when it is Ready, so the node must not wait for that: remove it",
	"cloudformation": "drover signals CloudFormation when the node is Ready, and the node must not signal earlier: remove it",
}

// validateBottlerocket checks what only pools of Bottlerocket have, and what they do not have.
func validateBottlerocket(path *field.Path, p *Pool) (errs field.ErrorList) {
	settings := path.Child("image", "settings")
	if p.Image.Family != Bottlerocket {
		if len(p.Image.Settings) > 0 && p.Image.Family == AL2023 {
			errs = append(errs, field.Forbidden(settings, "only the family Bottlerocket has settings: use kubelet, kubeletFlags, files and "+
				"commands of the pool, or remove this field"))
		}
		return errs
	}
	lacks := func(name string, given bool, instead string) {
		if given {
			errs = append(errs, field.Forbidden(path.Child(name), "Bottlerocket does not have it: "+instead))
		}
	}
	lacks("localStorage", p.LocalStorage != "", "use a bootstrap command in image.settings.bootstrap-commands that runs "+
		"apiclient ephemeral-storage")
	lacks("kubeletFlags", len(p.KubeletFlags) > 0, "use kubelet or image.settings.kubernetes")
	lacks("files", len(p.Files) > 0, "its root file system cannot be written; use image.settings, or a bootstrap container in "+
		"image.settings.bootstrap-containers")
	lacks("commands", len(p.Commands) > 0, "it has no shell; use image.settings, or a bootstrap container in "+
		"image.settings.bootstrap-containers")
	for _, name := range slices.Sorted(maps.Keys(p.Kubelet)) {
		setting, found := bottlerocketKubelet[name]
		switch _, own := ownKubeletFields[name]; {
		case own: // it has its own error
		case !found:
			errs = append(errs, field.Forbidden(path.Child("kubelet", name), "Bottlerocket has no setting for it, or one of another shape: "+
				"remove it, or use image.settings.kubernetes"))
		case settingAt(p.Image.Settings, "kubernetes", setting) != nil:
			errs = append(errs, field.Forbidden(settings.Child("kubernetes", setting), fmt.Sprintf("kubelet.%s of the pool states it: remove one "+
				"of the two", name)))
		}
	}
	errs = append(errs, validateReserved(path, p)...)
	for i := range p.Volumes {
		if strings.HasSuffix(p.Volumes[i].Device, "b") && len(formats["device"].Wrong(p.Volumes[i].Device)) == 0 {
			errs = append(errs, field.Invalid(path.Child("volumes").Index(i).Child("device"), p.Volumes[i].Device,
				"is the data disk of Bottlerocket, which rootVolume describes: choose another letter"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ownSettings)) {
		if settingAt(p.Image.Settings, strings.Split(name, ".")...) != nil {
			errs = append(errs, field.Forbidden(settings.Child(name), ownSettings[name]))
		}
	}
	if k, stated := p.Image.Settings["kubernetes"]; stated {
		if _, ok := k.(map[string]any); !ok {
			errs = append(errs, field.Invalid(settings.Child("kubernetes"), field.OmitValueType{}, "must be an object, such as {log-level: 3}"))
		}
	}
	return append(errs, validateSettings(settings, p.Image.Settings)...)
}

// reservable are the resources that Bottlerocket reserves. It does not boot with others, such as pid.
// https://bottlerocket.dev/en/os/latest/api/settings/kubernetes/#kube-reserved
var reservable = []string{"cpu", "ephemeral-storage", "memory"}

// validateReserved checks the resources that are reserved, as fields of the kubelet and as settings.
func validateReserved(path *field.Path, p *Pool) (errs field.ErrorList) {
	check := func(at *field.Path, reserved any) {
		object, _ := reserved.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !slices.Contains(reservable, name) {
				errs = append(errs, field.Forbidden(at.Child(name), "Bottlerocket does not boot with it: it reserves "+
					strings.Join(reservable, ", ")+" only; remove it"))
			}
		}
	}
	for _, name := range []string{"kubeReserved", "systemReserved"} {
		check(path.Child("kubelet", name), p.Kubelet[name])
		setting := bottlerocketKubelet[name]
		check(path.Child("image", "settings", "kubernetes", setting), settingAt(p.Image.Settings, "kubernetes", setting))
	}
	return errs
}

// settingAt returns a value below settings, or nil.
func settingAt(settings map[string]any, path ...string) any {
	var v any = settings
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// validateSettings rejects what TOML cannot hold, and empty names.
func validateSettings(path *field.Path, v any) (errs field.ErrorList) {
	switch v := v.(type) {
	case nil:
		errs = append(errs, field.Required(path, "state a value, or remove the setting: TOML has no null"))
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, validateSettings(path.Child(name), v[name])...)
		}
	case []any:
		for i := range v {
			errs = append(errs, validateSettings(path.Index(i), v[i])...)
		}
	}
	return errs
}
