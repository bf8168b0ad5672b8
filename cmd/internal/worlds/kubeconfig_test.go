package worlds

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/local/aws/iam"
)

// A client of the Kubernetes API signs in with a kubeconfig that drover wrote: client-go, as kubectl does, runs drover for a token, and the
// API server asks the account whose it is. The cluster lets the administrator in.
func signIn(t *testing.T) {
	// client-go runs this program as drover.
	t.Setenv(clitest.AsCommand, "1")
	for key, value := range cloud.Environment() {
		t.Setenv(key, value)
	}
	environment := cloud.Environment()
	nodes := func(t *testing.T, arguments ...string) error {
		t.Helper()
		file := filepath.Join(t.TempDir(), "config")
		environment["KUBECONFIG"] = file
		r := runWith(t, environment, append([]string{"kubeconfig", "demo"}, arguments...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Equal(t, "context demo is in "+file+", and current: kubectl get nodes\n", r.Stdout)
		config, err := clientcmd.BuildConfigFromFlags("", file)
		require.NoError(t, err)
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err == nil {
			require.NotEmpty(t, list.Items)
		}
		return err
	}
	require.NoError(t, nodes(t))
	// A role that the administrator may assume, and that the cluster does not know.
	role, err := cloud.Identities.CreateRole(iam.Role{Name: "stranger", Path: "/", TrustDocument: `{"Version": "2012-10-17", "Statement": [` +
		`{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::000000000000:root"}, "Action": "sts:AssumeRole"}]}`})
	require.NoError(t, err)
	require.True(t, apierrors.IsUnauthorized(nodes(t, "--role", cloud.Identities.RoleARN(role))))

	t.Run("--stdout prints what the file has", func(t *testing.T) {
		printed := ok(t, "kubeconfig", "demo", "--alias", "other", "--stdout")
		require.Contains(t, printed, "current-context: other\n")
		require.Contains(t, printed, "- name: AWS_ENDPOINT_URL\n        value: "+environment["AWS_ENDPOINT_URL"])
		require.NotContains(t, printed, environment["AWS_SECRET_ACCESS_KEY"])
	})
	require.Equal(t, "drover: cluster absent has no control plane in us-east-1: `drover status absent` shows how far it is\n",
		fails(t, "kubeconfig", "absent"))
}
