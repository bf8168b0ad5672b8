package account

// Changes of a cluster: during convergence, by adding, rolling and removing pools, and with strings that would do harm
// if they were interpreted.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// object is a part of a spec.
type object = map[string]any

// specOf returns a cluster in two zones with its own VPC.
func specOf(cluster string, pools ...object) object {
	return object{
		"apiVersion": "drover.run/v1alpha1", "kind": "Cluster", "metadata": object{"name": cluster},
		"spec": object{
			"release": object{"name": "1.36-1"},
			"network": object{"cidr": "10.7.0.0/16", "zones": []string{"us-east-1a", "us-east-1b"}, "natGateways": "None"},
			"pools":   pools,
		},
	}
}

func pool(name string, size int) object {
	return object{"name": name, "instanceTypes": []string{"m7i.large"}, "minSize": size, "maxSize": size + 1}
}

// text returns the YAML of a spec.
func text(t *testing.T, spec object) string {
	t.Helper()
	body, err := yaml.Marshal(spec)
	require.NoError(t, err)
	return string(body)
}

// harmful strings are code or structure to a program that reads them on their way to a node.
var harmful = strings.Join([]string{
	`{{ .Secret }} {{- end }}`, `${AWS::AccountId} ${!x} !Ref Vpc !Sub x`, `{"Fn::Sub": "x"}`, `&anchor *alias <<: x`, "'; touch /oops #",
	`"; $(id) ` + "`id`",
	`--boundary`, `EOF`, `%s %d \n \0`, "\ttab", "äöü ☃ 🐂", `{% $states.input %}`, `- [ "` + `' ] : |`, "---", "...", "",
}, "\n")

func TestChanges(t *testing.T) {
	t.Parallel()
	const name = "moving"
	cloud.retire(t, name)
	file := filepath.Join(t.TempDir(), "a folder", "motd")
	first := specOf(name, pool("one", 2))
	one := first["spec"].(object)["pools"].([]object)[0]
	one["files"] = []object{{"path": file, "mode": "0640", "content": harmful}}
	one["commands"] = []string{"printf %s '" + strings.ReplaceAll(harmful, "'", `'\''`) + "' >" + "'" + file + ".copy'"}
	one["labels"] = object{"example.com/y": "no", "n": "0x1f", "empty": "", "true": "1e3"}
	first["metadata"].(object)["annotations"] = object{"example.com/nasty": harmful}
	first["spec"].(object)["addons"] = []object{{"name": "vpc-cni", "configuration": object{"env": object{"NASTY": harmful}}}}
	first["spec"].(object)["tags"] = object{"y": "no", "octal": "0777", "a:b/c=d+e-f@g h": "1:2:3 = @_./+-"}

	// The spec changes while the control plane is created: the execution continues with it before the next stack.
	cloud.upload(t, name, text(t, first))
	cloud.until(t, func() bool {
		out, err := cloudformation.NewFromConfig(cloud.Config()).DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{
			StackName: aws.String(names.Stack(name, names.ControlPlane)),
		})
		return err == nil && out.Stacks[0].StackStatus == "CREATE_IN_PROGRESS"
	}, func() string { return cloud.executions(name) })
	first["spec"].(object)["pools"] = []object{one, pool("two", 1)}
	version := cloud.upload(t, name, text(t, first))
	s := cloud.ready(t, name, version)

	t.Run("continues with a spec that changes during convergence", func(t *testing.T) {
		require.Equal(t, version, s.ObservedVersion)
		require.Equal(t, version, tagsOf(stackOf(t, name, "pool-one"))[names.TagSpecVersion], "a superseded spec creates nothing")
		require.Equal(t, version, tagsOf(stackOf(t, name, "pool-two"))[names.TagSpecVersion])
		require.Equal(t, map[string]int{"one": 2, "two": 1}, poolsOf(t, name))
	})
	t.Run("protects stateful resources", func(t *testing.T) {
		for _, stack := range []string{"network", "control-plane", "addons", "pool-one", "addons-on-nodes"} {
			protected := stack == "network" || stack == "control-plane"
			require.Equal(t, protected, aws.ToBool(stackOf(t, name, stack).EnableTerminationProtection), stack)
		}
		client := eks.NewFromConfig(cloud.Config())
		_, err := client.DeleteCluster(t.Context(), &eks.DeleteClusterInput{Name: aws.String(names.EKSCluster(name))})
		require.ErrorContains(t, err, "deletion protection")
		_, err = cloudformation.NewFromConfig(cloud.Config()).DeleteStack(t.Context(), &cloudformation.DeleteStackInput{
			StackName: aws.String(names.Stack(name, "network")),
		})
		require.ErrorContains(t, err, "TerminationProtection is enabled")
	})
	t.Run("passes harmful strings unchanged", func(t *testing.T) { harmless(t, name, file) })

	t.Run("changes a tag in place", func(t *testing.T) {
		before := instancesOf(t, name)
		first["spec"].(object)["tags"].(object)["y"] = "yes"
		s := cloud.ready(t, name, cloud.upload(t, name, text(t, first)))
		require.Equal(t, "yes", tagsOf(stackOf(t, name, "network"))["y"])
		cloud.until(t, func() bool {
			return fmt.Sprint(poolsOf(t, name)) == "map[one:2 two:1]"
		}, func() string { return fmt.Sprint(poolsOf(t, name)) })
		after := instancesOf(t, name)
		require.Len(t, after, len(before))
		for id := range after {
			require.Contains(t, before, id, "no node is replaced")
		}
		for _, stack := range s.Stacks {
			require.Contains(t, []string{"CREATE_COMPLETE", "UPDATE_COMPLETE"}, stack.Status, stack.Name)
		}
	})
	t.Run("changes only the pool that differs", func(t *testing.T) {
		before := instancesOf(t, name)
		two := first["spec"].(object)["pools"].([]object)[1]
		two["labels"] = object{"example.com/tier": "gold"}
		version := cloud.upload(t, name, text(t, first))
		cloud.ready(t, name, version)
		require.NotEqual(t, version, tagsOf(stackOf(t, name, "pool-one"))[names.TagSpecVersion])
		require.Equal(t, version, tagsOf(stackOf(t, name, "pool-two"))[names.TagSpecVersion])
		after := instancesOf(t, name)
		for id, pool := range before {
			require.Equal(t, pool == "one", after[id] == "one", "%s of pool %s", id, pool)
		}
	})
	t.Run("deletes a removed pool", func(t *testing.T) {
		first["spec"].(object)["pools"] = []object{one}
		s := cloud.ready(t, name, cloud.upload(t, name, text(t, first)))
		require.False(t, slices.ContainsFunc(s.Stacks, func(s status.Stack) bool { return s.Name == "pool-two" }))
		_, err := cloudformation.NewFromConfig(cloud.Config()).DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{
			StackName: aws.String(names.Stack(name, "pool-two")),
		})
		require.ErrorContains(t, err, "does not exist")
		cloud.until(t, func() bool { return fmt.Sprint(poolsOf(t, name)) == "map[one:2]" }, func() string { return fmt.Sprint(poolsOf(t, name)) })
	})
	t.Run("refuses to replace the network", func(t *testing.T) {
		mark := cloud.Calls.Mark()
		first["spec"].(object)["network"].(object)["cidr"] = "10.9.0.0/16"
		s := cloud.rest(t, name, cloud.upload(t, name, text(t, first)))
		require.Equal(t, status.Stopped, s.Phase)
		require.Equal(t, "ChangeRefused", s.Condition(status.Converged).Reason)
		require.Contains(t, s.Message, "spec.network.cidr")
		for _, call := range cloud.mutations(mark) {
			require.False(t, strings.HasPrefix(call, "cloudformation:") && strings.Contains(call, names.Stack(name, "")), call)
		}
	})
}

// poolsOf returns the number of nodes by pool.
func poolsOf(t *testing.T, cluster string) map[string]int {
	t.Helper()
	pools := map[string]int{}
	for _, node := range nodesOf(t, cluster) {
		pools[node.Labels[names.LabelPool]]++
	}
	return pools
}

// instancesOf returns the pools of a cluster's instances in service, by instance ID.
func instancesOf(t *testing.T, cluster string) map[string]string {
	t.Helper()
	out, err := autoscaling.NewFromConfig(cloud.Config()).DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{})
	require.NoError(t, err)
	instances := map[string]string{}
	for _, group := range out.AutoScalingGroups {
		pool, ok := strings.CutPrefix(*group.AutoScalingGroupName, names.Group(cluster, ""))
		for _, instance := range group.Instances {
			if ok && instance.LifecycleState == "InService" {
				instances[*instance.InstanceId] = pool
			}
		}
	}
	return instances
}

// harmless runs the node's configuration with the real shell, as the node does, and reads the add-on's from EKS.
func harmless(t *testing.T, cluster, file string) {
	entries, err := cloud.state.List(t.Context(), "userdata/")
	require.NoError(t, err)
	for _, entry := range entries {
		object, err := cloud.state.Get(t.Context(), entry.Key, 1<<20)
		require.NoError(t, err)
		if !strings.Contains(string(object.Body), filepath.Base(filepath.Dir(filepath.Dir(file)))) {
			continue // of another cluster
		}
		script := filepath.Join(t.TempDir(), "configuration")
		require.NoError(t, os.WriteFile(script, object.Body, 0o600))
		out, err := exec.CommandContext(t.Context(), "bash", script).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	for _, path := range []string{file, file + ".copy"} {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, harmful, string(content))
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())
	require.NoFileExists(t, "/oops")

	addon, err := eks.NewFromConfig(cloud.Config()).DescribeAddon(t.Context(), &eks.DescribeAddonInput{
		ClusterName: aws.String(names.EKSCluster(cluster)), AddonName: aws.String("vpc-cni"),
	})
	require.NoError(t, err)
	var configuration struct{ Env map[string]string }
	require.NoError(t, json.Unmarshal([]byte(*addon.Addon.ConfigurationValues), &configuration))
	require.Equal(t, harmful, configuration.Env["NASTY"])

	for _, node := range nodesOf(t, cluster) {
		if node.Labels[names.LabelPool] == "one" {
			for key, value := range map[string]string{"example.com/y": "no", "n": "0x1f", "empty": "", "true": "1e3"} {
				require.Contains(t, node.Labels, key)
				require.Equal(t, value, node.Labels[key], key)
			}
		}
	}
	for _, stack := range []string{"network", "control-plane", "pool-one"} {
		tags := tagsOf(stackOf(t, cluster, stack))
		require.Equal(t, "no", tags["y"])
		require.Equal(t, "0777", tags["octal"])
		require.Equal(t, "1:2:3 = @_./+-", tags["a:b/c=d+e-f@g h"])
	}
	for id := range instancesOf(t, cluster) {
		instance, err := cloud.EC2.Instance(id)
		require.NoError(t, err)
		require.Equal(t, "1:2:3 = @_./+-", instance.Tags["a:b/c=d+e-f@g h"])
	}
}
