package eks_test

// Pod identity: the token of a pod, which the API server of the cluster issued, is exchanged for credentials of a role.

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/shared/aws/eksauth"
	"github.com/drover-run/drover/shared/fault"
)

var serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

const (
	podAudience = "pods.eks.amazonaws.com"
	podTrust    = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + podAudience +
		`"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`
)

func TestPodIdentity(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	_, key := w.identities.Admin()
	admin, identity := awseks.NewFromConfig(w.config(key)), sts.NewFromConfig(w.config(key))
	clusterRole := w.role("cluster", "eks.amazonaws.com", "")
	name := aws.String("drover-demo")
	_, err := admin.CreateCluster(ctx, &awseks.CreateClusterInput{
		Name: name, Version: aws.String("1.36"), RoleArn: &clusterRole, ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: w.subnets()},
		AccessConfig: &types.CreateAccessConfigRequest{
			AuthenticationMode: types.AuthenticationModeApi, BootstrapClusterCreatorAdminPermissions: aws.Bool(true),
		},
		BootstrapSelfManagedAddons: aws.Bool(false),
	})
	require.NoError(t, err)
	active := awseks.NewClusterActiveWaiter(admin, func(o *awseks.ClusterActiveWaiterOptions) { o.MinDelay, o.MaxDelay = 50e6, 50e6 })
	out, err := active.WaitForOutput(ctx, &awseks.DescribeClusterInput{Name: name}, patience)
	require.NoError(t, err)
	api := w.api(out.Cluster, identity)
	for _, account := range []string{"checkout", "export"} {
		_, err = api.Resource(serviceAccounts).Namespace("default").Create(ctx, object("ServiceAccount", account, nil), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	pod := func(name, account string) {
		_, err := api.Resource(pods).Namespace("default").Create(ctx, object("Pod", name, map[string]any{
			"serviceAccountName": account, "containers": []any{map[string]any{"name": "main", "image": "example"}},
		}), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	pod("checkout-1", "checkout")
	pod("export-1", "export")
	token := func(account, pod, audience string) string {
		spec := map[string]any{"audiences": []any{audience}}
		if pod != "" {
			spec["boundObjectRef"] = map[string]any{"apiVersion": "v1", "kind": "Pod", "name": pod}
		}
		request := object("TokenRequest", account, spec)
		request.SetAPIVersion("authentication.k8s.io/v1")
		issued, err := api.Resource(serviceAccounts).Namespace("default").Create(ctx, request, metav1.CreateOptions{}, "token")
		require.NoError(t, err)
		text, _, err := unstructured.NestedString(issued.Object, "status", "token")
		require.NoError(t, err)
		return text
	}
	role, err := w.identities.CreateRole(iam.Role{Name: "checkout", TrustDocument: podTrust})
	require.NoError(t, err)
	require.NoError(t, w.identities.PutRolePolicy("checkout", "p", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",`+
		`"Action":"eks:DescribeCluster","Resource":"*","Condition":{"StringEquals":{"aws:PrincipalTag/kubernetes-namespace":"default"}}}]}`))
	_, err = admin.CreatePodIdentityAssociation(ctx, &awseks.CreatePodIdentityAssociationInput{
		ClusterName: name, Namespace: aws.String("default"), ServiceAccount: aws.String("checkout"),
		RoleArn: aws.String(w.identities.RoleARN(role)),
	})
	require.NoError(t, err)

	// The agent of pod identity calls with the role of its node.
	nodeRole := w.role("node", "ec2.amazonaws.com", "")
	require.NoError(t, w.identities.AttachRolePolicy("node", "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"))
	asNode, _ := w.as(nodeRole, "i-1", "ec2.amazonaws.com")
	exchange := func(cfg aws.Config, token string) (*eksauth.Result, error) {
		return eksauth.AssumeRoleForPodIdentity(ctx, cfg, *name, token)
	}

	t.Run("gives a pod only what its role allows", func(t *testing.T) {
		out, err := exchange(asNode, token("checkout", "checkout-1", podAudience))
		require.NoError(t, err)
		require.Equal(t, "checkout", out.Subject.ServiceAccount)
		require.Equal(t, podAudience, out.Audience)
		require.Contains(t, out.PodIdentityAssociation.AssociationARN, "podidentityassociation/drover-demo/a-")
		require.Regexp(t, `^arn:aws:sts::111122223333:assumed-role/checkout/eks-drover-demo-checkout-1-[0-9a-f]{32}$`, out.AssumedRoleUser.ARN)
		require.WithinRange(t, time.Unix(int64(out.Credentials.Expiration), 0), time.Now().Add(time.Hour), time.Now().Add(24*time.Hour))
		cfg := asNode.Copy()
		cfg.Credentials = credentials.NewStaticCredentialsProvider(out.Credentials.AccessKeyID, out.Credentials.SecretAccessKey,
			out.Credentials.SessionToken)
		who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		require.NoError(t, err)
		require.Equal(t, out.AssumedRoleUser.ARN, *who.Arn)
		asPod := awseks.NewFromConfig(cfg)
		_, err = asPod.DescribeCluster(ctx, &awseks.DescribeClusterInput{Name: name})
		require.NoError(t, err, "the condition on the tag of the session holds")
		_, err = asPod.DeleteCluster(ctx, &awseks.DeleteClusterInput{Name: name})
		require.ErrorContains(t, err, "is not authorized to perform: eks:DeleteCluster")
	})
	t.Run("refuses other tokens", func(t *testing.T) {
		const invalid = "InvalidTokenException"
		for why, text := range map[string]string{
			"another audience": token("checkout", "checkout-1", "sts.amazonaws.com"), "not of a pod": token("checkout", "", podAudience),
			"no token": "a.b.c",
		} {
			_, err := exchange(asNode, text)
			require.Equal(t, invalid, fault.Code(err), why)
		}
		_, err := exchange(asNode, token("export", "export-1", podAudience))
		require.Equal(t, "ResourceNotFoundException", fault.Code(err), "a service account without an association")

		left := token("checkout", "checkout-1", podAudience)
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		require.NoError(t, api.Resource(pods).Namespace("default").Delete(ctx, "checkout-1", now))
		require.Eventually(t, func() bool {
			_, err := exchange(asNode, left)
			return err != nil
		}, patience, 100*time.Millisecond)
		_, err = exchange(asNode, left)
		require.Equal(t, invalid, fault.Code(err), "the pod was deleted")
	})
	t.Run("refuses callers and roles without permission", func(t *testing.T) {
		pod("checkout-2", "checkout")
		stranger := w.role("stranger", "ec2.amazonaws.com", "")
		asStranger, _ := w.as(stranger, "s1", "ec2.amazonaws.com")
		_, err := exchange(asStranger, token("checkout", "checkout-2", podAudience))
		require.ErrorContains(t, err, "is not authorized to perform: eks-auth:AssumeRoleForPodIdentity")

		require.NoError(t, w.identities.ChangeRole("checkout", func(r *iam.Role) {
			r.TrustDocument = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + podAudience +
				`"},"Action":"sts:AssumeRole"}]}`
		}))
		_, err = exchange(asNode, token("checkout", "checkout-2", podAudience))
		require.Equal(t, "AccessDeniedException", fault.Code(err), "the trust policy does not allow sts:TagSession")
	})
}

// object is a Kubernetes object of the core group.
func object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o
}
