package account

// Pod identity from a spec to AWS: the association and the role that drover's stacks created, a token of the cluster's API server, and
// calls with the credentials that EKS returned for it.

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/aws/eksauth"
	"github.com/drover-run/drover/shared/names"
)

// requirePodIdentity requires that a pod of a service account of spec.podIdentities may do what its role allows, and nothing more. The
// policies are AmazonS3ReadOnlyAccess, within a boundary that allows to get objects of one bucket.
func requirePodIdentity(t *testing.T, name string) {
	t.Helper()
	const namespace, account, pod, bucket = "data", "export", "export-1", "exports"
	client, _, err := cloud.EKS.Administrator(names.EKSCluster(name))
	require.NoError(t, err)
	create := func(resource, namespace, kind, name, version string, fields object, sub ...string) *unstructured.Unstructured {
		body := &unstructured.Unstructured{Object: object{"apiVersion": version, "kind": kind, "metadata": object{"name": name}}}
		for key, value := range fields {
			body.Object[key] = value
		}
		created, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).
			Create(t.Context(), body, metav1.CreateOptions{}, sub...)
		require.NoError(t, err)
		return created
	}
	create("namespaces", "", "Namespace", namespace, "v1", nil)
	create("serviceaccounts", namespace, "ServiceAccount", account, "v1", nil)
	create("pods", namespace, "Pod", pod, "v1", object{"spec": object{
		"serviceAccountName": account, "containers": []any{object{"name": "main", "image": "example"}},
	}})
	request := create("serviceaccounts", namespace, "TokenRequest", account, "authentication.k8s.io/v1", object{"spec": object{
		"audiences": []any{"pods.eks.amazonaws.com"}, "boundObjectRef": object{"apiVersion": "v1", "kind": "Pod", "name": pod},
	}}, "token")
	token, _, err := unstructured.NestedString(request.Object, "status", "token")
	require.NoError(t, err)

	// The agent calls with the role of its node.
	stacks, err := cloudformation.NewFromConfig(cloud.Config()).DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{
		StackName: aws.String(names.Stack(name, names.ControlPlane)),
	})
	require.NoError(t, err)
	outputs := map[string]string{}
	for _, output := range stacks.Stacks[0].Outputs {
		outputs[*output.OutputKey] = *output.OutputValue
	}
	_, node, err := cloud.Identities.AssumeRoleAs(outputs["NodeRoleArn"], "i-1", "ec2.amazonaws.com")
	require.NoError(t, err)
	cfg := cloud.Config()
	cfg.Credentials = credentials.NewStaticCredentialsProvider(node.AccessKeyID, node.SecretAccessKey, node.SessionToken)
	out, err := eksauth.AssumeRoleForPodIdentity(t.Context(), cfg, names.EKSCluster(name), token)
	require.NoError(t, err)
	require.Contains(t, out.AssumedRoleUser.ARN, ":assumed-role/drover-"+name+"-identit", "CloudFormation shortens the name")

	cfg.Credentials = credentials.NewStaticCredentialsProvider(out.Credentials.AccessKeyID, out.Credentials.SecretAccessKey,
		out.Credentials.SessionToken)
	store := awss3.NewFromConfig(cloud.Config(), func(o *awss3.Options) { o.UsePathStyle = true })
	_, err = store.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	_, err = store.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("1")})
	require.NoError(t, err)
	asPod := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.UsePathStyle = true })
	_, err = asPod.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("1")})
	require.NoError(t, err)
	// These are no calls, because the account's tests require that no role of drover is denied one.
	caller, _, _, err := cloud.Identities.Caller(out.Credentials.AccessKeyID)
	require.NoError(t, err)
	require.NoError(t, caller.Authorize("s3:GetObject", "arn:aws:s3:::"+bucket+"/1", nil))
	require.Error(t, caller.Authorize("s3:GetObject", "arn:aws:s3:::"+names.SpecsBucket(ID, cloud.Region())+"/"+names.ClusterSpec(name), nil),
		"the boundary")
	require.Error(t, caller.Authorize("s3:PutObject", "arn:aws:s3:::"+bucket+"/1", nil), "the policy")
}
