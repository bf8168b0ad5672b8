package harness

// These lives together make every call of drover's functions and state machines. A change that adds a call adds it to one
// of them.

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// lives are all lives by name.
var lives = func() map[string]func(*life) {
	all := map[string]func(*life){}
	for _, some := range []map[string]func(*life){clusterLives, nodeLives, upgradeLives} {
		maps.Copy(all, some)
	}
	return all
}()

// clusterLives create, change and delete clusters, with failures.
var clusterLives = map[string]func(*life){
	"a cluster is made, left alone, changed, and a pool removed": func(l *life) {
		l.create(secondPool + unprotected)
		l.again()
		l.change(strings.Replace(secondPool, "maxSize: 3", "maxSize: 3, labels: {a: b}", 1) + unprotected) // rolls
		l.phase(status.Ready)
		l.change(unprotected)
		l.phase(status.Ready)
		require.NotContains(l.t, l.Stacks("demo"), "pool-b")
	},
	"a cluster that is protected": func(l *life) {
		l.create("")
	},
	"a second cluster, under a default quota": func(l *life) {
		require.True(l.t, l.Quotas.Unset(servicequotas.NATGateways))
		l.create("")
		l.Upload(names.ClusterSpec("other"), Spec("other", ""))
		l.settle()
		require.Equal(l.t, status.Ready, l.Status("other").Phase, l.Status("other").Message)
	},
	"a private cluster, with another relay, and its deletion": func(l *life) {
		const private = privateEndpoint + alarmed + unprotected
		l.old(private + "  tags: {team: a}\n")
		l.phase(status.Ready)
		l.deleteRelay()
		l.audited()
		l.phase(status.Ready)
		l.terminate()
		l.settle()
		l.upgrade(events.Upgrade{Release: "r2"})
		l.settle()
		l.phase(status.Ready)
		l.Functions.Planner.Relay.SHA256 = names.SHA256([]byte("other code"))
		l.Functions.Planner.RelayFile = func() ([]byte, error) { return []byte("other code"), nil }
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", private), "name: r1", "name: r2", 1))
		l.settle()
		l.phase(status.Ready)
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.phase(status.Deleted)
	},
	"a replacement that is refused": func(l *life) {
		l.create("")
		l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", ""), "10.0.0.0/16", "10.1.0.0/16", 1))
		l.settle()
	},
	"node configuration that is too large for user data": func(l *life) {
		file := fmt.Sprintf("      files: [{path: /etc/x, content: %q}]\n", strings.Repeat("x", 40_000))
		l.create("    - name: b\n      instanceTypes: [m7i.large]\n      minSize: 1\n      maxSize: 3\n" + file)
	},
	"a release whose event is lost": func(l *life) {
		l.Events.Decide(lose("aws.s3", names.ReleaseSpec("r2")))
		l.Upload(names.ReleaseSpec("r2"), ReleaseOf("1.36", "r2"))
		time.Sleep(15 * time.Minute)
		l.audited()
		_, err := l.State().Verdict(l.t.Context(), "r2")
		require.NoError(l.t, err)
	},
	"a release that is edited changes nothing": func(l *life) {
		l.create("")
		l.Upload(names.ReleaseSpec("r1"), strings.Replace(Release(), "v1.13.2-eksbuild.1", "v1.13.2-eksbuild.2", 1))
		l.again()
		l.phase(status.Ready)
	},
	"specs that cannot be used": func(l *life) {
		l.Upload(names.ClusterSpec("demo"), "kind: Nothing\n")
		l.settle()
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
	},
	"a cluster that has everything, then other things, then less, and goes": func(l *life) {
		const (
			admins  = "arn:aws:iam::" + ID + ":role/admins"
			agent   = "    - {name: eks-pod-identity-agent, version: v1.3.10-eksbuild.1}\n    - {name: vpc-cni"
			without = "natGateways: Single"
			older   = "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n"
			more    = "\n    secondaryCIDRs: [100.64.0.0/16]"
		)
		access := func(entry string) string {
			return "  controlPlane: {access: [{principalARN: \"" + admins + "\", " + entry + "}]}\n"
		}
		spec := func(network, pool, more string) string {
			return strings.NewReplacer(without, network, "maxSize: 3}", "maxSize: 3, "+pool+"}").Replace(Spec("demo", more+unprotected))
		}
		converged := func(spec string) {
			l.Upload(names.ClusterSpec("demo"), spec)
			l.settle()
			l.phase(status.Ready)
		}
		l.CreateResource("AWS::IAM::Role", map[string]any{"RoleName": "admins", "AssumeRolePolicyDocument": map[string]any{"Version": "2012-10-17",
			"Statement": []any{
				map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": ID}, "Action": "sts:AssumeRole"},
			}}})
		l.Upload(names.ReleaseSpec("r1"), strings.Replace(Release(), "    - {name: vpc-cni", agent, 1))
		converged(spec("natGateways: None"+more, "update: {strategy: InstanceRefresh}, spot: {onDemandBase: 0, onDemandPercentage: 0}",
			"  tags: {team: a, more: x}\n"+access("groups: [readers], policies: [{name: AmazonEKSViewPolicy}]")))
		converged(spec("natGateways: None"+more, "update: {strategy: InstanceRefresh}, drain: {timeout: 3h}, labels: {a: b}",
			"  tags: {team: b}\n"+older+access("groups: [writers], policies: [{name: AmazonEKSEditPolicy}]")))
		l.Upload(names.ReleaseSpec("r1"), Release())
		converged(spec("natGateways: PerZone"+more, "drain: {timeout: 2h}", "  tags: {team: b}\n"))
		converged(spec(without+more, "drain: {timeout: 3h}", ""))
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.phase(status.Deleted)
	},
	"a cluster with a key of the spec, whose policy names CloudFormation's role for the grant": func(l *life) {
		key := l.CreateResource("AWS::KMS::Key", KeyPolicy(
			map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": ID}, "Action": "kms:*", "Resource": "*"},
			map[string]any{
				"Effect": "Allow", "Principal": map[string]any{"AWS": RoleARN("cloudformation")}, "Action": "kms:CreateGrant", "Resource": "*",
			},
		))
		l.create("  controlPlane: {encryptionKeyARN: \"arn:aws:kms:" + Region + ":" + ID + ":key/" + key + "\"}\n")
	},
	"a network that cannot be made at first": func(l *life) {
		l.OnResource(failing("create", "AWS::EC2::VPC", "network", errQuota))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.settle()
		l.phase(status.Failed)
		l.OnResource(nil)
		l.again()
		l.phase(status.Ready)
	},
	"a rollback that fails at first": func(l *life) {
		l.create("")
		l.OnResource(failing("update", "AWS::EKS::Addon", "addons", errQuota))
		l.change("  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n")
		l.phase(status.Failed)
		l.OnResource(nil)
		l.again()
		l.phase(status.Ready)
	},
	"a cluster that loses its protection, by a change set with nothing in it": func(l *life) {
		l.create("")
		l.change(unprotected)
		l.phase(status.Ready)
	},
	"every event of a stack is lost": func(l *life) {
		l.Events.Decide(lose("aws.cloudformation", ""))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.sweep()
		l.phase(status.Ready)
	},
	"the event of a failure is lost": func(l *life) {
		l.Events.Decide(lose("aws.cloudformation", ""))
		l.OnResource(failing("create", "AWS::EC2::VPC", "network", errQuota))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.sweep()
		l.phase(status.Failed)
	},
	"the event of a spec is lost": func(l *life) {
		l.Events.Decide(lose("aws.s3", ""))
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		time.Sleep(time.Minute)
		l.sweep()
		l.phase(status.Ready)
	},
	"an instance ends at its launch hook": func(l *life) {
		l.create("")
		l.endAtHook()
		l.sweep()
	},
	"an execution that is stopped, and swept up": func(l *life) {
		l.stopped()
		l.sweep()
		l.phase(status.Failed)
	},
	"an execution that is stopped, and another": func(l *life) {
		l.stopped()
		l.again()
		l.phase(status.Ready)
	},
	"the status is deleted repeatedly": func(l *life) {
		l.forget("status/")
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		l.settle()
		l.remember()
		l.phase(status.Ready)
	},
	"a spec that is deleted in the middle": func(l *life) {
		l.once("change", "ExecuteChangeSet", "", func() { l.Remove(names.ClusterSpec("demo"), "") })
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.settle()
	},
	"converge of an unknown cluster": func(l *life) {
		l.again()
	},
	"an external update that ends before its waiter is stored": func(l *life) {
		l.create("")
		l.OnResource(failing("update", "AWS::EC2::VPC", "network", errQuota))
		l.Events.Decide(lose("aws.cloudformation", "network")) // otherwise another function resumes the step first
		l.besides()
		l.change("  tags: {team: b}\n")
	},
	"a held lease is deleted": func(l *life) {
		l.once("change", "GetObject", "leases/demo.json", func() { l.drop(names.Lease("demo")) })
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"), Spec("demo", ""))
		l.settle()
	},
	"an audit of a stack that was changed outside drover": func(l *life) {
		l.create(unprotected)
		for _, stack := range l.CloudFormation.Stacks() {
			if stack.StackName == "drover-demo-addons" {
				_, err := l.CloudFormation.UpdateStack(l.t.Context(), l.Admin(), &cloudformation.UpdateStackInput{
					StackName: stack.StackName, UsePreviousTemplate: true, Capabilities: []string{"CAPABILITY_IAM"},
					Parameters: []cloudformation.Parameter{{ParameterKey: "ClusterName", UsePreviousValue: true}}, Tags: stack.Tags[1:],
				})
				require.NoError(l.t, err)
			}
		}
		l.settle()
		l.audited()
	},
	"an execution that waits for nothing": func(l *life) {
		l.unheardControlPlane()
		l.drop(names.Waiter("drover-demo-control-plane"))
		l.Events.Decide(nil)
		time.Sleep(61 * time.Minute) // the gap between two steps may last an hour; after 90 minutes the step would end by itself
		l.audited()
		l.phase(status.Ready)
		require.Equal(l.t, "ABORTED", l.States.Executions()[0].Status)
	},
	"a cluster that is deleted with its spec": func(l *life) {
		l.create(unprotected)
		for _, volume := range l.KubernetesMakes("demo") {
			l.persist("demo", volume, "Delete")
		}
		l.noted("demo")
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.phase(status.Deleted)
		require.Empty(l.t, l.notes("demo"))
	},
	"the network of a protected cluster is deleted, and then the cluster": func(l *life) {
		l.create("")
		l.Unstack("demo", names.Network)
		l.audited()
		l.change(unprotected)
		l.phase(status.Stopped)
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.phase(status.Failed)
	},
	"the control plane of a protected cluster is deleted, and then the cluster": func(l *life) {
		l.create("")
		l.Unstack("demo", names.ControlPlane)
		l.change(unprotected)
		l.endEKS("demo")
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.phase(status.Failed)
	},
	"the status is deleted during the cluster's deletion": func(l *life) {
		l.create(unprotected)
		l.KubernetesMakes("demo")
		l.once("prepare", "GetObject", "status/clusters/demo.json", func() { l.drop(names.Status("demo")) })
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
	},
	"the lease is deleted during the cluster's deletion": func(l *life) {
		l.create(unprotected)
		l.KubernetesMakes("demo")
		l.once("clean", "GetObject", "leases/demo.json", func() { l.drop(names.Lease("demo")) })
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
	},
	"a cluster that was deleted a month ago": func(l *life) {
		l.create(unprotected)
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		time.Sleep(31 * 24 * time.Hour)
		l.sweep()
	},
}
