package eks_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubetypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/shared/names"
)

var (
	admissionPolicies = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
	}
	admissionBindings = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings",
	}
)

// KWOK writes each pod's status once. A pod whose first write fails stays Pending unless KWOK sees it again.
func TestAddonWhosePodsKWOKDropped(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	_, credentials := w.identities.Admin()
	admin := awseks.NewFromConfig(w.config(credentials))
	clusterRole, nodeRole := w.role("cluster", "eks.amazonaws.com", ""), w.role("node", "ec2.amazonaws.com", "")
	name := aws.String("drover-demo")
	_, err := admin.CreateCluster(ctx, &awseks.CreateClusterInput{
		Name: name, Version: aws.String("1.36"), RoleArn: &clusterRole, ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: w.subnets()},
		AccessConfig: &types.CreateAccessConfigRequest{
			AuthenticationMode: types.AuthenticationModeApi, BootstrapClusterCreatorAdminPermissions: aws.Bool(false),
		},
		BootstrapSelfManagedAddons: aws.Bool(false),
	})
	require.NoError(t, err)
	active := awseks.NewClusterActiveWaiter(admin, func(o *awseks.ClusterActiveWaiterOptions) { o.MinDelay, o.MaxDelay = 50e6, 50e6 })
	out, err := active.WaitForOutput(ctx, &awseks.DescribeClusterInput{Name: name}, patience)
	require.NoError(t, err)
	_, err = admin.CreateAccessEntry(ctx, &awseks.CreateAccessEntryInput{
		ClusterName: name, PrincipalArn: &nodeRole, Type: aws.String("EC2_LINUX"),
	})
	require.NoError(t, err)
	create := func(addon string) {
		_, err := admin.CreateAddon(ctx, &awseks.CreateAddonInput{ClusterName: name, AddonName: &addon})
		require.NoError(t, err)
	}
	create("vpc-cni")
	require.NoError(t, w.eks.RegisterNode(ctx, ec2.Node{
		Cluster: *name, Endpoint: *out.Cluster.Endpoint, CertificateAuthority: *out.Cluster.CertificateAuthority.Data, RoleARN: nodeRole,
		Name: "ip-10-0-0-7.ec2.internal", ProviderID: "aws:///us-east-1a/i-0123456789abcdef0", InstanceID: "i-0123456789abcdef0",
		InstanceType: "m7i.large",
		Region:       region, Zone: "us-east-1a", Architecture: "amd64", KubeletVersion: "v1.36.1-eks-0e3cf2b", Address: "10.0.0.7",
		Labels: map[string]string{names.LabelPool: "workers"}, MaxPods: 29, VCPUs: 2, MemoryMiB: 8192, DiskGiB: 20,
	}))
	api, kubeconfig, err := w.eks.Administrator(*name)
	require.NoError(t, err)

	refuse(t, api, kubeconfig)
	create("aws-ebs-csi-driver")
	ebs := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=ebs-csi-node"}
	require.Eventually(t, func() bool {
		list, err := api.Resource(pods).Namespace("kube-system").List(ctx, ebs)
		if err != nil || len(list.Items) != 1 {
			return false
		}
		node, _, _ := unstructured.NestedString(list.Items[0].Object, "spec", "nodeName")
		return node != ""
	}, patience, 50*time.Millisecond)
	time.Sleep(2 * time.Second) // KWOK needs milliseconds
	require.NoError(t, api.Resource(admissionBindings).Delete(ctx, "refuse-kwok", metav1.DeleteOptions{}))
	addon := awseks.NewAddonActiveWaiter(admin, func(o *awseks.AddonActiveWaiterOptions) { o.MinDelay, o.MaxDelay = 50e6, 50e6 })
	require.NoError(t, addon.Wait(ctx, &awseks.DescribeAddonInput{ClusterName: name, AddonName: aws.String("aws-ebs-csi-driver")}, patience))
}

// refuse makes the API server refuse KWOK's writes to pods of the EBS driver, and waits until it does.
func refuse(t *testing.T, api dynamic.Interface, kubeconfig string) {
	t.Helper()
	object := func(kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": "refuse-kwok"}, "spec": spec,
		}}
	}
	ctx := t.Context()
	_, err := api.Resource(admissionPolicies).Create(ctx, object("ValidatingAdmissionPolicy", map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{"pods/status"},
		}}},
		"validations": []any{
			map[string]any{"expression": `request.userInfo.username != "kwok" || !object.metadata.name.startsWith("ebs-csi-node")`},
		},
	}), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.Resource(admissionBindings).Create(ctx, object("ValidatingAdmissionPolicyBinding", map[string]any{
		"policyName": "refuse-kwok", "validationActions": []any{"Deny"},
	}), metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "kwok", Groups: []string{"system:masters"}}
	kwok, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "ebs-csi-node-probe", "namespace": "default"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "pause"}}, "schedulerName": "none"},
	}}
	_, err = api.Resource(pods).Namespace("default").Create(ctx, pod, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := kwok.Resource(pods).Namespace("default").Patch(context.WithoutCancel(ctx), pod.GetName(), kubetypes.MergePatchType,
			[]byte(`{"status":{"message":"probe"}}`), metav1.PatchOptions{DryRun: []string{"All"}}, "status")
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
	}, patience, 50*time.Millisecond)
}
