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

// unmade deletes all resources of a kind by hand.
func (l *life) unmade(kind string) {
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

// remains asserts that a deletion stopped because of the resources in its message.
func (l *life) remains(what ...string) {
	l.T.Helper()
	s := l.Status("demo")
	require.Equal(l.T, status.Failed, s.Phase, s.Message)
	require.Equal(l.T, "LeftoversRemain", s.Condition(status.Converged).Reason)
	for _, what := range what {
		require.Contains(l.T, s.Message, what)
	}
}

func TestDeletionAfterALostNetwork(t *testing.T) {
	run(t, func(a *life) {
		before := a.AllResources()
		a.Cluster("demo", "")
		a.DeleteStack("demo", names.Network)
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Stopped, s.Phase, s.Message)
		require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
		require.False(t, a.Stack("demo", names.ControlPlane).TerminationProtection)
		require.False(t, a.Protected("drover-demo"))

		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		vpcs := a.ResourceIDs(":vpc/")
		require.Len(t, vpcs, 1)
		a.remains("VPC " + vpcs[0] + " with its subnets: deletion protection retained it")
		require.Empty(t, a.Stacks("demo"))
		a.unmade(":subnet/")
		a.unmade(":vpc/")
		a.Converge("demo")
		a.Settle()
		a.RequireDeleted("demo", before)
	})
}

// A user deletes the network stack while drover disables deletion protection. The VPC is retained. drover still disables the protection of
// the other resources.
func TestDeletionAfterALostNetworkWithoutProtection(t *testing.T) {
	run(t, func(a *life) {
		a.Cluster("demo", "")
		name, lost := names.Stack("demo", names.Network), false
		a.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "change" && call.Action == "ExecuteChangeSet" && !lost {
				lost = true
				_, err := a.CloudFormation.UpdateTerminationProtection(t.Context(), a.Admin(), &cloudformation.UpdateTerminationProtectionInput{
					StackName: name,
				})
				require.NoError(t, err)
				_, err = a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: name})
				require.NoError(t, err)
			}
			return nil
		})
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		a.Settle()
		require.True(t, lost)
		require.NotContains(t, a.Stacks("demo"), names.Network)
		s := a.Status("demo")
		require.Equal(t, status.Stopped, s.Phase, s.Message)
		require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
		require.Contains(t, s.Message, "stack "+name+": absent")
		require.False(t, a.Stack("demo", names.ControlPlane).TerminationProtection)
		require.False(t, a.Protected("drover-demo"))
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		a.remains("VPC ", " with its subnets: deletion protection retained it")
	})
}

// A network whose resources block each other stays half deleted. drover still disables the remaining protection of the cluster.
func TestDeletionOfAHalfDeletedNetwork(t *testing.T) {
	run(t, func(a *life) {
		before := a.AllResources()
		a.Cluster("demo", "")
		lost := false
		a.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "change" && call.Action == "ExecuteChangeSet" && strings.Contains(call.Resource, names.ControlPlane) &&
				!lost {
				lost = true
				_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{
					StackName: names.Stack("demo", names.Network),
				})
				require.NoError(t, err)
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		a.Settle()
		require.True(t, lost)
		require.Equal(t, "DELETE_FAILED", a.Stacks("demo")[names.Network])
		require.True(t, a.Stack("demo", names.ControlPlane).TerminationProtection)
		a.Converge("demo")
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Failed, s.Phase, s.Message)
		require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
		require.Contains(t, s.Message, "delete the spec")
		require.False(t, a.Stack("demo", names.ControlPlane).TerminationProtection)
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		a.RequireDeleted("demo", before)
	})
}

// inside returns the IDs of the stacks inside a cluster.
func (l *life) inside(cluster string) []string {
	return []string{l.Stack(cluster, names.Addons).ID, l.Stack(cluster, "pool-a").ID}
}

// recreated asserts that a cluster is Ready and that its inner stacks were recreated.
func (l *life) recreated(cluster string, before []string) {
	l.T.Helper()
	require.Equal(l.T, status.Ready, l.Status(cluster).Phase, l.Status(cluster).Message)
	for _, stack := range l.inside(cluster) {
		require.NotContains(l.T, before, stack)
	}
	require.Len(l.T, l.API(names.EKSCluster(cluster)).Nodes(), 1)
}

// unprepared fails the execution that made a control plane.
func unprepared(call endpoint.Call) error {
	if harness.CalledBy(call) == "prepare" {
		return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
	}
	return nil
}

// continues asserts that an execution failed after it recreated the control plane, and that the next one recreates the rest of the cluster.
func (l *life) continues(cluster string, before []string) {
	l.T.Helper()
	require.Equal(l.T, status.Failed, l.Status(cluster).Phase, l.Status(cluster).Message)
	require.Equal(l.T, "CREATE_COMPLETE", l.Stacks(cluster)[names.ControlPlane])
	l.OnCall(nil)
	l.Converge(cluster)
	l.Settle()
	l.recreated(cluster, before)
}

// A deletion outside drover removes an unprotected stack with all its resources.
func TestUnprotectedStackIsDeletedOutside(t *testing.T) {
	t.Run("the control plane: drover recreates its inner stacks", func(t *testing.T) {
		run(t, func(a *life) {
			a.Cluster("demo", lives.Unprotected)
			vpc, pool := a.ResourceIDs(":vpc/"), a.Stack("demo", "pool-a").ID
			a.DeleteStack("demo", names.ControlPlane)
			require.NoError(t, a.AuditNow())
			message := a.Status("demo").Condition(status.InSync).Message
			require.Contains(t, message, "stack control-plane is missing")
			require.Contains(t, message, "stack addons belongs to a deleted control plane")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.Equal(t, vpc, a.ResourceIDs(":vpc/"))
			require.NotEqual(t, pool, a.Stack("demo", "pool-a").ID)
			require.Len(t, a.API("drover-demo").Nodes(), 1)
		})
	})
	t.Run("the control plane, and recreating it fails: the next execution recreates the rest", func(t *testing.T) {
		run(t, func(a *life) {
			a.Cluster("demo", lives.Unprotected)
			before := a.inside("demo")
			a.OnCall(unprepared)
			a.DeleteStack("demo", names.ControlPlane)
			require.NoError(t, a.AuditNow())
			a.Settle()
			a.continues("demo", before)
		})
	})
	t.Run("the control plane, while drover changes it", func(t *testing.T) {
		run(t, func(a *life) {
			a.Cluster("demo", lives.Unprotected)
			before := a.inside("demo")
			name, lost := names.Stack("demo", names.ControlPlane), false
			a.OnCall(func(call endpoint.Call) error {
				if call.Action == "ExecuteChangeSet" && strings.Contains(call.Resource, name) && !lost {
					lost = true
					_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: name})
					require.NoError(t, err)
				}
				return nil
			})
			a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected+"  tags: {team: b}\n"))
			a.Settle()
			require.True(t, lost)
			a.recreated("demo", before)
		})
	})
	t.Run("the control plane, partly, and recreating it fails: the next execution recreates the rest", func(t *testing.T) {
		run(t, func(a *life) {
			a.Cluster("demo", lives.Unprotected)
			before := a.inside("demo")
			a.OnResource(func(step string, r resource.Request) error {
				if step == "delete" && r.StackName == names.Stack("demo", names.ControlPlane) {
					return &wire.Error{Code: "DependencyViolation", Message: "it is in use", Status: 400}
				}
				return nil
			})
			_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{
				StackName: names.Stack("demo", names.ControlPlane),
			})
			require.NoError(t, err)
			a.Settle()
			require.Equal(t, "DELETE_FAILED", a.Stacks("demo")[names.ControlPlane])
			a.OnResource(nil)
			a.OnCall(unprepared)
			a.Converge("demo")
			a.Settle()
			a.continues("demo", before)
		})
	})
	t.Run("the network, which stands in its own way: nothing more is deleted, and the cluster can be", func(t *testing.T) {
		run(t, func(a *life) {
			before := a.AllResources()
			a.Cluster("demo", lives.Unprotected)
			_, err := a.CloudFormation.DeleteStack(a.T.Context(), a.Admin(), &cloudformation.DeleteStackInput{
				StackName: names.Stack("demo", names.Network),
			})
			require.NoError(t, err)
			a.Settle()
			require.Equal(t, "DELETE_FAILED", a.Stacks("demo")[names.Network])
			require.NoError(t, a.AuditNow())
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.Failed, s.Phase)
			require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
			require.Contains(t, s.Message, "delete the spec")
			a.Remove(names.ClusterSpec("demo"), "")
			a.Settle()
			a.RequireDeleted("demo", before)
		})
	})
}

func TestDeletedControlPlane(t *testing.T) {
	t.Run("is deleted once its EKS cluster is, and leaves nothing", func(t *testing.T) {
		run(t, func(a *life) {
			before := a.AllResources()
			a.Cluster("demo", "")
			a.DeleteStack("demo", names.ControlPlane)
			a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
			a.Settle()
			require.False(t, a.Stack("demo", names.Network).TerminationProtection)
			a.Remove(names.ClusterSpec("demo"), "")
			a.Settle()
			a.remains("EKS cluster drover-demo still exists although its stack was deleted")
			a.DeleteEKSCluster("demo")
			a.Converge("demo")
			a.Settle()
			mine := slices.DeleteFunc(a.ResourceIDs(":key/"), func(id string) bool {
				return slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(arn string) bool { return strings.HasSuffix(arn, id) })
			})
			require.Len(t, mine, 1)
			role := a.roleOf("demo")
			a.remains("log group /aws/eks/drover-demo/cluster: deletion protection retained it", "key "+mine[0]+": deletion protection retained it",
				"role "+role+": deletion protection retained it")
			a.unmade(":log-group:/aws/eks/")
			_, err := kms.NewFromConfig(a.Config()).ScheduleKeyDeletion(a.T.Context(), &kms.ScheduleKeyDeletionInput{KeyId: &mine[0]})
			require.NoError(t, err)
			a.Converge("demo")
			a.Settle()
			a.remains("role " + role)
			require.NoError(t, a.DeleteRole(role))
			a.Converge("demo")
			a.Settle()
			a.RequireDeleted("demo", before)
		})
	})
	t.Run("whose protection is taken off by a spec of a release that is not there: the status says both, and it goes on when that comes",
		func(t *testing.T) {
			run(t, func(a *life) {
				a.Cluster("demo", "")
				a.DeleteStack("demo", names.ControlPlane)
				a.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "name: r1", "name: r2", 1))
				a.Settle()
				s := a.Status("demo")
				require.Equal(t, status.ReasonReleaseUnusable, s.Condition(status.SpecAccepted).Reason)
				require.Contains(t, s.Condition(status.SpecAccepted).Message, "there is no release releases/r2.yaml")
				require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
				require.True(t, a.Stack("demo", names.Network).TerminationProtection)
				for range 2 {
					executions := len(a.States.Executions())
					time.Sleep(15 * time.Minute)
					require.NoError(t, a.AuditNow())
					a.Settle()
					require.Len(t, a.States.Executions(), executions, "nothing came")
				}
				a.Upload(names.ReleaseSpec("r2"), strings.Replace(harness.Release(), "name: r1", "name: r2", 1))
				a.Settle()
				time.Sleep(15 * time.Minute)
				require.NoError(t, a.AuditNow())
				a.Settle()
				require.Equal(t, status.ReasonValid, a.Status("demo").Condition(status.SpecAccepted).Reason)
				require.False(t, a.Stack("demo", names.Network).TerminationProtection)
			})
		})
	t.Run("only the EKS cluster was deleted: the audit reports how to recreate it", func(t *testing.T) {
		run(t, func(a *life) {
			a.Cluster("demo", "")
			a.DeleteEKSCluster("demo")
			require.NoError(t, a.AuditNow())
			require.Contains(t, a.Status("demo").Condition(status.InSync).Message,
				"EKS has no cluster drover-demo although its stack exists: it was deleted outside drover. To recreate it, delete the stack "+
					"drover-demo-control-plane and the cluster's log group, and run drover converge demo")
			a.DeleteStack("demo", names.ControlPlane)
			a.unmade(":log-group:/aws/eks/")
			a.Converge("demo")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.NoError(t, a.AuditNow())
			require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status, a.Status("demo").Condition(status.InSync).Message)
		})
	})
	t.Run("is recreated once its EKS cluster is deleted", func(t *testing.T) {
		run(t, func(a *life) {
			a.Cluster("demo", "")
			vpc := a.ResourceIDs(":vpc/")
			a.DeleteStack("demo", names.ControlPlane)
			a.DeleteEKSCluster("demo")
			a.unmade(":log-group:/aws/eks/")
			a.Converge("demo")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.Equal(t, vpc, a.ResourceIDs(":vpc/"))
		})
	})
}

// IAM has the roles of all regions. Roles of a cluster of the same name in another region do not belong to this one, nor do
// those of clusters whose names start alike. CloudFormation truncates long names.
func TestRetainedRolesOfOtherClusters(t *testing.T) {
	a := start(t)
	var config aws.Config
	a.Functions.Around("clean", func(cfg aws.Config, next awslambda.Handler) awslambda.Handler {
		config = cfg
		return next
	})
	_, err := a.Identities.CreatePolicy(iam.ManagedPolicy{
		Name:     names.Boundary("us-east-1"),
		Document: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}]}`,
	})
	require.NoError(t, err)
	long := strings.Repeat("a", 40)
	short := names.Stack(long, "")[:24] + "-ClusterRole-6"
	for _, r := range []struct{ name, path, cluster, region string }{
		{"drover-shop-control-plane-ClusterRole-1", names.ClusterRoles, "shop", harness.Region},
		{"drover-shop-control-plane-ClusterRole-2", names.ClusterRoles, "shop", "us-east-1"},
		{"drover-shop-control-plane-ClusterRole-3", "/", "shop", harness.Region},
		{"drover-shop-control-plane-ClusterRole-4", names.ClusterRoles, "shop", ""},
		{"drover-shop-two-control-plane-ClusterRole-5", names.ClusterRoles, "shop-two", harness.Region},
		{short, names.ClusterRoles, long, harness.Region},
	} {
		role := iam.Role{
			Name: r.name, Path: r.path, Tags: map[string]string{names.TagCluster: r.cluster},
			TrustDocument: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, ` +
				`"Action": "sts:AssumeRole"}]}`,
		}
		if r.region != "" {
			role.Boundary = names.BoundaryARN("aws", harness.ID, r.region)
		}
		_, err := a.Identities.CreateRole(role)
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
