package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestBottlerocket(t *testing.T) {
	const image = "image: {family: Bottlerocket, variant: NvidiaFIPS, settings: {kernel: {lockdown: integrity}, " +
		"kubernetes: {log-level: 3}}}"
	cluster := readCluster(t, edit(t, good, pool(image+"\n      kubelet: {evictionHard: {memory.available: 5%}}\n"+
		"      imageID: ami-11111111\n      volumes: [{device: /dev/xvdc, sizeGiB: 10}]")))
	require.Equal(t, map[string]any{
		"kernel": map[string]any{"lockdown": "integrity"}, "kubernetes": map[string]any{"log-level": int64(3)},
	}, cluster.Spec.Pools[0].Image.Settings)
	require.Equal(t, "Bottlerocket/NvidiaFIPS", cluster.Spec.Pools[0].Image.String())
	require.Equal(t, "AL2023/Standard", api.Image{}.String())
	setting, found := api.BottlerocketSetting("cpuCFSQuota")
	require.True(t, found)
	require.Equal(t, "cpu-cfs-quota-enforced", setting)
}

func TestBottlerocketIsRefused(t *testing.T) {
	const family = "image: {family: Bottlerocket}\n      "
	settings := func(text string) pairs { return pool("image: {family: Bottlerocket, settings: {" + text + "}}") }
	for name, c := range map[string]struct {
		edits pairs
		want  string
	}{
		"FIPS of AL2023": {
			pool("image: {variant: FIPS}"), `spec.pools[0].image.variant: Invalid value: "FIPS": AWS has no FIPS image of AL2023: use the family ` +
				`Bottlerocket, or remove the variant`,
		},
		"NvidiaFIPS of AL2023": {
			pool("image: {variant: NvidiaFIPS}"), `spec.pools[0].image.variant: Invalid value: "NvidiaFIPS": AWS has no FIPS image of AL2023: ` +
				`use the family Bottlerocket, or remove the variant`,
		},
		"Neuron of Bottlerocket": {
			pool("image: {family: Bottlerocket, variant: Neuron}"), `spec.pools[0].image.variant: Invalid value: "Neuron": AWS has no Neuron ` +
				`image of Bottlerocket: use one of Standard, Nvidia, FIPS, NvidiaFIPS`,
		},
		"settings of AL2023": {
			pool("image: {settings: {motd: hello}}"), `spec.pools[0].image.settings: Forbidden: only the family Bottlerocket has settings: use ` +
				`kubelet, kubeletFlags, files and commands of the pool, or remove this field`,
		},
		"files": {
			pool(family + "files: [{path: /a, content: b}]"), `spec.pools[0].files: Forbidden: Bottlerocket does not have it: its root file ` +
				`system cannot be written; use image.settings, or a bootstrap container in image.settings.bootstrap-containers`,
		},
		"commands": {
			pool(family + `commands: ["true"]`), `spec.pools[0].commands: Forbidden: Bottlerocket does not have it: it has no shell; use ` +
				`image.settings, or a bootstrap container in image.settings.bootstrap-containers`,
		},
		"kubeletFlags": {
			pool(family + "kubeletFlags: [--v=2]"), `spec.pools[0].kubeletFlags: Forbidden: Bottlerocket does not have it: use kubelet or ` +
				`image.settings.kubernetes`,
		},
		"a field of the kubelet that Bottlerocket does not have": {
			pool(family + "kubelet: {failSwapOn: false}"), `spec.pools[0].kubelet.failSwapOn: Forbidden: Bottlerocket has no setting for it, ` +
				`or one of another shape: remove it, or use image.settings.kubernetes`,
		},
		"a resource that Bottlerocket does not reserve": {
			pool(family + "kubelet: {kubeReserved: {cpu: 10m, pid: 100}}"), `spec.pools[0].kubelet.kubeReserved.pid: Forbidden: Bottlerocket ` +
				`does not boot with it: it reserves cpu, ephemeral-storage, memory only; remove it`,
		},
		"such a resource among the settings": {
			settings("kubernetes: {system-reserved: {pid: 100}}"), `spec.pools[0].image.settings.kubernetes.system-reserved.pid: Forbidden: ` +
				`Bottlerocket does not boot with it: it reserves cpu, ephemeral-storage, memory only; remove it`,
		},
		"a setting that the kubelet's fields state": {
			pool("image: {family: Bottlerocket, settings: {kubernetes: {pod-pids-limit: 1}}}\n      kubelet: {podPidsLimit: 2}"),
			`spec.pools[0].image.settings.kubernetes.pod-pids-limit: Forbidden: kubelet.podPidsLimit of the pool states it: remove one of the two`,
		},
		"a volume at the place of the data disk": {
			pool(family + "volumes: [{device: /dev/sdb, sizeGiB: 10}]"), `spec.pools[0].volumes[0].device: Invalid value: "/dev/sdb": is the ` +
				`data disk of Bottlerocket, which rootVolume describes: choose another letter`,
		},
		"the name of the cluster": {
			settings("kubernetes: {cluster-name: other}"), `spec.pools[0].image.settings.kubernetes.cluster-name: Forbidden: drover sets it: ` +
				`remove it`,
		},
		"labels": {
			settings("kubernetes: {node-labels: {a: b}}"), `spec.pools[0].image.settings.kubernetes.node-labels: Forbidden: drover sets the ` +
				`labels: use labels of the pool`,
		},
		"the number of pods": {
			settings("kubernetes: {max-pods: 7}"), `spec.pools[0].image.settings.kubernetes.max-pods: Forbidden: drover sets it: use maxPods of ` +
				`the pool`,
		},
		"a signal": {
			settings("cloudformation: {should-signal: true}"), `spec.pools[0].image.settings.cloudformation: Forbidden: drover signals ` +
				`CloudFormation when the node is Ready, and the node must not signal earlier: remove it`,
		},
		"a wait that the launch hook would never end": {
			settings("autoscaling: {should-wait: true}"), `spec.pools[0].image.settings.autoscaling: Forbidden: drover's launch hook puts a ` +
				`node into service when it is Ready, so the node must not wait for that: remove it`,
		},
		"null": {
			settings("ntp: {time-servers: [a, null]}"), `spec.pools[0].image.settings.ntp.time-servers[1]: Required value: state a value, or ` +
				`remove the setting: TOML has no null`,
		},
		"settings of Kubernetes that are no object": {
			settings("kubernetes: 7"), `spec.pools[0].image.settings.kubernetes: Invalid value: must be an object, such as {log-level: 3}`,
		},
		"settings that are no object": {
			pool("image: {family: Bottlerocket, settings: [a]}"), `spec.pools[0].image.settings: Invalid value: a list: must be an object`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := api.ReadCluster("demo.yaml", edit(t, good, c.edits), options)
			require.Len(t, errs, 1)
			require.Contains(t, lines(errs)[0], ": "+c.want)
		})
	}
}
