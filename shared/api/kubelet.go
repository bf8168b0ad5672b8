package api

// The configuration of the kubelet in a pool: what a spec may not state, and what this drover does not know.

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ownKubeletFields are set by drover from other fields, or by the AMI's nodeadm. Their values say what to do instead.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/#kubeletoptions
var ownKubeletFields = map[string]string{
	"apiVersion":               "nodeadm sets it: remove it",
	"kind":                     "nodeadm sets it: remove it",
	"authentication":           "nodeadm sets it, so that the API server can reach the kubelet: remove it",
	"authorization":            "nodeadm sets it, so that the API server can reach the kubelet: remove it",
	"clusterDomain":            "nodeadm sets it, and EKS uses cluster.local: remove it",
	"containerRuntimeEndpoint": "nodeadm sets it: remove it",
	"maxPods":                  "drover sets it: use maxPods of the pool",
	"providerID":               "nodeadm sets it, and drover finds the node of an instance by it: remove it",
	"registerNode":             "a node that does not register never joins: remove it",
	"registerWithTaints":       "drover sets the taints: use taints of the pool",
	"serverTLSBootstrap":       "nodeadm sets it, and EKS signs the certificate: remove it",
	"tlsCertFile":              "EKS signs the certificate of the kubelet: remove it",
	"tlsPrivateKeyFile":        "EKS signs the certificate of the kubelet: remove it",
}

// kubeletField matches the names of fields.
var kubeletField = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

func validateKubelet(path *field.Path, config map[string]any) (errs field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		at := path.Child(name)
		switch why, own := ownKubeletFields[name]; {
		case own:
			errs = append(errs, field.Forbidden(at, why))
		case !kubeletField.MatchString(name):
			errs = append(errs, field.Invalid(at, shorten(name), "must be a field of KubeletConfiguration, such as evictionHard"))
		case config[name] == nil:
			errs = append(errs, field.Required(at, "state a value, or remove the field"))
		}
	}
	return errs
}

// unknownKubeletFields warns of fields that the kubelet of Kubernetes 1.36 does not have. A newer or an older one may have them. A kubelet
// ignores the fields that it does not know.
func unknownKubeletFields(pools []Pool) (warnings []string) {
	for i, pool := range pools {
		for _, name := range slices.Sorted(maps.Keys(pool.Kubelet)) {
			if _, own := ownKubeletFields[name]; own || slices.Contains(kubeletFields, name) {
				continue
			}
			hint := ""
			for _, known := range kubeletFields {
				if strings.EqualFold(known, name) || editDistance(known, name) <= 2 {
					hint = fmt.Sprintf(", did you mean %q?", known)
				}
			}
			warnings = append(warnings, fmt.Sprintf("spec.pools[%d].kubelet.%s: KubeletConfiguration of Kubernetes 1.36 has no such field%s: "+
				"a kubelet ignores fields that it does not know", i, name, hint))
		}
	}
	return warnings
}

// kubeletFields are the fields of KubeletConfiguration of Kubernetes 1.36.
// https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/#kubelet-config-k8s-io-v1beta1-KubeletConfiguration
var kubeletFields = []string{
	"address", "allowedUnsafeSysctls", "authentication", "authorization", "cgroupDriver", "cgroupRoot", "cgroupsPerQOS", "clusterDNS",
	"clusterDomain", "configMapAndSecretChangeDetectionStrategy", "containerLogMaxFiles", "containerLogMaxSize",
	"containerLogMaxWorkers", "containerLogMonitorInterval", "containerRuntimeEndpoint", "contentType", "cpuCFSQuota",
	"cpuCFSQuotaPeriod", "cpuManagerPolicy", "cpuManagerPolicyOptions", "cpuManagerReconcilePeriod", "crashLoopBackOff",
	"enableContentionProfiling", "enableControllerAttachDetach", "enableDebugFlagsHandler", "enableDebuggingHandlers",
	"enableProfilingHandler", "enableServer", "enableSystemLogHandler", "enableSystemLogQuery", "enforceNodeAllocatable", "eventBurst",
	"eventRecordQPS", "evictionHard", "evictionMaxPodGracePeriod", "evictionMinimumReclaim", "evictionPressureTransitionPeriod",
	"evictionSoft", "evictionSoftGracePeriod", "failCgroupV1", "failSwapOn", "featureGates", "fileCheckFrequency", "hairpinMode",
	"healthzBindAddress", "healthzPort", "httpCheckFrequency", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent",
	"imageMaximumGCAge", "imageMinimumGCAge", "imagePullCredentialsVerificationPolicy", "imageServiceEndpoint", "iptablesDropBit",
	"iptablesMasqueradeBit", "kernelMemcgNotification", "kubeAPIBurst", "kubeAPIQPS", "kubeReserved", "kubeReservedCgroup",
	"kubeletCgroups", "localStorageCapacityIsolation", "logging", "makeIPTablesUtilChains", "maxOpenFiles", "maxParallelImagePulls",
	"maxPods", "memoryManagerPolicy", "memoryReservationPolicy", "memorySwap", "memoryThrottlingFactor", "mergeDefaultEvictionSettings",
	"nodeLeaseDurationSeconds", "nodeStatusMaxImages", "nodeStatusReportFrequency", "nodeStatusUpdateFrequency", "oomScoreAdj",
	"podCIDR", "podLogsDir", "podPidsLimit", "podsPerCore", "port", "preloadedImagesVerificationAllowlist", "protectKernelDefaults",
	"providerID", "qosReserved", "readOnlyPort", "registerNode", "registerWithTaints", "registryBurst", "registryPullQPS",
	"reservedMemory", "reservedSystemCPUs", "resolvConf", "rotateCertificates", "runOnce", "runtimeRequestTimeout", "seccompDefault",
	"serializeImagePulls", "serverTLSBootstrap", "showHiddenMetricsForVersion", "shutdownGracePeriod",
	"shutdownGracePeriodByPodPriority", "shutdownGracePeriodCriticalPods", "singleProcessOOMKill", "staticPodPath", "staticPodURL",
	"staticPodURLHeader", "streamingConnectionIdleTimeout", "syncFrequency", "systemCgroups", "systemReserved", "systemReservedCgroup",
	"tlsCertFile", "tlsCipherSuites", "tlsCurvePreferences", "tlsMinVersion", "tlsPrivateKeyFile", "topologyManagerPolicy",
	"topologyManagerPolicyOptions", "topologyManagerScope", "tracing", "userNamespaces", "volumePluginDir", "volumeStatsAggPeriod",
}
