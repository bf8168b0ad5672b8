package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/local/engine/inprocess"
)

// These are all the rights of drover's functions inside a cluster, one line per API group, resource and verbs. A right that is added here
// must be one that the function cannot do without. None of them reads Secrets.
var rights = map[string][]string{
	"drover:drain": {
		"nodes: get list patch",
		"pods/eviction: create",
		"pods: list watch delete",
		"policy/poddisruptionbudgets: list watch",
		"storage.k8s.io/volumeattachments: list watch",
	},
	"drover:join":  {"nodes: get list"},
	"drover:sweep": {"nodes: get list"},
	"drover:upgrade": {
		"admissionregistration.k8s.io/mutatingwebhookconfigurations: list",
		"admissionregistration.k8s.io/validatingwebhookconfigurations: list",
		"apps/daemonsets: list",
		"apps/deployments: list",
		"apps/statefulsets: list",
		"discovery.k8s.io/endpointslices: list",
		"namespaces: list",
		"nodes: list",
		"pods: list",
		"policy/poddisruptionbudgets: list",
	},
}

// appliedObject is the RBAC part of an object that is sent to the API server.
type appliedObject struct {
	Kind     string
	Metadata struct{ Name string }
	Rules    []map[string][]string
	RoleRef  map[string]string
	Subjects []map[string]string
}

func TestGrantedRights(t *testing.T) {
	roles, bindings := map[string][]string{}, map[string]bool{}
	c, err := Connect(&rest.Config{Host: "http://api",
		Transport: inprocess.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Method != http.MethodPatch || r.Header.Get("Content-Type") != "application/apply-patch+yaml" {
				http.Error(w, "not an apply", http.StatusBadRequest)
				return
			}
			var object appliedObject
			if err := json.Unmarshal(body, &object); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			name := object.Metadata.Name
			switch r.URL.Path {
			case "/apis/rbac.authorization.k8s.io/v1/clusterroles/" + name:
				for _, rule := range object.Rules {
					var fields []string
					for field := range rule {
						fields = append(fields, field)
					}
					slices.Sort(fields)
					line := "fields " + strings.Join(fields, " ")
					if slices.Equal(fields, []string{"apiGroups", "resources", "verbs"}) {
						line = strings.TrimPrefix(strings.Join(rule["apiGroups"], ",")+"/", "/") + strings.Join(rule["resources"], ",") + ": " +
							strings.Join(rule["verbs"], " ")
					}
					roles[name] = append(roles[name], line)
				}
				slices.Sort(roles[name])
			case "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + name:
				bindings[name] = true
				require.Equal(t, map[string]string{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}, object.RoleRef)
				require.Equal(t, []map[string]string{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}}, object.Subjects)
			default:
				t.Errorf("unexpected object: %s", r.URL.Path)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}))})
	require.NoError(t, err)
	require.NoError(t, c.GrantRoles(t.Context()))
	require.Equal(t, rights, roles)
	require.Len(t, bindings, len(rights))
	for group := range rights {
		require.True(t, bindings[group], group)
	}
}
