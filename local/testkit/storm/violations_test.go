package storm

// How tests break the invariants that the storm checks.

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	stacks "github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
)

// sticks makes the deletion of the EKS cluster fail in the first three hours.
func sticks(w *world) {
	w.OnResource(func(step string, r resource.Request) error {
		err := w.seeResource(step, r)
		if step == "delete" && r.Type == "AWS::EKS::Cluster" && time.Since(w.began) < 3*time.Hour {
			err = &wire.Error{Code: "ResourceInUseException", Message: "a node group holds it", Status: 409}
		}
		return err
	})
}

// deleteControlPlane deletes a control plane as change does.
func deleteControlPlane(ctx context.Context, cfg aws.Config) error {
	_, err := cloudformation.NewFromConfig(cfg).DeleteStack(ctx, &cloudformation.DeleteStackInput{
		StackName: aws.String(names.Stack("c0", names.ControlPlane)),
		RoleARN:   aws.String(names.RoleARN("aws", harness.ID, harness.Region, "cloudformation")),
	})
	return err
}

func (w *world) deleteProtectedStack(name string) {
	_, err := w.CloudFormation.UpdateTerminationProtection(context.Background(), w.Admin(), &stacks.UpdateTerminationProtectionInput{
		StackName: name,
	})
	require.NoError(w.t, err)
	_, err = w.CloudFormation.DeleteStack(context.Background(), w.Admin(), &stacks.DeleteStackInput{StackName: name})
	require.NoError(w.t, err)
	w.wait(time.Since(w.began) + 30*time.Minute)
}

func putObject(key string) *s3.PutObjectInput {
	return &s3.PutObjectInput{Bucket: aws.String(harness.StateBucket), Key: &key, Body: strings.NewReader("x")}
}

func addNode(t *testing.T, client dynamic.Interface, kubelet string) {
	_, err := client.Resource(schema.GroupVersionResource{
		Version: "v1", Resource: "nodes",
	}).Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "newer"}, "status": map[string]any{"nodeInfo": map[string]any{"kubeletVersion": kubelet}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func deletePods(t *testing.T, client dynamic.Interface, api *apiserver.Server) {
	for _, pod := range api.Pods() {
		err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("default").Delete(context.Background(),
			pod.Name, metav1.DeleteOptions{})
		require.NoError(t, err)
	}
}

// forbid denies an action to all roles.
func forbid(written *iam.Definitions, action string) {
	for name, document := range written.Policies {
		written.Policies[name] = json.RawMessage(strings.ReplaceAll(string(document), action, "eks:Nothing"))
	}
	for _, role := range written.Roles {
		for name, document := range role.Inline {
			role.Inline[name] = json.RawMessage(strings.ReplaceAll(string(document), action, "eks:Nothing"))
		}
	}
}
