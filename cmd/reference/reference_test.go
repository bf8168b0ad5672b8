package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/shared/api"
)

const (
	source   = "../../shared/api"
	target   = "../../docs/reference"
	examples = "../../examples"
)

func TestReferenceIsUpToDate(t *testing.T) {
	files, err := generate(source, examples)
	require.NoError(t, err)
	status, err := generateStatus("../../shared/rollout")
	require.NoError(t, err)
	maps.Copy(files, status)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(target, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s is stale: go run ./cmd/reference", name)
	}
}

func TestWriteWritesWhatIsGenerated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, write(source, examples, dir))
	files, err := generate(source, examples)
	require.NoError(t, err)
	require.Len(t, files, 12)
	status, err := generateStatus("../../shared/rollout")
	require.NoError(t, err)
	maps.Copy(files, status)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Error(t, write(filepath.Join(dir, "nothing"), examples, dir))
}

// eachField calls visit for each field of a kind, with its path as the reference has it.
func eachField(t reflect.Type, path string, visit func(owner reflect.Type, f reflect.StructField, path string)) {
	for i := range t.NumField() {
		f := t.Field(i)
		here := strings.TrimPrefix(path+"."+api.RulesOf(f).Name, ".")
		visit(t, f, here)
		if _, object := typeName(f.Type); object != nil && !api.RulesOf(f).Partial {
			if elem(f.Type).Kind() == reflect.Slice {
				here += "[]"
			}
			eachField(object, here, visit)
		}
	}
}

func TestEveryFieldIsDocumented(t *testing.T) {
	docs, err := readComments(source)
	require.NoError(t, err)
	for name, kind := range kinds {
		page, err := os.ReadFile(filepath.Join(target, name+".md"))
		require.NoError(t, err)
		schema := readSchema(t, name)
		sections := strings.Split(string(page), "\n## ")
		eachField(kind, "", func(owner reflect.Type, f reflect.StructField, path string) {
			require.NotEmpty(t, docs[owner.Name()], "%s has no comment", owner)
			require.True(t, strings.HasPrefix(docs[owner.Name()+"."+f.Name], f.Name+" "), "%s.%s: its comment must start with its name",
				owner.Name(), f.Name)

			object, field := "", path
			if i := strings.LastIndex(path, "."); i >= 0 {
				object, field = path[:i], path[i+1:]
			}
			row := "\n| `" + field + "` | "
			require.True(t, anyOf(sections, func(s string) bool {
				return (object == "" || strings.HasPrefix(s, object+"\n")) && strings.Contains(s, row)
			}), "%s is not in %s.md", path, name)

			properties := schema["properties"]
			if owner != kind {
				properties = schema["$defs"].(map[string]any)[owner.Name()].(map[string]any)["properties"]
			}
			require.Contains(t, properties, field, "%s is not in the schema", path)
			property := properties.(map[string]any)[field].(map[string]any)
			require.NotEmpty(t, property["description"], path)
			if d := api.RulesOf(f).Default; d != nil {
				require.Contains(t, property, "default", path)
			}
		})
	}
}

func anyOf(list []string, matches func(string) bool) bool {
	for _, s := range list {
		if matches(s) {
			return true
		}
	}
	return false
}

// The examples together show every field.
func TestExamplesShowEveryField(t *testing.T) {
	for name, kind := range kinds {
		shown := map[string]bool{}
		for _, path := range paths(t, name) {
			fieldsIn(readYAML(t, path), "", shown)
		}
		eachField(kind, "", func(_ reflect.Type, _ reflect.StructField, path string) {
			if kind.Name() != api.KindCluster && strings.HasPrefix(path, "metadata.") && path != "metadata.name" {
				return // shown for clusters
			}
			shownElsewhere := []string{"spec.addons[].configuration", "spec.addons[].podIdentities[].roleARN", "spec.regions.images"}
			if kind.Name() == api.KindRelease && slices.Contains(shownElsewhere, path) {
				return // for clusters, and below the name of a region
			}
			require.True(t, shown[path], "no example shows %s", path)
		})
	}
}

func fieldsIn(value any, path string, seen map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			here := strings.TrimPrefix(path+"."+key, ".")
			seen[here] = true
			fieldsIn(inner, here, seen)
		}
	case []any:
		for _, inner := range v {
			fieldsIn(inner, path+"[]", seen)
		}
	}
}

func TestExamplesAreGood(t *testing.T) {
	templates := api.Options{TemplateVersions: []string{"v1"}}
	releases := map[string]*api.Release{}
	eachExample(t, "release", func(t *testing.T, path string, data []byte, schema *jsonschema.Schema) {
		require.NoError(t, schema.Validate(readYAML(t, path)))
		options := templates
		options.Name = strings.TrimSuffix(filepath.Base(path), ".yaml")
		release, errs := api.ReadRelease(path, data, options)
		require.NoError(t, errs.Err())
		releases[options.Name] = release
	})
	eachExample(t, "channels", func(t *testing.T, path string, data []byte, schema *jsonschema.Schema) {
		require.NoError(t, schema.Validate(readYAML(t, path)))
		channels, errs := api.ReadChannels(path, data, api.Options{Name: "channels"})
		require.NoError(t, errs.Err())
		for field, release := range channels.Spec.Releases() {
			require.Contains(t, releases, release, field)
		}
		for version, release := range channels.Spec.Nodes {
			require.Equal(t, version, releases[release].Spec.KubernetesVersion)
		}
	})
	fleet := map[string]*api.Rollout{}
	eachExample(t, "rollout", func(t *testing.T, path string, data []byte, schema *jsonschema.Schema) {
		require.NoError(t, schema.Validate(readYAML(t, path)))
		r, errs := api.ReadRollout(path, data, api.Options{Name: strings.TrimSuffix(filepath.Base(path), ".yaml")})
		require.NoError(t, errs.Err())
		fleet[r.Metadata.Name] = r
		for _, release := range append(slices.Collect(maps.Values(r.Spec.Subject.Releases)), r.Spec.Subject.Release) {
			require.True(t, release == "" || releases[release] != nil, release)
		}
	})
	freezes := map[string]bool{}
	eachExample(t, "freeze", func(t *testing.T, path string, data []byte, schema *jsonschema.Schema) {
		require.NoError(t, schema.Validate(readYAML(t, path)))
		f, errs := api.ReadFreeze(path, data, api.Options{Name: strings.TrimSuffix(filepath.Base(path), ".yaml")})
		require.NoError(t, errs.Err())
		freezes[f.Metadata.Name] = true
	})
	eachExample(t, "decision", func(t *testing.T, path string, data []byte, schema *jsonschema.Schema) {
		require.NoError(t, schema.Validate(readYAML(t, path)))
		d, errs := api.ReadDecision(path, data, api.Options{Name: strings.TrimSuffix(filepath.Base(path), ".yaml")})
		require.NoError(t, errs.Err())
		require.Contains(t, fleet, d.Spec.Rollout)
		require.True(t, d.Spec.Freeze == "" || freezes[d.Spec.Freeze], d.Spec.Freeze)
	})
	eachExample(t, "cluster", func(t *testing.T, path string, data []byte, schema *jsonschema.Schema) {
		require.NoError(t, schema.Validate(readYAML(t, path)))
		options := templates
		options.Name = strings.TrimSuffix(filepath.Base(path), ".yaml")
		cluster, errs := api.ReadCluster(path, data, options)
		require.NoError(t, errs.Err())
		require.Contains(t, releases, cluster.Spec.Release.Name)
		resolved, errs := api.Resolve(cluster, releases[cluster.Spec.Release.Name])
		require.NoError(t, errs.Err())
		require.NoError(t, api.Validate(resolved, options).Err())
		require.NoError(t, api.ValidateVersions(resolved, []string{"1.35", "1.36", "1.37"}, "", "").Err())
	})
}

func eachExample(t *testing.T, kind string, check func(*testing.T, string, []byte, *jsonschema.Schema)) {
	for _, path := range paths(t, kind) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(data, []byte("# yaml-language-server: $schema=../../docs/reference/"+kind+".schema.json\n")),
				"editors look for the schema in the first line")
			check(t, path, data, compile(t, kind))
		})
	}
}

// paths of the examples of a kind. That of channels is in the folder of the releases.
func paths(t *testing.T, kind string) []string {
	t.Helper()
	channels := filepath.Join(examples, "releases", "channels.yaml")
	if kind == "channels" {
		return []string{channels}
	}
	folder := kind + "s"
	if ofFleets(kinds[kind].Name()) {
		folder = "rollouts"
	}
	paths, err := filepath.Glob(filepath.Join(examples, folder, "*.yaml"))
	require.NoError(t, err)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return path == channels || api.KindOf(data) != kinds[kind].Name()
	})
	require.NotEmpty(t, paths)
	return paths
}

// Both the schema, and so an editor, and drover must reject each of these.
func TestSchemaRefusesWhatDroverRefuses(t *testing.T) {
	cases := map[string][2]string{
		"an unknown field":            {"  tags:", "  tag:"},
		"a missing field":             {"      minSize: 2\n      maxSize: 4\n", "      minSize: 2\n"},
		"a number for a string":       {`"1.36-1"`, "1.36"},
		"a string for a number":       {"maxSize: 4", "maxSize: four"},
		"a number out of bounds":      {"maxSize: 4", "maxSize: 0"},
		"a value that is not offered": {"natGateways: Single", "natGateways: One"},
		"a malformed range":           {"10.0.0.0/16", "10.0.0.0"},
		"a list with too little":      {"[us-east-1a, us-east-1b, us-east-1c]", "[us-east-1a]"},
		"a list with something twice": {"us-east-1b", "us-east-1a"},
		"no network":                  {"    cidr: 10.0.0.0/16\n", ""},
		"two networks": {
			"    cidr:", "    existing: {vpcID: vpc-12345678, subnets: [subnet-12345678, subnet-12345679]}\n    cidr:",
		},
		"a cluster's name too long": {"  name: demo\n", "  name: " + strings.Repeat("d", 51) + "\n"},
		"a malformed label":         {`interruptible: "true"`, `interruptible: "not so"`},
		"a malformed tag":           {"team:", `"team#":`},
		"a window that opens in two ways": {
			"  tags:", "  upgrade: {window: {cron: \"0 1 * * ? *\", start: \"22:00\", duration: 4h}}\n  tags:",
		},
		"a window that opens in no way":         {"  tags:", "  upgrade: {window: {duration: 4h}}\n  tags:"},
		"a window that opens at no time of day": {"  tags:", "  upgrade: {window: {start: \"24:00\", duration: 4h}}\n  tags:"},
		"a default for names":                   {"  pools:", "  poolDefaults: {name: a}\n  pools:"},
		"a default of the wrong type":           {"  pools:", "  poolDefaults: {maxPods: many}\n  pools:"},
		"half of a spot":                        {"        onDemandPercentage: 50\n", ""},
		"an empty command":                      {"      files:", "      commands: [\"\"]\n      files:"},
	}
	demo, err := os.ReadFile(filepath.Join(examples, "clusters", "demo.yaml"))
	require.NoError(t, err)
	schema := compile(t, "cluster")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(demo), c[0])
			spec := strings.Replace(string(demo), c[0], c[1], 1)
			var value any
			require.NoError(t, yaml.Unmarshal([]byte(spec), &value))
			require.Error(t, schema.Validate(value))
			_, errs := api.ReadCluster("demo.yaml", []byte(spec), api.Options{})
			require.Error(t, errs.Err())
		})
	}
}

// Both must accept pools that take what they need from the defaults.
func TestSchemaKnowsDefaultsOfPools(t *testing.T) {
	demo, err := os.ReadFile(filepath.Join(examples, "clusters", "demo.yaml"))
	require.NoError(t, err)
	spec := strings.NewReplacer(
		"  pools:", "  poolDefaults:\n    instanceTypes: [m7i.large]\n    minSize: 1\n    maxSize: 6\n"+
			"    spot: {onDemandBase: 0, onDemandPercentage: 50}\n  pools:",
		"      minSize: 2\n", "", "      maxSize: 4\n", "", "        onDemandPercentage: 50\n", "",
	).Replace(string(demo))
	var value any
	require.NoError(t, yaml.Unmarshal([]byte(spec), &value))
	require.NoError(t, compile(t, "cluster").Validate(value))
	c, errs := api.ReadCluster("demo.yaml", []byte(spec), api.Options{})
	require.NoError(t, errs.Err())
	require.Equal(t, 6, c.Spec.Pools[0].MaxSize)
}

func TestLinksOfTheReferenceLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(#([^)]*)\)`)
	heading := regexp.MustCompile(`(?m)^## (.*)$`)
	for name := range kinds {
		page, err := os.ReadFile(filepath.Join(target, name+".md"))
		require.NoError(t, err)
		anchors := map[string]bool{}
		for _, m := range heading.FindAllSubmatch(page, -1) {
			require.False(t, anchors[anchor(string(m[1]))], "two headings with the anchor of %s", m[1])
			anchors[anchor(string(m[1]))] = true
		}
		for _, m := range link.FindAllSubmatch(page, -1) {
			require.Contains(t, anchors, string(m[1]))
		}
	}
}

func compile(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(filepath.Join(target, kind+".schema.json"))
	require.NoError(t, err)
	return schema
}

func readSchema(t *testing.T, kind string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(target, kind+".schema.json"))
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(text, &schema))
	return schema
}

func readYAML(t *testing.T, path string) any {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var value any
	require.NoError(t, yaml.Unmarshal(text, &value))
	return value
}

// The effects of changes cover every field, and no other path.
func TestReferenceHasTheEffectOfEachField(t *testing.T) {
	done, err := readChanges(examples)
	require.NoError(t, err)
	known := map[string]bool{}
	for path, field := range fieldsOf(reflect.TypeFor[api.Cluster](), "") {
		known[path] = true
		if elem(field.Type).Kind() != reflect.Struct {
			require.NotEmpty(t, done[path], "%s: no other value of it is valid in examples/clusters; give it one there, or in ways.go", path)
		}
	}
	for path := range done {
		require.True(t, known[path], path)
	}
	// Effects that must not change by accident.
	for path, want := range map[string]string{
		"spec.network.cidr":                  "**refused**",
		"spec.controlPlane.serviceCIDR":      "**refused**",
		"spec.controlPlane.encryptionKeyARN": "**refused**",
		"spec.pools[].imageID":               "**rolls**: pool",
		"spec.pools[].maxSize":               "in place: pool",
		"spec.pools[].drain.timeout":         "in place: pool",
		"spec.paused":                        "read by drover only",
		"spec.upgrade.channel":               "read by drover only",
		"spec.upgrade.at.release":            "read by drover only",
		"spec.kubernetesVersion":             "in place: control-plane",
	} {
		require.Contains(t, done[path], want, path)
	}
}
