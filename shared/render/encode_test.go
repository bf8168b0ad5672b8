package render

import (
	"encoding/json"
	"os/exec"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	kubernetesyaml "sigs.k8s.io/yaml"
)

// nasty strings each have a meaning in some language between a spec and a node.
var nasty = []string{
	`"`, `'`, `'\''; touch /tmp/owned; '`, "\\", `\"`, "two\nlines", "\nkey: value\n", "\r\n", "\t", " leading", "trailing ", "",
	"{{ .Secret }}", "{{", "}}", "{{/*", "${AWS::Region}", "${Vpc}", "!Ref Vpc", "!Sub x", "Fn::Sub", "&anchor", "*anchor", "<<: *x",
	"%TAG", "--- #", "...",
	"# comment", "yes", "null", "~", "0x1F", "1e3", "2020-01-01", "[a, b]", "{a: b}", "- a", "? a", "| a", "> a", "@a", "`a`",
	"$(touch /tmp/owned)", "`touch /tmp/owned`", "$HOME", "a;b", "a&&b", "a|b", "a>b", "EOF\n",
	"--drover\nContent-Type: text/x-shellscript\n\n#!/bin/bash\n", "--drover--",
	"\x7f\u0080\u0085\u009f", "\u2028\u2029\ufeff", "grüße 世界", "😀", "\u0001\u001b[31m", "<script>&amp;", "-n", "%s%n", "\\u0041",
	"\\x41", "\ufffd",
}

func TestYAMLRoundTrip(t *testing.T) {
	for _, s := range nasty {
		encoded, err := encodeYAML(s)
		require.NoError(t, err)
		var got struct{ A, C string }
		require.NoError(t, yaml.Unmarshal([]byte("{a: "+encoded+", c: "+encoded+"}"), &got), encoded)
		require.Equal(t, s, got.A)
		require.Equal(t, s, got.C)
		require.NotRegexp(t, `[^ -~]`, encoded, "ASCII in one line")
	}
}

func TestJSONRoundTrip(t *testing.T) {
	value := map[string]any{"list": []any{nil, true, 1.5, float64(1 << 40), "x"}, "empty": map[string]any{}, "none": []any{}}
	for _, s := range nasty {
		value[s] = s
	}
	encoded, err := encodeJSONText(value)
	require.NoError(t, err)
	var text string
	require.NoError(t, yaml.Unmarshal([]byte(encoded), &text))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, value, got)
}

func TestFlowRoundTrip(t *testing.T) {
	value := map[string]any{"list": []any{nil, true, 1.5, 7, "x", "true", "7", "~"}, "empty": map[string]any{}, "none": []any{}}
	for _, s := range nasty {
		value[s] = s
	}
	encoded, err := encodeFlow(value)
	require.NoError(t, err)
	require.NotRegexp(t, `[^ -~]`, encoded, "ASCII in one line")
	for name, unmarshal := range map[string]func([]byte, any) error{
		"YAML 1.2": yaml.Unmarshal, "as nodeadm reads it": func(body []byte, out any) error { return kubernetesyaml.Unmarshal(body, out) },
	} {
		var got map[string]any
		require.NoError(t, unmarshal([]byte("config:\n  a: "+encoded+"\n"), &got), name)
		want, err := json.Marshal(value)
		require.NoError(t, err)
		have, err := json.Marshal(at(t, got, "config", "a"))
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(have), name)
	}
	_, err = encodeFlow(map[string]any{"a": func() {}})
	require.ErrorContains(t, err, "no JSON encoding")
	_, err = encodeFlow([]any{"\xff"})
	require.ErrorContains(t, err, "not UTF-8")
}

func TestShellRoundTrip(t *testing.T) {
	for _, s := range nasty {
		word, err := encodeShell(s)
		require.NoError(t, err)
		got, err := exec.Command("bash", "-c", "printf %s "+word).Output()
		require.NoError(t, err)
		require.Equal(t, s, string(got))
	}
}

func TestEncodersReject(t *testing.T) {
	tests := map[string]struct {
		encode func() (string, error)
		says   string
	}{
		"dynamic references in YAML":   {func() (string, error) { return encodeYAML("x{{resolve:ssm:/secret}}") }, "{{resolve:"},
		"dynamic references in a list": {func() (string, error) { return encodeYAML([]string{"{{resolve:ssm:/secret}}"}) }, "{{resolve:"},
		"dynamic references in tags":   {func() (string, error) { return encodeYAML([]tag{{"{{resolve:ssm:/secret}}", ""}}) }, "{{resolve:"},
		"dynamic references in JSON": {
			func() (string, error) { return encodeJSONText(map[string]any{"a": []any{"{{resolve:ssm:/secret}}"}}) }, "{{resolve:",
		},
		"text that is not UTF-8":          {func() (string, error) { return encodeYAML("a\xff") }, "not UTF-8"},
		"JSON keys that are not UTF-8":    {func() (string, error) { return encodeJSONText(map[string]any{"\xff": 1}) }, "not UTF-8"},
		"types that YAML has no rule for": {func() (string, error) { return encodeYAML(struct{}{}) }, "no YAML encoding"},
		"types that JSON has no rule for": {func() (string, error) { return encodeJSONText([]any{func() {}}) }, "no JSON encoding"},
		"NUL in a shell word":             {func() (string, error) { return encodeShell("a\x00b") }, "NUL"},
		"punctuation in a logical id":     {func() (string, error) { return encodeID("Vpc: {}") }, "only letters and digits"},
		"a parameter that is no name":     {func() (string, error) { return encodeRef("A\x00B") }, "only letters and digits"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := tt.encode()
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestParseSetRejects(t *testing.T) {
	tests := map[string]struct{ file, body, says string }{
		"with a plain interpolation":            {"a.yaml.tmpl", `x: {{ .X }}`, "a.yaml.tmpl:1"},
		"with one in a branch":                  {"a.yaml.tmpl", "{{ if .X }}\n{{ else }}\n{{ .X }}{{ end }}", "a.yaml.tmpl:3"},
		"with one in a loop":                    {"a.yaml.tmpl", `{{ range .X }}{{ . }}{{ end }}`, "not encoded"},
		"with one in a with":                    {"a.yaml.tmpl", `{{ with .X }}{{ else }}{{ .Y }}{{ end }}`, "not encoded"},
		"with a variable":                       {"a.yaml.tmpl", `{{ $x := yaml .X }}{{ $x }}`, "not encoded"},
		"that format what was encoded":          {"a.yaml.tmpl", `{{ yaml .X | printf "%s" }}`, "not encoded"},
		"with an encoder of another language":   {"a.yaml.tmpl", `{{ shell .X }}`, "not encoded"},
		"with YAML in a script":                 {"a.sh.tmpl", `{{ yaml .X }}`, "not encoded"},
		"with an interpolation in the envelope": {"a.mime.tmpl", `{{ shell .X }}`, "not encoded"},
		"with one in a block of its own":        {"a.yaml.tmpl", `{{ define "b.yaml.tmpl" }}{{ .X }}{{ end }}`, "b.yaml.tmpl"},
		"of an unknown language":                {"a.tmpl", `x`, "language"},
		"that call an unknown function":         {"a.yaml.tmpl", `{{ env "HOME" }}`, `"env" not defined`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseSet(fstest.MapFS{"v9/" + tt.file: {Data: []byte(tt.body)}}, "v9")
			require.ErrorContains(t, err, tt.says)
		})
	}
	t.Run("accepts encoded interpolations", func(t *testing.T) {
		_, err := parseSet(fstest.MapFS{"v9/a.yaml.tmpl": {Data: []byte(
			`{{- /* why */ -}}{{ $x := .X }}{{ range .L }}{{ yaml . }}{{ break }}{{ else }}{{ .X | yaml }}{{ end }}{{ template "a.yaml.tmpl" . }}`,
		)}}, "v9")
		require.NoError(t, err)
	})
}
