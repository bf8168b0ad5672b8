package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/aws/eksauth"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// podRole is a role without permissions: its pods may only ask who they are.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html
const podRole = `
Resources:
  Role:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement:
          - {Effect: Allow, Principal: {Service: pods.eks.amazonaws.com}, Action: ["sts:AssumeRole", "sts:TagSession"]}
Outputs:
  Role: {Value: !GetAtt Role.Arn}
`

// identifiedPod is the name of the pod, and of its service account.
const identifiedPod = "identified"

// podIdentity runs a pod with the identity of a role, and reads from the pod's status who AWS says it is.
func (t *Target) podIdentity(ctx context.Context, log *runner.Log, cluster string) error {
	outputs, err := t.createStack(ctx, "pod-identity", podRole)
	if err != nil {
		return err
	}
	role := outputs["Role"]
	_, err = eks.NewFromConfig(t.cfg).CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{
		ClusterName: aws.String(names.EKSCluster(cluster)), Namespace: aws.String(namespace), ServiceAccount: aws.String(identifiedPod),
		RoleArn: &role, Tags: map[string]string{tagKey: t.Suffix},
	})
	if err != nil {
		return fmt.Errorf("creating the pod identity association: %w", err)
	}
	api, err := t.open(ctx, cluster)
	if err != nil {
		return err
	}
	if err := putNamespace(ctx, api); err != nil {
		return err
	}
	metadata := `"metadata": {"name": "` + identifiedPod + `", "namespace": "` + namespace + `"}`
	if err := ensureObject(ctx, api, serviceAccounts, `{"apiVersion": "v1", "kind": "ServiceAccount", `+metadata+`}`); err != nil {
		return err
	}
	// EKS adds the credentials to pods that are created after the association. That takes seconds, so the pod retries.
	err = ensureObject(ctx, api, jobs, `{"apiVersion": "batch/v1", "kind": "Job", `+metadata+`, "spec": {"backoffLimit": 4, "template": {
		"metadata": {"labels": {"app": "`+identifiedPod+`"}},
		"spec": {"serviceAccountName": "`+identifiedPod+`", "restartPolicy": "Never", "containers": [{"name": "main",
			"image": "public.ecr.aws/aws-cli/aws-cli:latest", "command": ["sh", "-c",
			"aws sts get-caller-identity --query Arn --output text >/dev/termination-log"]}]}}}}`)
	if err != nil {
		return err
	}
	var message, name string
	err = t.until(ctx, 3*time.Second, "the pod with an identity", func() (bool, error) {
		list, err := api.Dynamic.Resource(pods).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + identifiedPod})
		if err != nil {
			return false, fmt.Errorf("listing the pods with an identity: %w", err)
		}
		for _, item := range list.Items {
			var pod corev1.Pod
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &pod); err != nil {
				return false, err
			}
			if pod.Status.Phase == corev1.PodSucceeded {
				message, name = terminationMessage(&pod), pod.Name
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if message == "" && t.Simulated { // the nodes of a local account run no processes: this one takes the place of the pod
		if message, err = t.exchange(ctx, log, api, cluster, name); err != nil {
			return err
		}
	}
	return requireIdentity(log, role, message)
}

// exchange does what a pod and the agent of its node do: it has the API server issue a token for the pod, exchanges it for credentials, and
// returns who they are. https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html
func (t *Target) exchange(ctx context.Context, log *runner.Log, api *kube.Cluster, cluster, pod string) (identity string, err error) {
	issued, err := api.Dynamic.Resource(serviceAccounts).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": identifiedPod},
		"spec": map[string]any{
			"audiences":      []any{"pods.eks.amazonaws.com"},
			"boundObjectRef": map[string]any{"apiVersion": "v1", "kind": "Pod", "name": pod},
		},
	}}, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("issuing a token for pod %s: %w", pod, err)
	}
	token, _, err := unstructured.NestedString(issued.Object, "status", "token")
	if err != nil {
		return "", err
	}
	out, err := eksauth.AssumeRoleForPodIdentity(ctx, t.cfg, names.EKSCluster(cluster), token)
	if err != nil {
		return "", fmt.Errorf("exchanging the token of pod %s: %w", pod, err)
	}
	log.Found("EKS Auth exchanged a token of the API server for service account %s/%s", out.Subject.Namespace, out.Subject.ServiceAccount)
	cfg := t.cfg.Copy()
	cfg.Credentials = credentials.NewStaticCredentialsProvider(out.Credentials.AccessKeyID, out.Credentials.SecretAccessKey,
		out.Credentials.SessionToken)
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf("asking who pod %s is: %w", pod, err)
	}
	return aws.ToString(who.Arn), nil
}

// requireIdentity fails unless a pod found itself to be a session of the role.
func requireIdentity(log *runner.Log, role, message string) error {
	wanted, err := arn.Parse(role)
	if err != nil {
		return err
	}
	identity, err := arn.Parse(message)
	if err != nil {
		return errors.Join(fmt.Errorf("the pod reported %q, which is no identity", message), err)
	}
	name := wanted.Resource[strings.LastIndex(wanted.Resource, "/")+1:]
	if !strings.HasPrefix(identity.Resource, "assumed-role/"+name+"/") {
		return fmt.Errorf("the pod is %s, and not a session of role %s", message, role)
	}
	log.Found("the pod is %s, a session of the associated role", message)
	return nil
}

// terminationMessage returns what the container of a pod reported at its end.
func terminationMessage(pod *corev1.Pod) string {
	for _, container := range pod.Status.ContainerStatuses {
		if ended := container.State.Terminated; ended != nil {
			return strings.TrimSpace(ended.Message)
		}
	}
	return ""
}
