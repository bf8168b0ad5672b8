package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// FuzzDecode checks that decoding never panics, that each error is one line with a position in the file, and that a decoded object is
// unchanged after encoding and decoding.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"../../examples/clusters/*.yaml", "../../examples/releases/*.yaml", "../../examples/rollouts/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Add([]byte(good))
	f.Add([]byte(goodRelease))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? {a: b}\n: - |\n  x\n--- !!binary <<: ~"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cluster, clusterErrs := api.ReadCluster("f.yaml", data, api.Options{Name: "demo"})
		release, releaseErrs := api.ReadRelease("f.yaml", data, api.Options{})
		channels, channelsErrs := api.ReadChannels("f.yaml", data, api.Options{})
		rollout, rolloutErrs := api.ReadRollout("f.yaml", data, api.Options{})
		_, decisionErrs := api.ReadDecision("f.yaml", data, api.Options{})
		_, freezeErrs := api.ReadFreeze("f.yaml", data, api.Options{})
		lastLine := 1 // as in YAML 1.1
		for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
			lastLine += bytes.Count(data, []byte(end))
		}
		for _, e := range slices.Concat(clusterErrs, releaseErrs, channelsErrs, rolloutErrs, decisionErrs, freezeErrs) {
			require.NotContains(t, e.Error(), "\n")
			require.Positive(t, e.Line)
			require.LessOrEqual(t, e.Line, lastLine, e.Error())
		}
		if decoded, errs := api.DecodeCluster("f.yaml", data); errs.Err() == nil {
			api.Validate(decoded, api.Options{})
			encoded := encode(t, decoded)
			again, errs := api.DecodeCluster("again.yaml", encoded)
			require.NoError(t, errs.Err(), "%s", encoded)
			require.JSONEq(t, string(encoded), string(encode(t, again)))
		} else {
			require.Nil(t, cluster)
		}
		if decoded, errs := api.DecodeRelease("f.yaml", data); errs.Err() == nil {
			encoded := encode(t, decoded)
			again, errs := api.DecodeRelease("again.yaml", encoded)
			require.NoError(t, errs.Err(), "%s", encoded)
			require.Empty(t, cmp.Diff(string(encoded), string(encode(t, again))))
		} else {
			require.Nil(t, release)
		}
		if rollout != nil {
			full := rollout.Defaulted()
			encoded := encode(t, full)
			again, errs := api.ReadRollout("again.yaml", encoded, api.Options{})
			require.NoError(t, errs.Err(), "%s", encoded)
			require.Empty(t, cmp.Diff(string(encoded), string(encode(t, again.Defaulted()))))
		}
		if decoded, errs := api.DecodeChannels("f.yaml", data); errs.Err() == nil {
			encoded := encode(t, decoded)
			again, errs := api.DecodeChannels("again.yaml", encoded)
			require.NoError(t, errs.Err(), "%s", encoded)
			require.Empty(t, cmp.Diff(string(encoded), string(encode(t, again))))
		} else {
			require.Nil(t, channels)
		}
	})
}

// encode writes YAML as JSON in ASCII. Beyond ASCII the two differ.
func encode(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	var ascii bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			ascii.WriteRune(r)
		default:
			fmt.Fprintf(&ascii, `\U%08x`, r)
		}
	}
	return ascii.Bytes()
}

// FuzzStrings checks that every string of a spec is the same string in Go.
func FuzzStrings(f *testing.F) {
	for _, s := range []string{
		"", " a ", "a\n\n  b\t\r\n", `"'\`, "{{ .X }}", "${AWS::Region}", "!Ref x", "&a *b", "$(reboot); `id`", "~", "<<",
		"\x00\x7f\u0085\u2028\ufeff😀",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			t.Skip("YAML is UTF-8")
		}
		cluster := readCluster(t, edit(t, good, pool("files: [{path: /a, content: ''}]", "commands: [x]")))
		cluster.Spec.Pools[0].Files[0].Content = s
		again, errs := api.DecodeCluster("again.yaml", encode(t, cluster))
		require.NoError(t, errs.Err())
		require.Empty(t, cmp.Diff(cluster.Spec.Pools, again.Spec.Pools))
	})
}
