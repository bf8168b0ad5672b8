package deletion_test

// Clusters whose stack was deleted outside drover while they were protected. Protection retained the resources of that stack. drover can
// still delete such a cluster, without leftovers.

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/aws/leftovers"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// deleteAll deletes all resources of a kind by hand.
func (l *life) deleteAll(kind string) {
	l.T.Helper()
	for _, arn := range slices.Sorted(maps.Keys(l.AllResources())) {
		if strings.Contains(arn, kind) {
			require.NoError(l.T, l.DeleteByARN(arn), arn)
		}
	}
}

// roleOf returns the one remaining role of a cluster's stacks.
func (l *life) roleOf(cluster string) string {
	l.T.Helper()
	roles := slices.DeleteFunc(l.Identities.Roles(), func(r iam.Role) bool { return r.Tags[names.TagCluster] != cluster })
	require.Len(l.T, roles, 1)
	return roles[0].Name
}

// requireRemaining asserts that a deletion stopped because of the resources in its message.
func (l *life) requireRemaining(what ...string) {
	l.T.Helper()
	s := l.Status("demo")
	require.Equal(l.T, status.Failed, s.Phase, s.Message)
	require.Equal(l.T, "LeftoversRemain", s.Condition(status.Converged).Reason)
	for _, what := range what {
		require.Contains(l.T, s.Message, what)
	}
}

func TestDeletionAfterALostNetwork(t *testing.T) {
	run(t, func(l *life) {
		before := l.AllResources()
		l.Cluster("demo", "")
		l.DeleteStack("demo", names.Network)
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.Settle()
		s := l.Status("demo")
		require.Equal(t, status.Stopped, s.Phase, s.Message)
		require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
		require.False(t, l.Stack("demo", names.ControlPlane).TerminationProtection)
		require.False(t, l.Protected("drover-demo"))

		l.Remove(names.ClusterSpec("demo"), "")
		l.Settle()
		vpcs := l.ResourceIDs(":vpc/")
		require.Len(t, vpcs, 1)
		l.requireRemaining("VPC " + vpcs[0] + " with its subnets: deletion protection retained it")
		require.Empty(t, l.Stacks("demo"))
		l.deleteAll(":subnet/")
		l.deleteAll(":vpc/")
		l.Converge("demo")
		l.Settle()
		l.RequireDeleted("demo", before)
	})
}

// A user deletes the network stack while drover disables deletion protection. The VPC is retained. drover still disables the protection of
// the other resources.
func TestDeletionAfterALostNetworkWithoutProtection(t *testing.T) {
	run(t, func(l *life) {
		l.Cluster("demo", "")
		name, lost := names.Stack("demo", names.Network), false
		l.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "change" && call.Action == "ExecuteChangeSet" && !lost {
				lost = true
				_, err := l.CloudFormation.UpdateTerminationProtection(t.Context(), l.Admin(), &cloudformation.UpdateTerminationProtectionInput{
					StackName: name,
				})
				require.NoError(t, err)
				_, err = l.CloudFormation.DeleteStack(t.Context(), l.Admin(), &cloudformation.DeleteStackInput{StackName: name})
				require.NoError(t, err)
			}
			return nil
		})
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.Settle()
		require.True(t, lost)
		require.NotContains(t, l.Stacks("demo"), names.Network)
		s := l.Status("demo")
		require.Equal(t, status.Stopped, s.Phase, s.Message)
		require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
		require.Contains(t, s.Message, "stack "+name+": absent")
		require.False(t, l.Stack("demo", names.ControlPlane).TerminationProtection)
		require.False(t, l.Protected("drover-demo"))
		l.Remove(names.ClusterSpec("demo"), "")
		l.Settle()
		l.requireRemaining("VPC ", " with its subnets: deletion protection retained it")
	})
}

// A network whose resources block each other stays half deleted. drover still disables the remaining protection of the cluster.
func TestDeletionOfAHalfDeletedNetwork(t *testing.T) {
	run(t, func(l *life) {
		before := l.AllResources()
		l.Cluster("demo", "")
		lost := false
		l.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "change" && call.Action == "ExecuteChangeSet" && strings.Contains(call.Resource, names.ControlPlane) &&
				!lost {
				lost = true
				_, err := l.CloudFormation.DeleteStack(t.Context(), l.Admin(), &cloudformation.DeleteStackInput{
					StackName: names.Stack("demo", names.Network),
				})
				require.NoError(t, err)
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		l.Settle()
		require.True(t, lost)
		require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.Network])
		require.True(t, l.Stack("demo", names.ControlPlane).TerminationProtection)
		l.Converge("demo")
		l.Settle()
		s := l.Status("demo")
		require.Equal(t, status.Failed, s.Phase, s.Message)
		require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
		require.Contains(t, s.Message, "delete the spec")
		require.False(t, l.Stack("demo", names.ControlPlane).TerminationProtection)
		l.Remove(names.ClusterSpec("demo"), "")
		l.Settle()
		l.RequireDeleted("demo", before)
	})
}

// innerStacks returns the IDs of the stacks that belong to a cluster's control plane.
func (l *life) innerStacks(cluster string) []string {
	return []string{l.Stack(cluster, names.Addons).ID, l.Stack(cluster, "pool-a").ID}
}

// requireRecreated asserts that a cluster is Ready and that its inner stacks were recreated.
func (l *life) requireRecreated(cluster string, before []string) {
	l.T.Helper()
	require.Equal(l.T, status.Ready, l.Status(cluster).Phase, l.Status(cluster).Message)
	for _, stack := range l.innerStacks(cluster) {
		require.NotContains(l.T, before, stack)
	}
	require.Len(l.T, l.API(names.EKSCluster(cluster)).Nodes(), 1)
}

// failPrepare fails the execution that made a control plane.
func failPrepare(call endpoint.Call) error {
	if harness.CalledBy(call) == "prepare" {
		return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
	}
	return nil
}

// requireContinuation asserts that an execution failed after it recreated the control plane, and that the next one recreates the rest of
// the cluster.
func (l *life) requireContinuation(cluster string, before []string) {
	l.T.Helper()
	require.Equal(l.T, status.Failed, l.Status(cluster).Phase, l.Status(cluster).Message)
	require.Equal(l.T, "CREATE_COMPLETE", l.Stacks(cluster)[names.ControlPlane])
	l.OnCall(nil)
	l.Converge(cluster)
	l.Settle()
	l.requireRecreated(cluster, before)
}

// A deletion outside drover removes an unprotected stack with all its resources.
func TestUnprotectedStackIsDeletedOutside(t *testing.T) {
	t.Run("the control plane: drover recreates its inner stacks", func(t *testing.T) {
		run(t, func(l *life) {
			l.Cluster("demo", lives.Unprotected)
			vpc, pool := l.ResourceIDs(":vpc/"), l.Stack("demo", "pool-a").ID
			l.DeleteStack("demo", names.ControlPlane)
			require.NoError(t, l.AuditNow())
			message := l.Status("demo").Condition(status.InSync).Message
			require.Contains(t, message, "stack control-plane is missing")
			require.Contains(t, message, "stack addons belongs to a deleted control plane")
			l.Settle()
			require.Equal(t, status.Ready, l.Status("demo").Phase, l.Status("demo").Message)
			require.Equal(t, vpc, l.ResourceIDs(":vpc/"))
			require.NotEqual(t, pool, l.Stack("demo", "pool-a").ID)
			require.Len(t, l.API("drover-demo").Nodes(), 1)
		})
	})
	t.Run("the control plane, and recreating it fails: the next execution recreates the rest", func(t *testing.T) {
		run(t, func(l *life) {
			l.Cluster("demo", lives.Unprotected)
			before := l.innerStacks("demo")
			l.OnCall(failPrepare)
			l.DeleteStack("demo", names.ControlPlane)
			require.NoError(t, l.AuditNow())
			l.Settle()
			l.requireContinuation("demo", before)
		})
	})
	t.Run("the control plane, while drover changes it", func(t *testing.T) {
		run(t, func(l *life) {
			l.Cluster("demo", lives.Unprotected)
			before := l.innerStacks("demo")
			name, lost := names.Stack("demo", names.ControlPlane), false
			l.OnCall(func(call endpoint.Call) error {
				if call.Action == "ExecuteChangeSet" && strings.Contains(call.Resource, name) && !lost {
					lost = true
					_, err := l.CloudFormation.DeleteStack(t.Context(), l.Admin(), &cloudformation.DeleteStackInput{StackName: name})
					require.NoError(t, err)
				}
				return nil
			})
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected+"  tags: {team: b}\n"))
			l.Settle()
			require.True(t, lost)
			l.requireRecreated("demo", before)
		})
	})
	t.Run("the control plane, partly, and recreating it fails: the next execution recreates the rest", func(t *testing.T) {
		run(t, func(l *life) {
			l.Cluster("demo", lives.Unprotected)
			before := l.innerStacks("demo")
			l.OnResource(func(step string, r resource.Request) error {
				if step == "delete" && r.StackName == names.Stack("demo", names.ControlPlane) {
					return &wire.Error{Code: "DependencyViolation", Message: "it is in use", Status: 400}
				}
				return nil
			})
			_, err := l.CloudFormation.DeleteStack(t.Context(), l.Admin(), &cloudformation.DeleteStackInput{
				StackName: names.Stack("demo", names.ControlPlane),
			})
			require.NoError(t, err)
			l.Settle()
			require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.ControlPlane])
			l.OnResource(nil)
			l.OnCall(failPrepare)
			l.Converge("demo")
			l.Settle()
			l.requireContinuation("demo", before)
		})
	})
	t.Run("the network, whose resources block each other: nothing more is deleted, and the cluster can still be deleted", func(t *testing.T) {
		run(t, func(l *life) {
			before := l.AllResources()
			l.Cluster("demo", lives.Unprotected)
			_, err := l.CloudFormation.DeleteStack(l.T.Context(), l.Admin(), &cloudformation.DeleteStackInput{
				StackName: names.Stack("demo", names.Network),
			})
			require.NoError(t, err)
			l.Settle()
			require.Equal(t, "DELETE_FAILED", l.Stacks("demo")[names.Network])
			require.NoError(t, l.AuditNow())
			l.Settle()
			s := l.Status("demo")
			require.Equal(t, status.Failed, s.Phase)
			require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
			require.Contains(t, s.Message, "delete the spec")
			l.Remove(names.ClusterSpec("demo"), "")
			l.Settle()
			l.RequireDeleted("demo", before)
		})
	})
}

func TestDeletedControlPlane(t *testing.T) {
	t.Run("the cluster can be deleted after its EKS cluster, and leaves nothing", func(t *testing.T) {
		run(t, func(l *life) {
			before := l.AllResources()
			l.Cluster("demo", "")
			l.CheckTokens()
			l.DeleteStack("demo", names.ControlPlane)
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
			l.Settle()
			require.False(t, l.Stack("demo", names.Network).TerminationProtection)
			begin := time.Now()
			l.Remove(names.ClusterSpec("demo"), "")
			l.Until("the pool is deleted", func() bool { return l.Stacks("demo")[names.PoolPrefix+"a"] == "" })
			require.Less(t, time.Since(begin), 10*time.Minute, "the drain cannot reach the API: its access entry was deleted")
			l.Settle()
			l.requireRemaining("EKS cluster drover-demo still exists although its stack was deleted")
			l.DeleteEKSCluster("demo")
			l.Converge("demo")
			l.Settle()
			mine := slices.DeleteFunc(l.ResourceIDs(":key/"), func(id string) bool {
				return slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(arn string) bool { return strings.HasSuffix(arn, id) })
			})
			require.Len(t, mine, 1)
			role := l.roleOf("demo")
			l.requireRemaining("log group /aws/eks/drover-demo/cluster: deletion protection retained it",
				"key "+mine[0]+": deletion protection retained it",
				"role "+role+": deletion protection retained it")
			l.deleteAll(":log-group:/aws/eks/")
			_, err := kms.NewFromConfig(l.Config()).ScheduleKeyDeletion(l.T.Context(), &kms.ScheduleKeyDeletionInput{KeyId: &mine[0]})
			require.NoError(t, err)
			l.Converge("demo")
			l.Settle()
			l.requireRemaining("role " + role)
			require.NoError(t, l.DeleteRole(role))
			l.Converge("demo")
			l.Settle()
			l.RequireDeleted("demo", before)
		})
	})
	t.Run("unprotected by a spec whose release is missing: the status says both; drover continues when the release is uploaded",
		func(t *testing.T) {
			run(t, func(l *life) {
				l.Cluster("demo", "")
				l.DeleteStack("demo", names.ControlPlane)
				l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "name: r1", "name: r2", 1))
				l.Settle()
				s := l.Status("demo")
				require.Equal(t, status.ReasonReleaseUnusable, s.Condition(status.SpecAccepted).Reason)
				require.Contains(t, s.Condition(status.SpecAccepted).Message, "there is no release releases/r2.yaml")
				require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
				require.True(t, l.Stack("demo", names.Network).TerminationProtection)
				for range 2 {
					executions := len(l.StepFunctions.Executions())
					time.Sleep(15 * time.Minute)
					require.NoError(t, l.AuditNow())
					l.Settle()
					require.Len(t, l.StepFunctions.Executions(), executions, "no execution starts without the release")
				}
				l.Upload(names.ReleaseSpec("r2"), strings.Replace(harness.Release(), "name: r1", "name: r2", 1))
				l.Settle()
				time.Sleep(15 * time.Minute)
				require.NoError(t, l.AuditNow())
				l.Settle()
				require.Equal(t, status.ReasonValid, l.Status("demo").Condition(status.SpecAccepted).Reason)
				require.False(t, l.Stack("demo", names.Network).TerminationProtection)
			})
		})
	t.Run("only the EKS cluster was deleted: the audit reports how to recreate it", func(t *testing.T) {
		run(t, func(l *life) {
			l.Cluster("demo", "")
			l.DeleteEKSCluster("demo")
			require.NoError(t, l.AuditNow())
			require.Contains(t, l.Status("demo").Condition(status.InSync).Message,
				"EKS has no cluster drover-demo although its stack exists: it was deleted outside drover. To recreate it, delete the stack "+
					"drover-demo-control-plane and the cluster's log group, and run drover converge demo")
			l.DeleteStack("demo", names.ControlPlane)
			l.deleteAll(":log-group:/aws/eks/")
			l.Converge("demo")
			l.Settle()
			require.Equal(t, status.Ready, l.Status("demo").Phase, l.Status("demo").Message)
			require.NoError(t, l.AuditNow())
			require.Equal(t, "True", l.Status("demo").Condition(status.InSync).Status, l.Status("demo").Condition(status.InSync).Message)
		})
	})
	t.Run("drover recreates it once its EKS cluster is deleted", func(t *testing.T) {
		run(t, func(l *life) {
			l.Cluster("demo", "")
			vpc := l.ResourceIDs(":vpc/")
			l.DeleteStack("demo", names.ControlPlane)
			l.DeleteEKSCluster("demo")
			l.deleteAll(":log-group:/aws/eks/")
			l.Converge("demo")
			l.Settle()
			require.Equal(t, status.Ready, l.Status("demo").Phase, l.Status("demo").Message)
			require.Equal(t, vpc, l.ResourceIDs(":vpc/"))
		})
	})
}

// IAM has the roles of all regions. Roles of a cluster of the same name in another region do not belong to this one, nor do
// those of clusters whose names start alike. CloudFormation truncates long names.
func TestRetainedRolesOfOtherClusters(t *testing.T) {
	l := start(t)
	var config aws.Config
	l.Functions.Around("clean", func(cfg aws.Config, next awslambda.Handler) awslambda.Handler {
		config = cfg
		return next
	})
	_, err := l.Identities.CreatePolicy(iam.ManagedPolicy{
		Name:     names.Boundary("us-east-1"),
		Document: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}]}`,
	})
	require.NoError(t, err)
	long := strings.Repeat("a", 40)
	short := names.Stack(long, "")[:24] + "-ClusterRole-6"
	for _, r := range []struct{ name, path, cluster, region string }{
		{name: "drover-shop-control-plane-ClusterRole-1", path: names.ClusterRoles, cluster: "shop", region: harness.Region},
		{name: "drover-shop-control-plane-ClusterRole-2", path: names.ClusterRoles, cluster: "shop", region: "us-east-1"},
		{name: "drover-shop-control-plane-ClusterRole-3", path: "/", cluster: "shop", region: harness.Region},
		{name: "drover-shop-control-plane-ClusterRole-4", path: names.ClusterRoles, cluster: "shop"},
		{name: "drover-shop-two-control-plane-ClusterRole-5", path: names.ClusterRoles, cluster: "shop-two", region: harness.Region},
		{name: short, path: names.ClusterRoles, cluster: long, region: harness.Region},
	} {
		role := iam.Role{
			Name: r.name, Path: r.path, Tags: map[string]string{names.TagCluster: r.cluster},
			TrustDocument: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, ` +
				`"Action": "sts:AssumeRole"}]}`,
		}
		if r.region != "" {
			role.Boundary = names.BoundaryARN("aws", harness.ID, r.region)
		}
		_, err := l.Identities.CreateRole(role)
		require.NoError(t, err)
	}
	for cluster, want := range map[string][]string{
		"shop": {"role drover-shop-control-plane-ClusterRole-1"}, "shop-two": {"role drover-shop-two-control-plane-ClusterRole-5"},
		long: {"role " + short}, "sho": nil,
	} {
		kept, err := leftovers.New(config, names.RoleARN("aws", harness.ID, harness.Region, "leftovers")).RetainedByStacks(t.Context(), cluster)
		require.NoError(t, err)
		require.Equal(t, want, kept, cluster)
	}
}
