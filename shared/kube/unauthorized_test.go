package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestUnauthorized(t *testing.T) {
	const entry = "--cluster-name drover-demo --principal-arn arn:aws-cn:iam::1:role/drover-r-"
	for name, test := range map[string]struct {
		step, group, want string
	}{
		"of a group": {
			"join", JoinGroup, "run aws eks delete-access-entry " + entry + "join; aws eks create-access-entry " + entry +
				"join --kubernetes-groups drover:join",
		},
		"of the administrator": {
			"prepare", "", "aws eks create-access-entry " + entry + "prepare && aws eks associate-access-policy " + entry +
				"prepare --access-scope type=cluster --policy-arn arn:aws-cn:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := http.StatusUnauthorized
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, err := w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "from the server"}`))
				require.NoError(t, err)
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			message := unauthorizedMessage("drover-demo", "arn:aws-cn:iam::1:role/drover-r-"+test.step, test.group)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return explainer{next, message} })
			cluster, err := Connect(config)
			require.NoError(t, err)
			for _, list := range []func() error{
				func() error {
					return cluster.Core.Get().Resource("nodes").Do(t.Context()).Into(&corev1.NodeList{})
				},
				func() error {
					_, err := cluster.Dynamic.Resource(clusterRoles).List(t.Context(), metav1.ListOptions{})
					return err
				},
			} {
				status = http.StatusUnauthorized
				err := list()
				require.True(t, apierrors.IsUnauthorized(err), "%v", err)
				require.ErrorContains(t, err, test.want)
				status = http.StatusForbidden
				require.NotContains(t, list().Error(), "access-entry", "another answer is not changed")
			}
		})
	}
}
