package harness

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
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/shared/aws/leftovers"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// Unstack deletes a protected stack by hand.
func (a *Account) Unstack(cluster, stack string) {
	a.t.Helper()
	a.tryToUnstack(cluster, stack)
	require.NotContains(a.t, a.Stacks(cluster), stack)
}

// tryToUnstack does so for a stack that cannot be deleted completely.
func (a *Account) tryToUnstack(cluster, stack string) {
	a.t.Helper()
	name := names.Stack(cluster, stack)
	_, err := a.CloudFormation.UpdateTerminationProtection(a.t.Context(), a.Admin(), &cloudformation.UpdateTerminationProtectionInput{
		StackName: name,
	})
	require.NoError(a.t, err)
	_, err = a.CloudFormation.DeleteStack(a.t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: name})
	require.NoError(a.t, err)
	a.Settle()
}

// ids lists the resources of a kind in the account.
func (a *Account) ids(kind string) (ids []string) {
	for arn := range a.AllResources() {
		if at := strings.LastIndex(arn, kind); at >= 0 {
			ids = append(ids, arn[at+len(kind):])
		}
	}
	slices.Sort(ids)
	return ids
}

// unmade deletes all resources of a kind by hand.
func (a *Account) unmade(kind string) {
	a.t.Helper()
	for _, arn := range slices.Sorted(maps.Keys(a.AllResources())) {
		if strings.Contains(arn, kind) {
			require.NoError(a.t, a.DeleteByARN(arn), arn)
		}
	}
}

// endEKS deletes an EKS cluster by hand.
func (a *Account) endEKS(cluster string) {
	a.t.Helper()
	name := names.EKSCluster(cluster)
	_, err := a.EKS.UpdateClusterConfig(a.t.Context(), a.Admin(), eks.UpdateClusterConfigInput{
		Name: name, DeletionProtection: aws.Bool(false),
	})
	require.NoError(a.t, err)
	time.Sleep(10 * time.Minute)
	_, err = a.EKS.DeleteCluster(a.t.Context(), a.Admin(), eks.NamedInput{Name: name})
	require.NoError(a.t, err)
	time.Sleep(20 * time.Minute)
	require.Empty(a.t, a.ids(":cluster/"))
}

// roleOf returns the one remaining role of a cluster's stacks.
func (a *Account) roleOf(cluster string) string {
	a.t.Helper()
	roles := slices.DeleteFunc(a.Identities.Roles(), func(r iam.Role) bool { return r.Tags[names.TagCluster] != cluster })
	require.Len(a.t, roles, 1)
	return roles[0].Name
}

// remains asserts that a deletion stopped because of the resources in its message.
func (a *Account) remains(what ...string) {
	a.t.Helper()
	s := a.Status("demo")
	require.Equal(a.t, status.Failed, s.Phase, s.Message)
	require.Equal(a.t, "LeftoversRemain", s.Condition(status.Converged).Reason)
	for _, what := range what {
		require.Contains(a.t, s.Message, what)
	}
}

func TestDeletionAfterALostNetwork(t *testing.T) {
	bubble(t, func(a *Account) {
		before := a.AllResources()
		a.Cluster("demo", "")
		a.Unstack("demo", names.Network)
		a.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Stopped, s.Phase, s.Message)
		require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
		require.False(t, a.Stack("demo", names.ControlPlane).TerminationProtection)
		require.False(t, a.Protected("drover-demo"))

		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		vpcs := a.ids(":vpc/")
		require.Len(t, vpcs, 1)
		a.remains("VPC " + vpcs[0] + " with its subnets: deletion protection retained it")
		require.Empty(t, a.Stacks("demo"))
		a.unmade(":subnet/")
		a.unmade(":vpc/")
		a.Converge("demo")
		a.Settle()
		a.deleted("demo", before)
	})
}

// A user deletes the network stack while drover disables deletion protection. The VPC is retained. drover still disables the protection of
// the other resources.
func TestDeletionAfterALostNetworkWithoutProtection(t *testing.T) {
	bubble(t, func(a *Account) {
		a.Cluster("demo", "")
		name, lost := names.Stack("demo", names.Network), false
		a.OnCall(func(call endpoint.Call) error {
			if CalledBy(call) == "change" && call.Action == "ExecuteChangeSet" && !lost {
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
		a.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
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
	bubble(t, func(a *Account) {
		before := a.AllResources()
		a.Cluster("demo", "")
		lost := false
		a.OnCall(func(call endpoint.Call) error {
			if CalledBy(call) == "change" && call.Action == "ExecuteChangeSet" && strings.Contains(call.Resource, names.ControlPlane) && !lost {
				lost = true
				_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{
					StackName: names.Stack("demo", names.Network),
				})
				require.NoError(t, err)
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		a.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
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
		a.deleted("demo", before)
	})
}

// inside returns the IDs of the stacks inside a cluster.
func (a *Account) inside(cluster string) []string {
	return []string{a.Stack(cluster, names.Addons).ID, a.Stack(cluster, "pool-a").ID}
}

// recreated asserts that a cluster is Ready and that its inner stacks were recreated.
func (a *Account) recreated(cluster string, before []string) {
	a.t.Helper()
	require.Equal(a.t, status.Ready, a.Status(cluster).Phase, a.Status(cluster).Message)
	for _, stack := range a.inside(cluster) {
		require.NotContains(a.t, before, stack)
	}
	require.Len(a.t, a.API(names.EKSCluster(cluster)).Nodes(), 1)
}

// unprepared fails the execution that made a control plane.
func unprepared(call endpoint.Call) error {
	if CalledBy(call) == "prepare" {
		return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
	}
	return nil
}

// continues asserts that an execution failed after it recreated the control plane, and that the next one recreates the rest of the cluster.
func (a *Account) continues(cluster string, before []string) {
	a.t.Helper()
	require.Equal(a.t, status.Failed, a.Status(cluster).Phase, a.Status(cluster).Message)
	require.Equal(a.t, "CREATE_COMPLETE", a.Stacks(cluster)[names.ControlPlane])
	a.OnCall(nil)
	a.Converge(cluster)
	a.Settle()
	a.recreated(cluster, before)
}

// A deletion outside drover removes an unprotected stack with all its resources.
func TestUnprotectedStackIsDeletedOutside(t *testing.T) {
	t.Run("the control plane: drover recreates its inner stacks", func(t *testing.T) {
		bubble(t, func(a *Account) {
			a.Cluster("demo", unprotected)
			vpc, pool := a.ids(":vpc/"), a.Stack("demo", "pool-a").ID
			a.Unstack("demo", names.ControlPlane)
			require.NoError(t, a.AuditNow())
			message := a.Status("demo").Condition(status.InSync).Message
			require.Contains(t, message, "stack control-plane is missing")
			require.Contains(t, message, "stack addons belongs to a deleted control plane")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.Equal(t, vpc, a.ids(":vpc/"))
			require.NotEqual(t, pool, a.Stack("demo", "pool-a").ID)
			require.Len(t, a.API("drover-demo").Nodes(), 1)
		})
	})
	t.Run("the control plane, and recreating it fails: the next execution recreates the rest", func(t *testing.T) {
		bubble(t, func(a *Account) {
			a.Cluster("demo", unprotected)
			before := a.inside("demo")
			a.OnCall(unprepared)
			a.Unstack("demo", names.ControlPlane)
			require.NoError(t, a.AuditNow())
			a.Settle()
			a.continues("demo", before)
		})
	})
	t.Run("the control plane, while drover changes it", func(t *testing.T) {
		bubble(t, func(a *Account) {
			a.Cluster("demo", unprotected)
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
			a.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected+"  tags: {team: b}\n"))
			a.Settle()
			require.True(t, lost)
			a.recreated("demo", before)
		})
	})
	t.Run("the control plane, partly, and recreating it fails: the next execution recreates the rest", func(t *testing.T) {
		bubble(t, func(a *Account) {
			a.Cluster("demo", unprotected)
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
		bubble(t, func(a *Account) {
			before := a.AllResources()
			a.Cluster("demo", unprotected)
			_, err := a.CloudFormation.DeleteStack(a.t.Context(), a.Admin(), &cloudformation.DeleteStackInput{
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
			a.deleted("demo", before)
		})
	})
}

func TestDeletedControlPlane(t *testing.T) {
	t.Run("is deleted once its EKS cluster is, and leaves nothing", func(t *testing.T) {
		bubble(t, func(a *Account) {
			before := a.AllResources()
			a.Cluster("demo", "")
			a.Unstack("demo", names.ControlPlane)
			a.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
			a.Settle()
			require.False(t, a.Stack("demo", names.Network).TerminationProtection)
			a.Remove(names.ClusterSpec("demo"), "")
			a.Settle()
			a.remains("EKS cluster drover-demo still exists although its stack was deleted")
			a.endEKS("demo")
			a.Converge("demo")
			a.Settle()
			mine := slices.DeleteFunc(a.ids(":key/"), func(id string) bool {
				return slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(arn string) bool { return strings.HasSuffix(arn, id) })
			})
			require.Len(t, mine, 1)
			role := a.roleOf("demo")
			a.remains("log group /aws/eks/drover-demo/cluster: deletion protection retained it", "key "+mine[0]+": deletion protection retained it",
				"role "+role+": deletion protection retained it")
			a.unmade(":log-group:/aws/eks/")
			_, err := kms.NewFromConfig(a.Config()).ScheduleKeyDeletion(a.t.Context(), &kms.ScheduleKeyDeletionInput{KeyId: &mine[0]})
			require.NoError(t, err)
			a.Converge("demo")
			a.Settle()
			a.remains("role " + role)
			require.NoError(t, a.DeleteRole(role))
			a.Converge("demo")
			a.Settle()
			a.deleted("demo", before)
		})
	})
	t.Run("whose protection is taken off by a spec of a release that is not there: the status says both, and it goes on when that comes",
		func(t *testing.T) {
			bubble(t, func(a *Account) {
				a.Cluster("demo", "")
				a.Unstack("demo", names.ControlPlane)
				a.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", unprotected), "name: r1", "name: r2", 1))
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
				a.Upload(names.ReleaseSpec("r2"), strings.Replace(Release(), "name: r1", "name: r2", 1))
				a.Settle()
				time.Sleep(15 * time.Minute)
				require.NoError(t, a.AuditNow())
				a.Settle()
				require.Equal(t, status.ReasonValid, a.Status("demo").Condition(status.SpecAccepted).Reason)
				require.False(t, a.Stack("demo", names.Network).TerminationProtection)
			})
		})
	t.Run("only the EKS cluster was deleted: the audit reports how to recreate it", func(t *testing.T) {
		bubble(t, func(a *Account) {
			a.Cluster("demo", "")
			a.endEKS("demo")
			require.NoError(t, a.AuditNow())
			require.Contains(t, a.Status("demo").Condition(status.InSync).Message,
				"EKS has no cluster drover-demo although its stack exists: it was deleted outside drover. To recreate it, delete the stack "+
					"drover-demo-control-plane and the cluster's log group, and run drover converge demo")
			a.Unstack("demo", names.ControlPlane)
			a.unmade(":log-group:/aws/eks/")
			a.Converge("demo")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.NoError(t, a.AuditNow())
			require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status, a.Status("demo").Condition(status.InSync).Message)
		})
	})
	t.Run("is recreated once its EKS cluster is deleted", func(t *testing.T) {
		bubble(t, func(a *Account) {
			a.Cluster("demo", "")
			vpc := a.ids(":vpc/")
			a.Unstack("demo", names.ControlPlane)
			a.endEKS("demo")
			a.unmade(":log-group:/aws/eks/")
			a.Converge("demo")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.Equal(t, vpc, a.ids(":vpc/"))
		})
	})
}

// IAM has the roles of all regions. Roles of a cluster of the same name in another region do not belong to this one, nor do
// those of clusters whose names start alike. CloudFormation truncates long names.
func TestRetainedRolesOfOtherClusters(t *testing.T) {
	a := Start(t)
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
		{"drover-shop-control-plane-ClusterRole-1", names.ClusterRoles, "shop", Region},
		{"drover-shop-control-plane-ClusterRole-2", names.ClusterRoles, "shop", "us-east-1"},
		{"drover-shop-control-plane-ClusterRole-3", "/", "shop", Region},
		{"drover-shop-control-plane-ClusterRole-4", names.ClusterRoles, "shop", ""},
		{"drover-shop-two-control-plane-ClusterRole-5", names.ClusterRoles, "shop-two", Region},
		{short, names.ClusterRoles, long, Region},
	} {
		role := iam.Role{
			Name: r.name, Path: r.path, Tags: map[string]string{names.TagCluster: r.cluster},
			TrustDocument: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, ` +
				`"Action": "sts:AssumeRole"}]}`,
		}
		if r.region != "" {
			role.Boundary = names.BoundaryARN("aws", ID, r.region)
		}
		_, err := a.Identities.CreateRole(role)
		require.NoError(t, err)
	}
	for cluster, want := range map[string][]string{
		"shop": {"role drover-shop-control-plane-ClusterRole-1"}, "shop-two": {"role drover-shop-two-control-plane-ClusterRole-5"},
		long: {"role " + short}, "sho": nil,
	} {
		kept, err := leftovers.New(config, names.RoleARN("aws", ID, Region, "leftovers")).Kept(t.Context(), cluster)
		require.NoError(t, err)
		require.Equal(t, want, kept, cluster)
	}
}
