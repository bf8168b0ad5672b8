package permissions_test

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
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// allLives are all lives by name.
var allLives = func() map[string]func(*life) {
	all := map[string]func(*life){}
	for _, some := range []map[string]func(*life){clusterLives, nodeLives, upgradeLives, rolloutLives, fleetLives, identityLives} {
		maps.Copy(all, some)
	}
	return all
}()

// clusterLives create, change and delete clusters, with failures.
var clusterLives = map[string]func(*life){
	"a cluster is made, left alone, changed, and a pool removed": func(l *life) {
		l.CreateCluster(lives.SecondPool + lives.Unprotected)
		l.ConvergeAgain()
		l.ChangeSpec(strings.Replace(lives.SecondPool, "maxSize: 3", "maxSize: 3, labels: {a: b}", 1) + lives.Unprotected) // rolls
		l.RequirePhase(status.Ready)
		l.ChangeSpec(lives.Unprotected)
		l.RequirePhase(status.Ready)
		require.NotContains(l.T, l.Stacks("demo"), "pool-b")
	},
	"a cluster that is protected": func(l *life) {
		l.CreateCluster("")
	},
	"a control plane with settings, and a key for its logs that is removed": func(l *life) {
		const settings = "settings: {eventTTL: 30m}"
		const provider = ", identityProvider: {issuerURL: \"https://login.example.com\", clientID: k8s}"
		l.CreateCluster("  controlPlane: {" + settings + ", logKeyARN: \"arn:aws:kms:" + harness.Region +
			":444455556666:key/1234abcd-12ab-34cd-56ef-1234567890ab\"}\n" + lives.Unprotected)
		l.RequirePhase(status.Ready)
		l.ChangeSpec("  controlPlane: {" + settings + provider + "}\n" + lives.Unprotected + "  tags: {team: a}\n")
		l.RequirePhase(status.Ready)
		l.ChangeSpec("  controlPlane: {" + settings + provider + "}\n" + lives.Unprotected)
		l.RequirePhase(status.Ready)
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.RequirePhase(status.Deleted)
	},
	"a network with endpoints, flow logs and addresses of the user": func(l *life) {
		const network = "    natGateways: Single\n"
		more := "    endpoints: [ssm]\n    flowLogs: {to: \"arn:aws:s3:::logs\"}\n    natAddresses: {" + harness.Region + "a: " +
			l.EC2.AddAddress() + "}\n"
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		for _, tags := range []string{"", "  tags: {team: a}\n", ""} {
			l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected+tags), network, network+more, 1))
			l.SettleAll()
			l.RequirePhase(status.Ready)
		}
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.RequirePhase(status.Deleted)
	},
	"a cluster in an existing network": func(l *life) {
		vpc, subnets := l.CreateNetwork("office", harness.Region)
		spec := harness.Spec("demo", lives.Unprotected)
		from, to := strings.Index(spec, "    cidr:"), strings.Index(spec, "  pools:")
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), spec[:from]+"    existing: {vpcID: "+vpc+", subnets: ["+subnets+"]}\n"+spec[to:])
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Contains(l.T, l.Status("demo").Condition(status.NetworkTags).Message, "subnets without the tag")
	},
	"a second cluster, under a default quota": func(l *life) {
		require.True(l.T, l.Quotas.Unset(servicequotas.NATGateways))
		l.CreateCluster("")
		l.Upload(names.ClusterSpec("other"), harness.Spec("other", ""))
		l.SettleAll()
		require.Equal(l.T, status.Ready, l.Status("other").Phase, l.Status("other").Message)
	},
	"a private cluster with an OIDC provider, with another relay, and its deletion": func(l *life) {
		const private = "  controlPlane: {oidcProvider: true, endpoint: {public: false}}\n" + lives.Alarmed + lives.Unprotected
		l.CreateOldCluster(private + "  tags: {team: a}\n")
		l.RequirePhase(status.Ready)
		l.DeleteRelay()
		l.Audit()
		l.RequirePhase(status.Ready)
		l.TerminateInstance()
		l.SettleAll()
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.RequirePhase(status.Ready)
		l.Functions.Planner.Relay.SHA256 = names.SHA256([]byte("other code"))
		l.Functions.Planner.RelayFile = func() ([]byte, error) { return []byte("other code"), nil }
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", private), "name: r1", "name: r2", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.RequirePhase(status.Deleted)
	},
	"a roll that waits for a drain": func(l *life) {
		l.StartDrain(lives.TwoNodes)
		l.ChangePool(lives.TwoNodes + ", labels: {team: b}")
		time.Sleep(20 * time.Minute)
		require.NotEmpty(l.T, l.PoolWaits().Message)
		l.BlockPods(false)
		l.SettleAll()
	},
	"a replacement that is refused": func(l *life) {
		l.CreateCluster("")
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ""), "10.0.0.0/16", "10.1.0.0/16", 1))
		l.SettleAll()
	},
	"node configuration that is too large for user data": func(l *life) {
		file := fmt.Sprintf("      files: [{path: /etc/x, content: %q}]\n", strings.Repeat("x", 40_000))
		l.CreateCluster("    - name: b\n      instanceTypes: [m7i.large]\n      minSize: 1\n      maxSize: 3\n" + file)
	},
	"a release whose event is lost": func(l *life) {
		l.Events.Decide(lives.LoseEvents("aws.s3", names.ReleaseSpec("r2")))
		l.Upload(names.ReleaseSpec("r2"), harness.ReleaseOf("1.36", "r2"))
		time.Sleep(15 * time.Minute)
		l.Audit()
		_, err := l.State().ReleaseStatus(l.T.Context(), "r2")
		require.NoError(l.T, err)
	},
	"a release that is edited changes nothing": func(l *life) {
		l.CreateCluster("")
		l.Upload(names.ReleaseSpec("r1"), strings.Replace(harness.Release(), "v1.13.2-eksbuild.1", "v1.13.2-eksbuild.2", 1))
		l.ConvergeAgain()
		l.RequirePhase(status.Ready)
	},
	"specs that cannot be used": func(l *life) {
		l.Upload(names.ClusterSpec("demo"), "kind: Nothing\n")
		l.SettleAll()
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
	},
	"a cluster that has everything, then other things, then less, and goes": func(l *life) {
		const (
			admins  = "arn:aws:iam::" + harness.ID + ":role/admins"
			agent   = "    - {name: eks-pod-identity-agent, version: v1.3.10-eksbuild.1}\n    - {name: vpc-cni"
			without = "natGateways: Single"
			older   = "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n"
			more    = "\n    secondaryCIDRs: [100.64.0.0/16]"
		)
		access := func(entry string) string {
			return "  controlPlane: {access: [{principalARN: \"" + admins + "\", " + entry + "}]}\n"
		}
		spec := func(network, pool, more string) string {
			return strings.NewReplacer(without, network, "maxSize: 3}", "maxSize: 3, "+pool+"}").
				Replace(harness.Spec("demo", more+lives.Unprotected))
		}
		converged := func(spec string) {
			l.Upload(names.ClusterSpec("demo"), spec)
			l.SettleAll()
			l.RequirePhase(status.Ready)
		}
		l.CreateResource("AWS::IAM::Role", map[string]any{"RoleName": "admins",
			"AssumeRolePolicyDocument": map[string]any{"Version": "2012-10-17",
				"Statement": []any{
					map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": harness.ID}, "Action": "sts:AssumeRole"},
				}}})
		l.Upload(names.ReleaseSpec("r1"), strings.Replace(harness.Release(), "    - {name: vpc-cni", agent, 1))
		converged(spec("natGateways: None"+more, "update: {strategy: InstanceRefresh}, spot: {onDemandBase: 0, onDemandPercentage: 0}",
			"  tags: {team: a, more: x}\n"+strings.Replace(access("groups: [readers], policies: [{name: AmazonEKSViewPolicy}]"), "}]}\n",
				"}, {principalARN: \"arn:aws:iam::"+harness.ID+":user/admin\"}]}\n", 1)))
		converged(spec("natGateways: None"+more, "update: {strategy: InstanceRefresh}, drain: {timeout: 3h}, labels: {a: b}",
			"  tags: {team: b}\n"+older+access("groups: [writers], policies: [{name: AmazonEKSEditPolicy}]")))
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		converged(spec("natGateways: PerZone"+more, "drain: {timeout: 2h}", "  tags: {team: b}\n"))
		converged(spec(without+more, "drain: {timeout: 3h}", ""))
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.RequirePhase(status.Deleted)
	},
	"a cluster with a key of the spec, whose policy names CloudFormation's role for the grant": func(l *life) {
		key := l.CreateResource("AWS::KMS::Key", harness.KeyPolicy(
			map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": harness.ID}, "Action": "kms:*", "Resource": "*"},
			map[string]any{
				"Effect": "Allow", "Principal": map[string]any{"AWS": harness.RoleARN("cloudformation")}, "Action": "kms:CreateGrant", "Resource": "*",
			},
		))
		l.CreateCluster("  controlPlane: {encryptionKeyARN: \"arn:aws:kms:" + harness.Region + ":" + harness.ID + ":key/" + key + "\"}\n")
	},
	"a network that cannot be made at first": func(l *life) {
		l.OnResource(lives.FailResource("create", "AWS::EC2::VPC", "network", lives.ErrQuota))
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.SettleAll()
		l.RequirePhase(status.Failed)
		l.OnResource(nil)
		l.ConvergeAgain()
		l.RequirePhase(status.Ready)
	},
	"a rollback that fails at first": func(l *life) {
		l.CreateCluster("")
		l.OnResource(lives.FailResource("update", "AWS::EKS::Addon", "addons", lives.ErrQuota))
		l.ChangeSpec("  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n")
		l.RequirePhase(status.Failed)
		l.OnResource(nil)
		l.ConvergeAgain()
		l.RequirePhase(status.Ready)
	},
	"a cluster that loses its protection, by a change set with nothing in it": func(l *life) {
		l.CreateCluster("")
		l.ChangeSpec(lives.Unprotected)
		l.RequirePhase(status.Ready)
	},
	"every event of a stack is lost": func(l *life) {
		l.Events.Decide(lives.LoseEvents("aws.cloudformation", ""))
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
		l.SweepForAnHour()
		l.RequirePhase(status.Ready)
	},
	"the event of a failure is lost": func(l *life) {
		l.Events.Decide(lives.LoseEvents("aws.cloudformation", ""))
		l.OnResource(lives.FailResource("create", "AWS::EC2::VPC", "network", lives.ErrQuota))
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
		l.SweepForAnHour()
		l.RequirePhase(status.Failed)
	},
	"the event of a spec is lost": func(l *life) {
		l.Events.Decide(lives.LoseEvents("aws.s3", ""))
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
		time.Sleep(time.Minute)
		l.SweepForAnHour()
		l.RequirePhase(status.Ready)
	},
	"an instance ends at its launch hook": func(l *life) {
		l.CreateCluster("")
		l.EndAtHook()
		l.SweepForAnHour()
	},
	"an execution that is stopped, and swept up": func(l *life) {
		l.stopExecution()
		l.RequirePhase(status.Failed)
		l.SweepForAnHour()
		l.RequirePhase(status.Ready)
	},
	"an execution that is stopped, and another": func(l *life) {
		l.stopExecution()
		l.ConvergeAgain()
		l.RequirePhase(status.Ready)
	},
	"the status is deleted repeatedly": func(l *life) {
		l.forget("status/")
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.SettleAll()
		l.remember()
		l.RequirePhase(status.Ready)
	},
	"a spec that is deleted in the middle": func(l *life) {
		l.once("change", "ExecuteChangeSet", "", func() { l.Remove(names.ClusterSpec("demo"), "") })
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
		l.SettleAll()
	},
	"converge of an unknown cluster": func(l *life) {
		l.ConvergeAgain()
	},
	"an external update that ends before its waiter is stored": func(l *life) {
		l.CreateCluster("")
		l.OnResource(lives.FailResource("update", "AWS::EC2::VPC", "network", lives.ErrQuota))
		l.Events.Decide(lives.LoseEvents("aws.cloudformation", "network")) // otherwise another function resumes the step first
		l.updateNetworkDuringChange()
		l.ChangeSpec("  tags: {team: b}\n")
	},
	"a held lease is deleted": func(l *life) {
		l.once("change", "GetObject", "leases/demo.json", func() { l.drop(names.Lease("demo")) })
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
		l.SettleAll()
	},
	"an audit of a stack that was changed outside drover": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		for _, stack := range l.CloudFormation.Stacks() {
			if stack.StackName == "drover-demo-addons" {
				_, err := l.CloudFormation.UpdateStack(l.T.Context(), l.Admin(), &cloudformation.UpdateStackInput{
					StackName: stack.StackName, UsePreviousTemplate: true, Capabilities: []string{"CAPABILITY_IAM"},
					Parameters: []cloudformation.Parameter{{ParameterKey: "ClusterName", UsePreviousValue: true}}, Tags: stack.Tags[1:],
				})
				require.NoError(l.T, err)
			}
		}
		l.SettleAll()
		l.Audit()
	},
	"an execution that waits for nothing": func(l *life) {
		l.loseControlPlaneEvent()
		l.drop(names.Waiter("drover-demo-control-plane"))
		l.Events.Decide(nil)
		time.Sleep(61 * time.Minute) // the gap between two steps may last an hour; after 90 minutes the step would end by itself
		l.Audit()
		l.RequirePhase(status.Ready)
		require.Equal(l.T, "ABORTED", l.StepFunctions.Executions()[0].Status)
	},
	"a cluster that is deleted with its spec": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		for _, volume := range l.KubernetesMakes("demo") {
			l.PersistVolume("demo", volume, "Delete")
		}
		l.RecordPendingWork("demo")
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.RequirePhase(status.Deleted)
		require.Empty(l.T, l.PendingWork("demo"))
	},
	"the network of a protected cluster is deleted, and then the cluster": func(l *life) {
		l.CreateCluster("")
		l.DeleteStack("demo", names.Network)
		l.Audit()
		l.ChangeSpec(lives.Unprotected)
		l.RequirePhase(status.Stopped)
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.RequirePhase(status.Failed)
	},
	"the control plane of a protected cluster is deleted, and then the cluster": func(l *life) {
		l.CreateCluster("")
		l.DeleteStack("demo", names.ControlPlane)
		l.ChangeSpec(lives.Unprotected)
		l.DeleteEKSCluster("demo")
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.RequirePhase(status.Failed)
	},
	"the status is deleted during the cluster's deletion": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		l.KubernetesMakes("demo")
		l.once("prepare", "GetObject", "status/clusters/demo.json", func() { l.drop(names.Status("demo")) })
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
	},
	"the lease is deleted during the cluster's deletion": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		l.KubernetesMakes("demo")
		l.once("clean", "GetObject", "leases/demo.json", func() { l.drop(names.Lease("demo")) })
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
	},
	"a cluster that was deleted a month ago": func(l *life) {
		l.CreateCluster(lives.Unprotected)
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		time.Sleep(31 * 24 * time.Hour)
		l.SweepForAnHour()
	},
}
