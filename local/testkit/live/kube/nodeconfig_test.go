package kube_test

// The NodeConfigs of the golden templates, against AWS's schema. A real API server applies the schema, and rejects unknown fields.

import (
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const (
	goldens = "../../../../shared/render/testdata/golden"
	// nodeConfigSchema is AWS's own: the file names its source.
	nodeConfigSchema = "testdata/nodeconfig-crd.yaml"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	nodeConfigs = schema.GroupVersionResource{Group: "node.eks.aws", Version: "v1alpha1", Resource: "nodeconfigs"}
)

func TestNodeConfigs(t *testing.T) {
	crd, err := os.ReadFile(nodeConfigSchema)
	require.NoError(t, err)
	w := newWorld(t)
	w.create(definitions, "", allowScalars(t, crd))
	apply := func(config map[string]any, name string) error {
		// The schema is of a cluster's object, which has a name. nodeadm reads it from a file, where it has none.
		config["metadata"] = map[string]any{"name": name}
		_, err := w.api.Resource(nodeConfigs).Create(t.Context(), &unstructured.Unstructured{Object: config},
			metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
		return err
	}
	w.eventually(func() bool {
		_, err := w.api.Resource(nodeConfigs).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, "the API server does not serve NodeConfigs")

	configs := goldenNodeConfigs(t)
	require.Greater(t, len(configs), 15)
	require.Contains(t, configs, "v1/many-flags/pool-workers.yaml")
	fromScripts := 0
	for name, config := range configs {
		if strings.HasSuffix(name, ".sh") {
			fromScripts++
		}
		require.NoError(t, apply(config, "drover"), name)
	}
	require.Positive(t, fromScripts, "no golden has the kubelet's part in a file of its own")

	t.Run("rejects what AWS does not know", func(t *testing.T) {
		for name, change := range map[string]func(spec map[string]any){
			"an unknown field": func(spec map[string]any) { spec["kubelet"].(map[string]any)["flag"] = "--v=2" },
			"a wrong type":     func(spec map[string]any) { spec["kubelet"].(map[string]any)["flags"] = "--v=2" },
		} {
			config := configs["v1/small/pool-workers.yaml"]
			object := (&unstructured.Unstructured{Object: config}).DeepCopy().Object
			change(object["spec"].(map[string]any))
			err := apply(object, "drover")
			require.Truef(t, apierrors.IsBadRequest(err) || apierrors.IsInvalid(err), "%s: %v", name, err)
		}
	})
}

// allowScalars changes one place of the schema: a value in kubelet.config is an object there, because controller-gen describes Go's
// runtime.RawExtension so. nodeadm takes any JSON, and AWS's own example has a number.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/examples/#defining-a-max-number-of-pods
func allowScalars(t *testing.T, crd []byte) string {
	t.Helper()
	var definition map[string]any
	require.NoError(t, yaml.Unmarshal(crd, &definition))
	at := any(definition)
	for _, key := range []any{"spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "kubelet", "properties",
		"config", "additionalProperties"} {
		if index, ok := key.(int); ok {
			at = at.([]any)[index]
		} else {
			at = at.(map[string]any)[key.(string)]
		}
	}
	value := at.(map[string]any)
	require.Equal(t, map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}, value)
	delete(value, "type")
	text, err := yaml.Marshal(definition)
	require.NoError(t, err)
	return string(text)
}

// kubeletFile is the NodeConfig that a pool's configuration script writes to a file.
var kubeletFile = regexp.MustCompile(`(?s)place '/etc/eks/nodeadm\.d/drover\.yaml' '0600' '(.*?)'\n`)

// goldenNodeConfigs returns each NodeConfig of the golden files, by the name of its file.
func goldenNodeConfigs(t *testing.T) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	add := func(name, text string) {
		var config map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &config), name)
		found[name] = config
	}
	require.NoError(t, filepath.WalkDir(goldens, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(goldens, path)
		if err != nil {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), "userdata-") {
			if m := kubeletFile.FindSubmatch(body); m != nil {
				add(name, strings.ReplaceAll(string(m[1]), `'\''`, `'`))
			}
		}
		if strings.HasPrefix(entry.Name(), "pool-") {
			var template any
			require.NoError(t, yaml.Unmarshal(body, &template), name)
			if data := userDataOf(t, template); !strings.HasPrefix(data, "[settings") { // Bottlerocket has no nodeadm
				add(name, nodeConfigPart(t, data))
			}
		}
		return nil
	}))
	return found
}

// userDataOf finds the user data in a template, and joins its parts with values of the type that each parameter has.
func userDataOf(t *testing.T, template any) string {
	t.Helper()
	switch node := template.(type) {
	case map[string]any:
		if encoded, ok := node["UserData"].(map[string]any); ok {
			join := encoded["Fn::Base64"].(map[string]any)["Fn::Join"].([]any)
			var text strings.Builder
			for _, part := range join[1].([]any) {
				if ref, ok := part.(map[string]any); ok {
					value, ok := map[string]string{
						"ClusterEndpoint": "https://example.com", "ClusterCertificateAuthority": "Y2E=",
					}[ref["Ref"].(string)]
					require.True(t, ok, "unknown parameter %v", ref)
					text.WriteString(value)
					continue
				}
				text.WriteString(part.(string))
			}
			return text.String()
		}
		for _, child := range node {
			if text := userDataOf(t, child); text != "" {
				return text
			}
		}
	case []any:
		for _, child := range node {
			if text := userDataOf(t, child); text != "" {
				return text
			}
		}
	}
	return ""
}

// nodeConfigPart returns the part of user data that nodeadm reads.
func nodeConfigPart(t *testing.T, userData string) string {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(userData))
	require.NoError(t, err)
	_, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	for parts := multipart.NewReader(message.Body, params["boundary"]); ; {
		part, err := parts.NextPart()
		require.NoError(t, err, "no part is a NodeConfig")
		if part.Header.Get("Content-Type") == "application/node.eks.aws" {
			body, err := io.ReadAll(part)
			require.NoError(t, err)
			return string(body)
		}
	}
}
