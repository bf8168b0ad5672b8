package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drover-run/drover/shared/api"
)

func TestDecodeRejects(t *testing.T) {
	cases := map[string]struct {
		file string
		want []string
	}{
		"an empty file":      {"", []string{`f.yaml:1: Required value: the file is empty`}},
		"a file of comments": {"# nothing\n", []string{`f.yaml:1: Required value: the file is empty`}},
		"what is not YAML": {
			"apiVersion: drover.run/v1alpha1\nkind: [Cluster\n", []string{`f.yaml:2: Invalid value: not YAML: did not find expected ',' or ']'`},
		},
		"tabs": {
			"kind: Cluster\n\tspec: {}\n", []string{
				`f.yaml:2: Invalid value: not YAML: the line is indented with a tab: YAML takes spaces only; replace each tab with spaces`,
			},
		},
		"a tab before a key": {
			"kind: Cluster\nspec:\n\trelease: {}\n", []string{
				`f.yaml:3: Invalid value: not YAML: the line is indented with a tab: YAML takes spaces only; replace each tab with spaces`,
			},
		},
		"an end that begins another": {
			good + "---\n", []string{`f.yaml:18: Forbidden: a second document, which is empty: remove the line --- that begins it`},
		},
		"binary in the first line": {"\xff", []string{`f.yaml:1: Invalid value: not YAML: it is not UTF-8`}},
		"binary":                   {"kind: Cluster\nmetadata: \xff\xfe\n", []string{`f.yaml:2: Invalid value: not YAML: it is not UTF-8`}},
		"control characters":       {"kind: \x01\n", []string{`f.yaml:1: Invalid value: not YAML: control characters are not allowed`}},
		"2 MB":                     {"# " + strings.Repeat("x", 2<<20), []string{`f.yaml:1: Too long: may not be more than 1048576 bytes`}},
		"a list": {
			"[]\n", []string{`f.yaml:1: Invalid value: a list: must be an object with apiVersion, kind, metadata and spec`},
		},
		"a scalar": {
			"hello\n", []string{`f.yaml:1: Invalid value: "hello": must be an object with apiVersion, kind, metadata and spec`},
		},
		"null": {"---\n", []string{`f.yaml:1: Required value: the file is empty`}},
		"an anchor at the top": {
			"&a {kind: Cluster}\n", []string{`f.yaml:1: Forbidden: anchors and aliases are not allowed: write the value out where it is used`},
		},
		"another kind": {goodRelease, []string{`f.yaml:2: kind: Unsupported value: "Release": supported values: "Cluster"`}},
		"another version": {
			strings.Replace(good, "v1alpha1", "v1", 1), []string{
				`f.yaml:1: apiVersion: Unsupported value: "drover.run/v1": supported values: "drover.run/v1alpha1"`,
			},
		},
		"more than one document": {
			good + "---\nkind: Cluster\n", []string{`f.yaml:18: Forbidden: more than one document: a file holds one object`},
		},
		"a second one that is broken": {
			good + "---\nkind: [\n", []string{`f.yaml:20: Invalid value: not YAML: did not find expected node content`},
		},
		"fields missing": {"apiVersion: drover.run/v1alpha1\nkind: Cluster\nmetadata: {}\nspec:\n  release: {}\n  network:\n  pools:\n " +
			" - name: a\n", []string{
			`f.yaml:3: metadata.name: Required value`,
			`f.yaml:4: spec.network: Required value`,
			`f.yaml:5: spec.release.name: Required value`,
			`f.yaml:8: spec.pools[0].instanceTypes: Required value`,
			`f.yaml:8: spec.pools[0].minSize: Required value`,
			`f.yaml:8: spec.pools[0].maxSize: Required value`,
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, errs := api.DecodeCluster("f.yaml", []byte(c.file))
			require.Nil(t, cluster)
			require.Equal(t, c.want, lines(errs))
		})
	}
}

func TestDecodeRejectsFields(t *testing.T) {
	cases := map[string]struct {
		edits pairs
		want  []string
	}{
		"a field that would write over a terminal": {
			pairs{"zones:", "\"\\e[2J\\u202ecolor\\n\": red\n    zones:"},
			[]string{`f.yaml:10: spec.network.\x1b[2J\u202ecolor\n: Forbidden: unknown field: the fields here are cidr, secondaryCIDRs, ` +
				`zones, natGateways, natAddresses, endpoints, flowLogs, existing`},
		},
		"unknown fields, with what was probably meant": {
			pairs{"minSize: 1", "minsize: 1", "zones:", "color: red\n    zones:"},
			[]string{
				`f.yaml:10: spec.network.color: Forbidden: unknown field: the fields here are cidr, secondaryCIDRs, zones, natGateways, ` +
					`natAddresses, endpoints, flowLogs, existing`,
				`f.yaml:14: spec.pools[0].minSize: Required value`,
				`f.yaml:16: spec.pools[0].minsize: Forbidden: unknown field, did you mean "minSize"?`,
			},
		},
		"duplicate keys": {
			pairs{"  tags: {}", "  tags: {}\n  tags: {a: b, a: c}", "      maxSize: 3", "      maxSize: 3\n      maxSize: 4"},
			[]string{
				`f.yaml:17: spec.pools[0].maxSize: Duplicate value: "maxSize": already on line 16`,
				`f.yaml:19: spec.tags: Duplicate value: "tags": already on line 18`,
			},
		},
		"duplicate keys of maps": {
			pairs{"  tags: {}", "  tags:\n    a: b\n    a: c"},
			[]string{`f.yaml:19: spec.tags[a]: Duplicate value: "a": already on line 18`},
		},
		"numbers where strings belong": {
			pairs{`"1.36-1"`, `1.36`, "  tags: {}", "  tags: {build: 0123, on: true, off: null}\n  kubernetesVersion: 1.30"},
			[]string{
				`f.yaml:7: spec.release.name: Invalid value: 1.36: must be a string: put it in quotes`,
				`f.yaml:17: spec.tags[build]: Invalid value: 0123: must be a string: put it in quotes`,
				`f.yaml:17: spec.tags[on]: Invalid value: true: must be a string: put it in quotes`,
				`f.yaml:17: spec.tags[off]: Invalid value: null: must be a string`,
				`f.yaml:18: spec.kubernetesVersion: Invalid value: 1.30: must be a string: put it in quotes`,
			},
		},
		"keys that are no strings": {
			pairs{"  tags: {}", "  tags: {1: a, true: b, ~: c, [x]: d}"},
			[]string{
				`f.yaml:17: spec.tags: Invalid value: 1: a key must be a string: put it in quotes`,
				`f.yaml:17: spec.tags: Invalid value: true: a key must be a string: put it in quotes`,
				`f.yaml:17: spec.tags: Invalid value: ~: a key must be a string: put it in quotes`,
				`f.yaml:17: spec.tags: Invalid value: a key must be a string`,
			},
		},
		"fields that are elsewhere": {
			pairs{"  tags: {}", "  tags: {}\n  minSize: 1\n  serviceCIDR: 10.0.0.0/16", "  controlPlane: {}",
				"  controlPlane: {kubernetesVersion: \"1.36\"}"},
			[]string{
				`f.yaml:11: spec.controlPlane.kubernetesVersion: Forbidden: unknown field: the field is spec.kubernetesVersion`,
				`f.yaml:18: spec.minSize: Forbidden: unknown field: the field is spec.pools[].minSize`,
				`f.yaml:19: spec.serviceCIDR: Forbidden: unknown field: the field is spec.controlPlane.serviceCIDR`,
			},
		},
		"what is no whole number": {
			pairs{"minSize: 1", "minSize: 1.0", "maxSize: 3", "maxSize: 010\n      maxPods: 9999999999\n      " +
				"rootVolume: {sizeGiB: 0, iops: 0x10, throughput: \"125\"}"},
			[]string{
				`f.yaml:15: spec.pools[0].minSize: Invalid value: 1.0: must be a whole number`,
				`f.yaml:16: spec.pools[0].maxSize: Invalid value: 010: must be a whole number`,
				`f.yaml:17: spec.pools[0].maxPods: Invalid value: 9999999999: must be a whole number`,
				`f.yaml:18: spec.pools[0].rootVolume.sizeGiB: Invalid value: 0: must be greater than or equal to 20`,
				`f.yaml:18: spec.pools[0].rootVolume.iops: Invalid value: 0x10: must be a whole number`,
				`f.yaml:18: spec.pools[0].rootVolume.throughput: Invalid value: "125": must be a whole number`,
			},
		},
		"what is neither true nor false": {
			pairs{"  tags: {}", "  paused: yes\n  deletionProtection: \"true\""},
			[]string{
				`f.yaml:17: spec.paused: Invalid value: "yes": must be true or false`,
				`f.yaml:18: spec.deletionProtection: Invalid value: "true": must be true or false`,
			},
		},
		"lists and objects in each other's place": {
			pairs{"zones: [us-east-1a, us-east-1b]", "zones: us-east-1a", "  controlPlane: {}", "  controlPlane: []", "  tags: {}",
				"  tags: [a]\n  addons: {vpc-cni: v1}"},
			[]string{
				`f.yaml:10: spec.network.zones: Invalid value: "us-east-1a": must be a list`,
				`f.yaml:11: spec.controlPlane: Invalid value: a list: must be an object`,
				`f.yaml:17: spec.tags: Invalid value: a list: must be an object`,
				`f.yaml:18: spec.addons: Invalid value: an object: must be a list`,
			},
		},
		"anchors and aliases": {
			pairs{"    - name: workers", "    - &w\n      name: workers", "  tags: {}", "    - *w"},
			[]string{
				`f.yaml:13: spec.pools[0]: Forbidden: anchors and aliases are not allowed: write the value out where it is used`,
				`f.yaml:18: spec.pools[1]: Forbidden: anchors and aliases are not allowed: write the value out where it is used`,
			},
		},
		"an alias of nothing": {
			pairs{"  tags: {}", "  tags: *nothing"},
			[]string{`f.yaml:1: Invalid value: not YAML: anchors and aliases are not allowed: write the value out where it is used`},
		},
		"merge keys": {
			pairs{"  tags: {}", "  tags: {<<: {a: b}}"},
			[]string{`f.yaml:17: spec.tags: Forbidden: merge keys are not allowed: write the fields out`},
		},
		"tags of YAML": {
			pairs{"name: demo", "name: !Ref demo", "  tags: {}", "  tags: {a: !!binary aGk=, b: !!str 1}"},
			[]string{
				`f.yaml:4: metadata.name: Forbidden: tags are not allowed: put a string that starts with '!' in quotes`,
				`f.yaml:17: spec.tags[a]: Forbidden: tags are not allowed: put a string that starts with '!' in quotes`,
				`f.yaml:17: spec.tags[b]: Forbidden: tags are not allowed: put a string that starts with '!' in quotes`,
			},
		},
		"numbers that JSON cannot hold, deep in a configuration": {
			pairs{"  tags: {}", "  addons: [{name: a, configuration: {b: [{c: .inf}, {d: 99999999999999999999}, {e: 0x1F}]}}]"},
			[]string{
				`f.yaml:17: spec.addons[0].configuration.b[0].c: Invalid value: (4 bytes): must be a number that JSON can hold`,
				`f.yaml:17: spec.addons[0].configuration.b[1].d: Invalid value: (20 bytes): must be a number that JSON can hold`,
				`f.yaml:17: spec.addons[0].configuration.b[2].e: Invalid value: (4 bytes): must be a number that JSON can hold`,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, errs := api.DecodeCluster("f.yaml", edit(t, good, c.edits))
			require.Nil(t, cluster)
			require.Equal(t, c.want, lines(errs))
		})
	}
}

func TestDecodeRejectsBombs(t *testing.T) {
	laughs := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'z'; i++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", i-1), 9), ", "))
	}
	bombs := map[string]string{
		"a billion laughs at the top":     laughs,
		"a billion laughs where maps are": strings.Replace(good, "tags: {}", "tags:\n    "+strings.ReplaceAll(laughs, "\n", "\n    "), 1),
		"a billion laughs in any value": strings.Replace(good, "tags: {}", "addons:\n  - name: a\n    configuration:\n      "+
			strings.ReplaceAll(laughs, "\n", "\n      "), 1),
		"an anchor that holds itself": strings.Replace(good, "tags: {}", "addons: &a [{name: x, configuration: {a: *a}}]", 1),
		"deep nesting in flow style": strings.Replace(good, "tags: {}", "addons: [{name: a, configuration: {a: "+strings.Repeat("[", 9000)+
			strings.Repeat("]", 9000)+"}}]", 1),
		"nesting too deep for the parser": strings.Replace(good, "tags: {}", "tags: "+strings.Repeat("[", 500000), 1),
		"deep nesting in block style":     strings.Replace(good, "tags: {}", "tags: \n    "+strings.Repeat("- ", 5000), 1),
		"more values than the limit":      "[" + strings.Repeat("a,", 60_000) + "]",
	}
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			_, errs := api.DecodeCluster("f.yaml", []byte(bomb))
			require.NotEmpty(t, errs)
			require.Less(t, len(errs.Error()), 64<<10)
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	_, errs := api.DecodeCluster("f.yaml", []byte(good+strings.Repeat("x: y\n", 5000)))
	require.Len(t, errs, 5000)
	require.Len(t, lines(errs), 101)
	require.Equal(t, "and 4900 more", lines(errs)[100])

	_, errs = api.DecodeCluster("f.yaml", []byte(good+"? "+strings.Repeat("x", 100_000)+"\n: y\n"))
	require.Len(t, errs, 1)
	require.Less(t, len(errs.Error()), 300)
}

func TestDecodeAccepts(t *testing.T) {
	cases := map[string]struct {
		edits pairs
		check func(*testing.T, *api.Cluster)
	}{
		"null for what may be left out": {
			pairs{"  tags: {}", "  tags:\n  addons: ~\n  paused: null"},
			func(t *testing.T, c *api.Cluster) { require.Nil(t, c.Spec.Tags) },
		},
		"strings that other YAML readers take for something else": {
			pairs{"  tags: {}", "  tags: {a: yes, b: 2026-11-20, c: '1', d: \"~\"}"},
			func(t *testing.T, c *api.Cluster) {
				require.Equal(t, map[string]string{"a": "yes", "b": "2026-11-20", "c": "1", "d": "~"}, c.Spec.Tags)
			},
		},
		"any configuration of an add-on": {
			pairs{"  tags: {}", "  addons: [{name: a, configuration: {n: 1, f: 1.5, b: true, z: null, s: \"1\", l: [x, {y: 2}], o: {}}}]"},
			func(t *testing.T, c *api.Cluster) {
				require.Equal(t, map[string]any{
					"n": int64(1), "f": 1.5, "b": true, "z": nil, "s": "1", "l": []any{"x", map[string]any{"y": int64(2)}}, "o": map[string]any{},
				}, c.Spec.Addons[0].Configuration)
			},
		},
		"no logs, which is not the same as the default": {
			controlPlane("logs: []"),
			func(t *testing.T, c *api.Cluster) { require.Equal(t, []string{}, c.Spec.ControlPlane.Logs) },
		},
		"the end of a document":   {pairs{"  tags: {}\n", "  tags: {}\n...\n"}, nil},
		"a byte order mark":       {pairs{"apiVersion: drover", "\ufeffapiVersion: drover"}, nil},
		"carriage returns":        {pairs{"kind: Cluster\nmetadata:\n", "kind: Cluster\r\nmetadata:\r\n"}, nil},
		"strings over many lines": {pool("files: [{path: /a, content: \"a\\n\\tb\\x01\\u2028\\U0001F600\"}]"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, errs := api.DecodeCluster("f.yaml", edit(t, good, c.edits))
			require.NoError(t, errs.Err())
			if c.check != nil {
				c.check(t, cluster)
			}
		})
	}
}

func TestErrorsHaveFieldsAndPositions(t *testing.T) {
	_, errs := api.DecodeCluster("f.yaml", edit(t, good, pairs{"maxSize: 3", "maxSize: many"}))
	require.Len(t, errs, 1)
	require.Equal(t, "f.yaml", errs[0].File)
	require.Equal(t, 16, errs[0].Line)
	require.Equal(t, 16, errs[0].Column)
	var fieldError *field.Error
	require.True(t, errors.As(errs.Err(), &fieldError))
	require.Equal(t, "spec.pools[0].maxSize", fieldError.Field)
	require.Equal(t, field.ErrorTypeTypeInvalid, fieldError.Type)

	require.NoError(t, api.Errors(nil).Err())
}

// addon returns an add-on with a configuration.
func addon(configuration string) pairs {
	return pairs{"  tags: {}", "  addons: [{name: a, configuration: " + configuration + "}]"}
}

func TestMessagesShowNoSecrets(t *testing.T) {
	const secret = "hunter2"
	cases := map[string]pairs{
		"content that is no string":        pool("files: [{path: /a, content: {password: hunter2}}]"),
		"content that is a list":           pool("files: [{path: /a, content: [hunter2]}]"),
		"content with a tag":               pool("files: [{path: /a, content: !!binary hunter2}]"),
		"content that is a number":         pool("files: [{path: /a, content: 0x1234}]"),
		"content given twice":              pool("files: [{path: /a, content: hunter2, content: hunter2}]"),
		"a command that is an object":      pool("commands: [curl: hunter2]"),
		"a command that is a number":       pool("commands: [0x1234]"),
		"a command with NUL characters":    pool(`commands: ["echo hunter2\0"]`),
		"commands that are a string":       pool("commands: echo hunter2"),
		"a file that is a string":          pool("files: [hunter2]"),
		"files that are a string":          pool("files: hunter2"),
		"files that are an object":         pool("files: {/a: hunter2}"),
		"content in the wrong place":       pool("content: hunter2"),
		"a misspelled field":               pool("files: [{path: /a, contents: hunter2}]"),
		"a configuration that is a string": addon("hunter2"),
		"a configuration that is a list":   addon("[hunter2]"),
		"a number in a configuration":      addon("{token: 0x1234}"),
		"a number deep in a configuration": addon("{a: [{token: 0x1234}]}"),
		"a tag in a configuration":         addon("{token: !!binary hunter2}"),
	}
	for name, edits := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := api.ReadCluster("f.yaml", edit(t, good, edits), options)
			require.NotEmpty(t, errs)
			require.NotContains(t, errs.Error(), secret)
			require.NotContains(t, errs.Error(), "0x1234")
		})
	}
}

func TestKindOf(t *testing.T) {
	require.Equal(t, "Cluster", api.KindOf([]byte(good)))
	require.Equal(t, "Release", api.KindOf([]byte(goodRelease)))
	for _, other := range []string{"", "[", "[]", "kind: [a]", "kind", "\xff"} {
		require.Empty(t, api.KindOf([]byte(other)))
	}
}
