package eks

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
)

// node puts a Node object with a kubelet into a cluster in memory.
func (b *testbed) node(t *testing.T, cluster, name, kubelet string) {
	t.Helper()
	_, err := b.planes[cluster].client.Resource(nodeResource).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
		"status": map[string]any{"nodeInfo": map[string]any{"kubeletVersion": kubelet}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (b *testbed) removeNode(t *testing.T, cluster, name string) {
	t.Helper()
	require.NoError(t, b.planes[cluster].client.Resource(nodeResource).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func (b *testbed) version(t *testing.T, cluster, version string, force bool) (*Update, error) {
	t.Helper()
	out, err := b.UpdateClusterVersion(t.Context(), b.admin, UpdateClusterVersionInput{Name: cluster, Version: version, Force: force})
	if err != nil {
		return nil, err
	}
	b.await(t, cluster, active)
	end, err := b.DescribeUpdate(t.Context(), b.admin, DescribeUpdateInput{Name: cluster, UpdateID: out.Update.ID})
	require.NoError(t, err)
	return end.Update, nil
}

func (b *testbed) describe(t *testing.T, name string) *Cluster {
	t.Helper()
	out, err := b.DescribeCluster(t.Context(), b.admin, NamedInput{name})
	require.NoError(t, err)
	return out.Cluster
}

func TestVersionChangesByOneMinor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.cluster(t, "demo")
		for target, message := range map[string]string{
			"1.35": "Unsupported Kubernetes minor version update from 1.35 to 1.35",
			"1.37": "Unsupported Kubernetes minor version update from 1.35 to 1.37",
			"1.33": "Unsupported Kubernetes minor version update from 1.35 to 1.33",
			"1.34": "cannot be rolled back to version 1.34: it was not upgraded from it",
		} {
			_, err := b.version(t, "demo", target, true)
			awsError(t, err, "InvalidParameterException", message)
		}
		began := time.Now()
		out, err := b.UpdateClusterVersion(t.Context(), b.admin, UpdateClusterVersionInput{Name: "demo", Version: "1.36"})
		require.NoError(t, err)
		require.Equal(t, []UpdateParam{{"Version", "1.36"}, {"PlatformVersion", "eks.1"}}, out.Update.Params)
		_, err = b.version(t, "demo", "1.36", false)
		awsError(t, err, "ResourceInUseException", "currently has update "+out.Update.ID+" in progress")
		free := func() (n int) {
			subnets, err := b.network.Subnets(b.subnets...)
			require.NoError(t, err)
			for _, s := range subnets {
				n += s.AvailableAddress
			}
			return n
		}
		during := free()
		time.Sleep(6 * time.Minute)
		require.Equal(t, "1.36", b.planes["demo"].minor.Load(), "the new servers answer")
		require.Equal(t, "1.35", b.describe(t, "demo").Version, "the update is not over")
		b.await(t, "demo", active)
		require.Equal(t, 8*time.Minute, time.Since(began))
		require.Equal(t, "1.36", b.describe(t, "demo").Version)
		require.Equal(t, during+2, free(), "old and new network interfaces were there at once")
		_, err = b.version(t, "demo", "1.37", false)
		awsError(t, err, "UnsupportedByLocalAccount", "1.37")
	})
}

func TestEKSFailsAnUpdate(t *testing.T) {
	b := newTestbed(t, 10_000)
	b.cluster(t, "demo")
	b.config.UpdateFails = func(cluster, kind string) string {
		require.Equal(t, []string{"demo", "VersionUpdate"}, []string{cluster, kind})
		return "OperationNotPermitted"
	}
	subnets, err := b.network.Subnets(b.subnets...)
	require.NoError(t, err)
	u, err := b.version(t, "demo", "1.36", false)
	require.NoError(t, err)
	require.Equal(t, updateFailed, u.Status)
	require.Equal(t, "OperationNotPermitted", u.Errors[0].Code)
	require.Contains(t, u.Errors[0].Message, "the cluster remains on version 1.35")
	require.Equal(t, "1.35", b.describe(t, "demo").Version)
	require.Equal(t, "1.35", b.planes["demo"].minor.Load())
	after, err := b.network.Subnets(b.subnets...)
	require.NoError(t, err)
	require.Equal(t, subnets, after, "its network interfaces are deleted")
	b.config.UpdateFails = func(string, string) string { return "" }
	u, err = b.version(t, "demo", "1.36", false)
	require.NoError(t, err)
	require.Equal(t, updateSuccessful, u.Status)
}

func TestUpdateNeedsFreeAddresses(t *testing.T) {
	b := newTestbed(t, 10_000)
	result, err := b.network.Resources()["AWS::EC2::Subnet"].Create(t.Context(), resource.Request{
		Type: "AWS::EC2::Subnet", Caller: b.admin, Account: testAccount, Region: testRegion,
		Properties: map[string]any{
			"VpcId": vpcOf(t, b.network, b.subnets[0]), "CidrBlock": "10.0.200.0/28", "AvailabilityZone": testRegion + "a",
		},
	})
	require.NoError(t, err)
	small := result.PhysicalID
	b.subnets = []string{small, b.subnets[1]}
	b.cluster(t, "demo") // takes one of eleven
	for range 6 {
		_, err := b.network.CreateNetworkInterface(small, nil, "pods", "test", nil)
		require.NoError(t, err)
	}
	_, err = b.version(t, "demo", "1.36", true)
	awsError(t, err, "InvalidRequestException", fmt.Sprintf("Provided subnets %s Free IPs: 4 , need at least 5 IPs in each subnet to be free "+
		"for this operation", small))
	require.Equal(t, active, b.describe(t, "demo").Status)
}

func vpcOf(t *testing.T, network *ec2.Service, subnet string) string {
	t.Helper()
	found, err := network.Subnets(subnet)
	require.NoError(t, err)
	return found[0].VPCID
}

// The conditions and the result of a rollback, as AWS documents them.
func TestVersionRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.cluster(t, "demo")
		up := func() {
			u, err := b.version(t, "demo", "1.36", false)
			require.NoError(t, err)
			require.Equal(t, "VersionUpdate", u.Type)
		}
		up()
		b.node(t, "demo", "new", "v1.36.3-eks-1")
		_, err := b.version(t, "demo", "1.35", false)
		awsError(t, err, "InvalidRequestException", "Kubelet version rollback compatibility (At least one node kubelet version matches the "+
			"cluster control plane version.)")
		b.removeNode(t, "demo", "new")
		b.node(t, "demo", "old", "v1.35.5-eks-1")
		u, err := b.version(t, "demo", "1.35", false)
		require.NoError(t, err)
		require.Equal(t, "VersionRollback", u.Type)
		require.Equal(t, updateSuccessful, u.Status)
		require.Equal(t, "1.35", b.describe(t, "demo").Version)
		require.Equal(t, "1.35", b.planes["demo"].minor.Load())
		_, err = b.version(t, "demo", "1.34", true)
		awsError(t, err, "InvalidParameterException", "was not upgraded from it")

		up()
		b.node(t, "demo", "new", "v1.36.3-eks-1")
		_, err = b.version(t, "demo", "1.35", true)
		require.NoError(t, err, "force lifts the insights")

		up()
		time.Sleep(7*24*time.Hour + time.Minute)
		_, err = b.version(t, "demo", "1.35", true)
		awsError(t, err, "InvalidParameterException", "rollback is available for 7 days")
	})
}

// AWS documents that a rolled back stack keeps the version. The next update then finds it.
func TestVersionInAStack(t *testing.T) {
	b := newTestbed(t, 10_000)
	cluster := b.Resources()["AWS::EKS::Cluster"]
	first := b.clusterRequest("demo")
	_, err := cluster.Create(t.Context(), first)
	require.NoError(t, err)
	up := next(first, "demo", map[string]any{"Version": "1.36", "UpgradePolicy": map[string]any{"SupportType": "EXTENDED"}})
	down := next(up, "demo", first.Properties)

	b.config.UpdateFails = func(string, string) string { return "Unknown" }
	_, err = cluster.Update(t.Context(), up)
	require.ErrorContains(t, err, "remains on version 1.35")
	down.Rollback = true
	_, err = cluster.Update(t.Context(), down)
	require.NoError(t, err, "the cluster never left its version, nor its upgrade policy")
	b.config.UpdateFails = func(string, string) string { return "" }

	_, err = cluster.Update(t.Context(), up)
	require.NoError(t, err)
	_, err = cluster.Update(t.Context(), down)
	require.NoError(t, err)
	require.Equal(t, "1.36", b.describe(t, "demo").Version)
	require.Equal(t, "STANDARD", b.describe(t, "demo").UpgradePolicy.SupportType)
	_, err = cluster.Update(t.Context(), up)
	require.NoError(t, err, "the version of the template is there already")

	down.Rollback = false
	_, err = cluster.Update(t.Context(), down)
	require.ErrorContains(t, err, "Unsupported Kubernetes minor version update from 1.36 to 1.35")
	b.config.Readings = questions.Readings{questions.LowerVersion: true}
	_, err = cluster.Update(t.Context(), down)
	require.NoError(t, err)
	require.Equal(t, "1.35", b.describe(t, "demo").Version, "an update by another template rolls it back")
}
