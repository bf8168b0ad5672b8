// Package eks_test tests EKS on real control planes: tokens, access entries, nodes and add-ons, as drover and its users use
// them. It needs the programs that `make kubernetes` builds, so it is not in the package of EKS.
package eks_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/iam/iamapi"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

const (
	account = "111122223333"
	region  = "us-east-1"
)

var (
	nodes          = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods           = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	secrets        = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces     = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	selfReview     = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	clusterBinding = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

// patience limits waits of seconds. It is long enough for a machine at a tenth of the speed.
const patience = 3 * time.Minute

// world is IAM, STS, EC2 and EKS at one endpoint.
type world struct {
	t          *testing.T
	identities *iam.Service
	network    *ec2.Service
	eks        *eks.Service
	url        string
	admin      iam.Caller
}

func newWorld(t *testing.T) *world {
	t.Helper()
	bin, err := filepath.Abs(kubernetes.BinDir("../../../.."))
	require.NoError(t, err)
	if missing := kubernetes.Missing(bin); len(missing) > 0 {
		t.Fatalf("%s not built in %s: run `make kubernetes` first", strings.Join(missing, ", "), bin)
	}
	fast := &clock.Clock{Speed: 300}
	w := &world{t: t, identities: iam.New(account, region, fast)}
	w.network = ec2.New(ec2.Config{Account: account, Region: region, Clock: fast})
	w.admin, _ = w.identities.Admin()
	w.eks, err = eks.New(eks.Config{
		Account: account, Region: region, Clock: fast, Identities: w.identities, Network: w.network, Dir: t.TempDir(), BinDir: bin,
		RuntimeConfig: "networking.k8s.io/v1beta1=true",
	})
	require.NoError(t, err)
	t.Cleanup(w.eks.Close)
	t.Cleanup(w.network.Close)
	e := endpoint.New(w.identities, nil)
	e.Handle(w.eks.Wire(), w.eks.AuthWire(), iamapi.New(w.identities).STS())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) role(name, service, policy string) string {
	w.t.Helper()
	r, err := w.identities.CreateRole(iam.Role{
		Name: name, TrustDocument: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + service +
			`"},"Action":"sts:AssumeRole"}]}`,
	})
	require.NoError(w.t, err)
	if policy != "" {
		require.NoError(w.t, w.identities.PutRolePolicy(name, "p", policy))
	}
	return w.identities.RoleARN(r)
}

// as returns the clients of a session of a role.
func (w *world) as(role, session, service string) (aws.Config, *sts.Client) {
	w.t.Helper()
	_, c, err := w.identities.AssumeRoleAs(role, session, service)
	require.NoError(w.t, err)
	cfg := w.config(c)
	return cfg, sts.NewFromConfig(cfg)
}

func (w *world) config(c iam.Credentials) aws.Config {
	provider := credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	return aws.Config{Region: region, BaseEndpoint: &w.url, Credentials: provider}
}

func (w *world) subnets() []string {
	create := func(kind string, properties map[string]any) string {
		result, err := w.network.Resources()[kind].Create(w.t.Context(), resource.Request{
			Type: kind, Properties: properties, Caller: w.admin, Account: account, Region: region,
		})
		require.NoError(w.t, err)
		return result.PhysicalID
	}
	vpc := create("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16"})
	var ids []string
	for i, zone := range []string{"a", "b"} {
		ids = append(ids, create("AWS::EC2::Subnet", map[string]any{
			"VpcId": vpc, "CidrBlock": fmt.Sprintf("10.0.%d.0/24", i), "AvailabilityZone": region + zone,
		}))
	}
	return ids
}

// api is a cluster's API with a token of an identity.
func (w *world) api(c *types.Cluster, identity *sts.Client) dynamic.Interface {
	token, err := kube.Token(w.t.Context(), sts.NewPresignClient(identity), *c.Name)
	require.NoError(w.t, err)
	return w.withToken(c, token)
}

func (w *world) withToken(c *types.Cluster, token string) dynamic.Interface {
	ca, err := base64.StdEncoding.DecodeString(*c.CertificateAuthority.Data)
	require.NoError(w.t, err)
	client, err := dynamic.NewForConfig(&rest.Config{
		Host: *c.Endpoint, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, QPS: -1,
	})
	require.NoError(w.t, err)
	return client
}

// whoami returns the user that the API server sees.
func whoami(t *testing.T, api dynamic.Interface) (username string, groups []string) {
	t.Helper()
	out, err := api.Resource(selfReview).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	username, _, _ = unstructured.NestedString(out.Object, "status", "userInfo", "username")
	groups, _, _ = unstructured.NestedStringSlice(out.Object, "status", "userInfo", "groups")
	return username, groups
}

func TestClusterForDroverAndUsers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	_, credentials := w.identities.Admin()
	admin, adminIdentity := awseks.NewFromConfig(w.config(credentials)), sts.NewFromConfig(w.config(credentials))
	describe := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"eks:DescribeCluster",` +
		`"Resource":"arn:aws:eks:us-east-1:111122223333:cluster/drover-*"}]}`
	clusterRole := w.role("cluster", "eks.amazonaws.com", "")
	nodeRole := w.role("node", "ec2.amazonaws.com", "")
	prepareRole := w.role("drover-us-east-1-prepare", "lambda.amazonaws.com", describe)
	joinRole := w.role("drover-us-east-1-join", "lambda.amazonaws.com", describe)
	viewerRole := w.role("viewer", "lambda.amazonaws.com", "")
	strangerRole := w.role("stranger", "lambda.amazonaws.com", describe)

	began := time.Now()
	name := aws.String("drover-demo")
	_, err := admin.CreateCluster(ctx, &awseks.CreateClusterInput{
		Name: name, Version: aws.String("1.35"), RoleArn: &clusterRole, ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: w.subnets()},
		AccessConfig: &types.CreateAccessConfigRequest{
			AuthenticationMode: types.AuthenticationModeApi, BootstrapClusterCreatorAdminPermissions: aws.Bool(false),
		},
		BootstrapSelfManagedAddons: aws.Bool(false),
	})
	require.NoError(t, err)
	active := awseks.NewClusterActiveWaiter(admin, func(o *awseks.ClusterActiveWaiterOptions) { o.MinDelay, o.MaxDelay = 50e6, 50e6 })
	out, err := active.WaitForOutput(ctx, &awseks.DescribeClusterInput{Name: name}, patience)
	require.NoError(t, err)
	t.Logf("ACTIVE after %s", time.Since(began).Round(10*time.Millisecond))
	cluster := out.Cluster

	entry := func(principal string, in awseks.CreateAccessEntryInput) {
		in.ClusterName, in.PrincipalArn = name, &principal
		_, err := admin.CreateAccessEntry(ctx, &in)
		require.NoError(t, err)
	}
	associate := func(principal, policy string, scope types.AccessScope) {
		_, err := admin.AssociateAccessPolicy(ctx, &awseks.AssociateAccessPolicyInput{
			ClusterName: name, PrincipalArn: &principal, PolicyArn: aws.String("arn:aws:eks::aws:cluster-access-policy/" + policy),
			AccessScope: &scope,
		})
		require.NoError(t, err)
	}
	entry(nodeRole, awseks.CreateAccessEntryInput{Type: aws.String("EC2_LINUX")})
	entry(prepareRole, awseks.CreateAccessEntryInput{})
	associate(prepareRole, "AmazonEKSClusterAdminPolicy", types.AccessScope{Type: types.AccessScopeTypeCluster})
	entry(joinRole, awseks.CreateAccessEntryInput{KubernetesGroups: []string{kube.JoinGroup}})
	entry(viewerRole, awseks.CreateAccessEntryInput{})

	asPrepare, prepareIdentity := w.as(prepareRole, "drover-prepare", "lambda.amazonaws.com")
	asJoin, joinIdentity := w.as(joinRole, "drover-join", "lambda.amazonaws.com")
	_, viewerIdentity := w.as(viewerRole, "ann@example", "lambda.amazonaws.com")
	prepareAPI, oldViewer := w.api(cluster, prepareIdentity), w.api(cluster, viewerIdentity)

	t.Run("a principal with an access entry has its user name, with the session", func(t *testing.T) {
		username, groups := whoami(t, prepareAPI)
		require.Equal(t, "arn:aws:sts::111122223333:assumed-role/drover-us-east-1-prepare/drover-prepare", username)
		require.Contains(t, groups, "system:authenticated")
		username, groups = whoami(t, w.api(cluster, joinIdentity))
		require.Equal(t, "arn:aws:sts::111122223333:assumed-role/drover-us-east-1-join/drover-join", username)
		require.Contains(t, groups, kube.JoinGroup)
	})
	t.Run("without an entry there is no access, even for an administrator of the account", func(t *testing.T) {
		_, strangerIdentity := w.as(strangerRole, "drover-x", "lambda.amazonaws.com")
		for _, identity := range []*sts.Client{strangerIdentity, adminIdentity} {
			_, err := w.api(cluster, identity).Resource(nodes).List(ctx, metav1.ListOptions{})
			require.True(t, apierrors.IsUnauthorized(err), "%v", err)
		}
	})
	t.Run("a token is invalid for another cluster, and after a change", func(t *testing.T) {
		other, err := kube.Token(ctx, sts.NewPresignClient(prepareIdentity), "drover-other")
		require.NoError(t, err)
		own, err := kube.Token(ctx, sts.NewPresignClient(prepareIdentity), *name)
		require.NoError(t, err)
		for _, token := range []string{other, own[:len(own)-8] + "AAAAAAAA", "k8s-aws-v1.!", "nonsense"} {
			_, err := w.withToken(cluster, token).Resource(nodes).List(ctx, metav1.ListOptions{})
			require.True(t, apierrors.IsUnauthorized(err), "%v", err)
		}
	})
	t.Run("drover's roles have only the rights that they need", func(t *testing.T) {
		_, err := w.api(cluster, joinIdentity).Resource(nodes).List(ctx, metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "the cluster is not prepared: %v", err)
		prepare, err := kube.NewClusters(asPrepare).Open(ctx, "demo")
		require.NoError(t, err)
		require.NoError(t, prepare.GrantRoles(ctx))
		require.NoError(t, prepare.GrantRoles(ctx), "again is no error")
		_, err = w.api(cluster, joinIdentity).Resource(nodes).List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		_, err = w.api(cluster, joinIdentity).Resource(secrets).List(ctx, metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		_, err = prepareAPI.Resource(clusterBinding).Get(ctx, kube.JoinGroup, metav1.GetOptions{})
		require.NoError(t, err)
	})
	t.Run("policies for namespaces apply only there", func(t *testing.T) {
		for _, ns := range []string{"team-a", "team-b", "prod"} {
			_, err := prepareAPI.Resource(namespaces).Create(ctx, &unstructured.Unstructured{
				Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		associate(viewerRole, "AmazonEKSViewPolicy", types.AccessScope{Type: types.AccessScopeTypeNamespace, Namespaces: []string{"team-*"}})
		viewer := oldViewer
		allowed := func(resource schema.GroupVersionResource, ns string) bool {
			_, err := viewer.Resource(resource).Namespace(ns).List(ctx, metav1.ListOptions{})
			return err == nil
		}
		// RBAC in the API server lags behind its watch.
		require.Eventually(t, func() bool { return allowed(pods, "team-a") && allowed(pods, "team-b") }, patience, 50*time.Millisecond)
		require.False(t, allowed(pods, "prod"))
		require.False(t, allowed(secrets, "team-a"), "a viewer sees no secrets")
		username, _ := whoami(t, viewer)
		require.True(t, strings.HasSuffix(username, "/ann-example"), username)

		_, err := admin.DeleteAccessEntry(ctx, &awseks.DeleteAccessEntryInput{ClusterName: name, PrincipalArn: &viewerRole})
		require.NoError(t, err)
	})

	node := ec2.Node{
		Cluster: *name, Endpoint: *cluster.Endpoint, CertificateAuthority: *cluster.CertificateAuthority.Data, RoleARN: nodeRole,
		Name: "ip-10-0-0-7.ec2.internal", ProviderID: "aws:///us-east-1a/i-0123456789abcdef0", InstanceID: "i-0123456789abcdef0",
		InstanceType: "m7i.large",
		Region:       region, Zone: "us-east-1a", Architecture: "amd64", KubeletVersion: "v1.35.5-eks-0e3cf2b", Address: "10.0.0.7",
		Labels: map[string]string{names.LabelPool: "workers"}, Taints: []ec2.Taint{{Key: "a", Value: "b", Effect: "PreferNoSchedule"}},
		MaxPods: 29, VCPUs: 2, MemoryMiB: 8192, DiskGiB: 20,
	}
	read := func(name string) *corev1.Node {
		t.Helper()
		o, err := prepareAPI.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
		var n corev1.Node
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &n))
		return &n
	}
	ready := func(n *corev1.Node) string {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return string(c.Status)
			}
		}
		return "absent"
	}

	t.Run("the reason why a node cannot join is reported", func(t *testing.T) {
		for why, change := range map[string]func(*ec2.Node){
			"no access entry of type EC2_LINUX":        func(n *ec2.Node) { n.RoleARN = joinRole },
			"has no role":                              func(n *ec2.Node) { n.RoleARN = "" },
			"no such host":                             func(n *ec2.Node) { n.Cluster = "drover-other" },
			"the API server of cluster drover-demo is": func(n *ec2.Node) { n.Endpoint = "https://127.0.0.1:1" },
			"signed by unknown authority":              func(n *ec2.Node) { n.CertificateAuthority = "AAAA" },
			"is not allowed to set the following labels": func(n *ec2.Node) {
				n.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
			},
		} {
			n := node
			change(&n)
			require.ErrorContains(t, w.eks.RegisterNode(ctx, n), why)
		}
	})
	t.Run("a node without a network plugin stays NotReady until there is one", func(t *testing.T) {
		require.NoError(t, w.eks.RegisterNode(ctx, node))
		require.NoError(t, w.eks.RegisterNode(ctx, node), "a kubelet that starts again finds its node")
		n := read(node.Name)
		require.Equal(t, "False", ready(n))
		require.Equal(t, "v1.35.5-eks-0e3cf2b", n.Status.NodeInfo.KubeletVersion)
		require.Equal(t, node.ProviderID, n.Spec.ProviderID)
		require.Contains(t, n.Spec.Taints, corev1.Taint{Key: "a", Value: "b", Effect: corev1.TaintEffectPreferNoSchedule})
		require.Equal(t, "1930m", n.Status.Allocatable.Cpu().String())
		require.Equal(t, "us-east-1a", n.Labels[corev1.LabelTopologyZone])

		_, err := admin.CreateAddon(ctx, &awseks.CreateAddonInput{
			ClusterName: name, AddonName: aws.String("vpc-cni"), AddonVersion: aws.String("v1.21.1-eksbuild.1"),
		})
		require.NoError(t, err)
		join, err := kube.NewClusters(asJoin).Open(ctx, "demo")
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			seen, err := join.PoolNode(ctx, "workers", node.InstanceID, "")
			return err == nil && seen != nil && seen.Ready
		}, patience, 50*time.Millisecond)
		seen, err := join.PoolNode(ctx, "workers", node.InstanceID, node.Name)
		require.NoError(t, err)
		require.Equal(t, node.Name, seen.Name)
		seen, err = join.PoolNode(ctx, "workers", "i-other", node.Name)
		require.NoError(t, err)
		require.Nil(t, seen, "another instance has the node of that name")
		require.Eventually(t, func() bool {
			return len(read(node.Name).Spec.Taints) == 1
		}, patience, 50*time.Millisecond, "it loses its not-ready taint and keeps its own")
	})
	t.Run("a later node becomes Ready by itself", func(t *testing.T) {
		second := node
		second.Name, second.InstanceID, second.ProviderID, second.Address = "ip-10-0-1-9.ec2.internal", "i-0fedcba9876543210",
			"aws:///us-east-1b/i-0fedcba9876543210", "10.0.1.9"
		require.NoError(t, w.eks.RegisterNode(ctx, second))
		// It gets pods only after its not-ready taint is removed. Its own taints stay.
		require.Eventually(t, func() bool {
			now := read(second.Name)
			return ready(now) == "True" && len(now.Spec.Taints) == 1
		}, patience, 50*time.Millisecond)
	})
	t.Run("a node has its own identity", func(t *testing.T) {
		_, identity := w.as(nodeRole, node.InstanceID, "ec2.amazonaws.com")
		username, groups := whoami(t, w.api(cluster, identity))
		require.Equal(t, "system:node:"+node.Name, username)
		require.Contains(t, groups, "system:nodes")
		_, identity = w.as(nodeRole, "i-00000000000000000", "ec2.amazonaws.com")
		_, err := w.api(cluster, identity).Resource(nodes).List(ctx, metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "an instance that is no node: %v", err)
	})
	t.Run("add-ons that need nodes are ACTIVE when their pods run", func(t *testing.T) {
		_, err := admin.CreateAddon(ctx, &awseks.CreateAddonInput{ClusterName: name, AddonName: aws.String("coredns")})
		require.NoError(t, err)
		waiter := awseks.NewAddonActiveWaiter(admin, func(o *awseks.AddonActiveWaiterOptions) { o.MinDelay, o.MaxDelay = 50e6, 50e6 })
		require.NoError(t, waiter.Wait(ctx, &awseks.DescribeAddonInput{ClusterName: name, AddonName: aws.String("coredns")}, patience))
		list, err := prepareAPI.Resource(pods).Namespace("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
		require.NoError(t, err)
		on := map[string]bool{}
		for _, p := range list.Items {
			name, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
			on[name] = true
		}
		require.Len(t, on, 2, "one on each node")
	})
	t.Run("insights list the requested deprecated APIs", func(t *testing.T) {
		insight := func() types.InsightStatus {
			_, err := admin.StartInsightsRefresh(ctx, &awseks.StartInsightsRefreshInput{ClusterName: name})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				out, err := admin.DescribeInsightsRefresh(ctx, &awseks.DescribeInsightsRefreshInput{ClusterName: name})
				return err == nil && out.Status == types.InsightsRefreshStatusCompleted
			}, patience, 10*time.Millisecond)
			out, err := admin.ListInsights(ctx, &awseks.ListInsightsInput{
				ClusterName: name, Filter: &types.InsightsFilter{KubernetesVersions: []string{"1.37"}},
			})
			require.NoError(t, err)
			require.Len(t, out.Insights, 1)
			return *out.Insights[0].InsightStatus
		}
		require.Equal(t, types.InsightStatusValuePassing, insight().Status)
		_, err := prepareAPI.Resource(schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1beta1", Resource: "ipaddresses"}).
			List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, types.InsightStatusValueWarning, insight().Status, "what 1.37 no longer serves concerns a cluster of 1.35 later")
	})
	t.Run("calls during a version update wait for the API server", func(t *testing.T) {
		before := read(node.Name)
		watch, err := prepareAPI.Resource(nodes).Watch(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion})
		require.NoError(t, err)
		defer watch.Stop()
		_, err = admin.UpdateClusterVersion(ctx, &awseks.UpdateClusterVersionInput{Name: name, Version: aws.String("1.36")})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := prepareAPI.Resource(nodes).List(ctx, metav1.ListOptions{})
			return err != nil
		}, patience, time.Millisecond, "the servers start again as the new version")
		third := node
		third.Name, third.InstanceID, third.ProviderID = "ip-10-0-0-8.ec2.internal", "i-0aaaaaaaaaaaaaaaa",
			"aws:///us-east-1a/i-0aaaaaaaaaaaaaaaa"
		require.NoError(t, w.eks.RegisterNode(ctx, third))
		require.NoError(t, active.Wait(ctx, &awseks.DescribeClusterInput{Name: name}, patience))
		out, err := admin.DescribeCluster(ctx, &awseks.DescribeClusterInput{Name: name})
		require.NoError(t, err)
		require.Equal(t, "1.36", *out.Cluster.Version)
		require.Equal(t, *cluster.Endpoint, *out.Cluster.Endpoint)
		require.Eventually(t, func() bool { return ready(read(third.Name)) == "True" }, patience, 50*time.Millisecond)
		after := read(node.Name)
		require.Equal(t, before.UID, after.UID, "the node is the same")
		require.Equal(t, "True", ready(after))
		for range watch.ResultChan() { // it ends with its server
		}
		list, err := prepareAPI.Resource(nodes).List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		again, err := prepareAPI.Resource(nodes).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		require.NoError(t, err, "clients list and watch again, as informers do")
		again.Stop()
	})
	t.Run("the version is rolled back once no node has the new one", func(t *testing.T) {
		young := node
		young.Name, young.InstanceID, young.ProviderID, young.KubeletVersion = "ip-10-0-0-9.ec2.internal", "i-0bbbbbbbbbbbbbbbb",
			"aws:///us-east-1a/i-0bbbbbbbbbbbbbbbb", "v1.36.3-eks-1"
		require.NoError(t, w.eks.RegisterNode(ctx, young))
		back := &awseks.UpdateClusterVersionInput{Name: name, Version: aws.String("1.35")}
		_, err := admin.UpdateClusterVersion(ctx, back)
		require.ErrorContains(t, err, "Kubelet version rollback compatibility")
		require.NoError(t, w.eks.DeregisterNode(ctx, *name, young.Name))
		out, err := admin.UpdateClusterVersion(ctx, back)
		require.NoError(t, err)
		require.Equal(t, types.UpdateTypeVersionRollback, out.Update.Type)
		require.NoError(t, active.Wait(ctx, &awseks.DescribeClusterInput{Name: name}, patience))
		require.Equal(t, "True", ready(read(node.Name)))
		_, err = prepareAPI.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).
			Namespace("kube-system").Get(ctx, "coredns", metav1.GetOptions{})
		require.NoError(t, err, "what is stored stays")
	})
	t.Run("the node of a terminated instance is deleted", func(t *testing.T) {
		require.NoError(t, w.eks.DeregisterNode(ctx, *name, node.Name))
		require.NoError(t, w.eks.DeregisterNode(ctx, *name, node.Name), "again is no error")
		_, err := prepareAPI.Resource(nodes).Get(ctx, node.Name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	})
	t.Run("a deleted entry ends the access of every token", func(t *testing.T) {
		_, bob := w.as(viewerRole, "bob", "lambda.amazonaws.com")
		_, err := w.api(cluster, bob).Resource(pods).Namespace("team-a").List(ctx, metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "with a new token: %v", err)
		require.Eventually(t, func() bool {
			_, err := oldViewer.Resource(pods).Namespace("team-a").List(ctx, metav1.ListOptions{})
			return apierrors.IsUnauthorized(err)
		}, patience, 50*time.Millisecond, "with the old one, once the API server's cache of ten seconds is over")
	})
	t.Run("a deleted cluster leaves no process behind", func(t *testing.T) {
		_, err := admin.DeleteCluster(ctx, &awseks.DeleteClusterInput{Name: name})
		require.NoError(t, err)
		deleted := awseks.NewClusterDeletedWaiter(admin, func(o *awseks.ClusterDeletedWaiterOptions) { o.MinDelay, o.MaxDelay = 50e6, 50e6 })
		require.NoError(t, deleted.Wait(ctx, &awseks.DescribeClusterInput{Name: name}, patience))
		_, err = prepareAPI.Resource(nodes).List(ctx, metav1.ListOptions{})
		require.ErrorContains(t, err, "connection refused")
	})
}
