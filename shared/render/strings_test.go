package render

// No string of a spec changes the structure of the output. The test replaces each string by strings that have a meaning in YAML, JSON,
// CloudFormation, MIME or bash, and decodes the output.

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// leaf is a value in a spec, with its path: fields by their JSON names, keys of maps marked with "(key)".
type leaf struct {
	path string
	get  func() reflect.Value
	set  func(reflect.Value)
}

// leaves returns every value of a cluster that is no struct, list or map, and every key.
func leaves(c *api.Cluster) []leaf {
	var list []leaf
	var walk func(path string, v reflect.Value, set func(reflect.Value))
	walk = func(path string, v reflect.Value, set func(reflect.Value)) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
				walk(strings.TrimPrefix(path+"."+name, "."), v.Field(i), v.Field(i).Set)
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i), v.Index(i).Set)
			}
		case reflect.Map:
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, key := range keys {
				value := v.MapIndex(key)
				list = append(list, leaf{path + "(key)", func() reflect.Value { return key }, func(to reflect.Value) {
					v.SetMapIndex(key, reflect.Value{})
					v.SetMapIndex(to, value)
				}})
				walk(path+"."+key.String(), value, func(to reflect.Value) { v.SetMapIndex(key, to) })
			}
		case reflect.Interface:
			if !v.IsNil() {
				walk(path, v.Elem(), set)
			}
		case reflect.Pointer:
			if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
				walk(path, v.Elem(), nil)
				return
			}
			fallthrough
		default:
			list = append(list, leaf{path, func() reflect.Value { return v }, set})
		}
	}
	walk("", reflect.ValueOf(c).Elem(), nil)
	return list
}

// nastyCluster is a full cluster whose files are where tests may write.
func nastyCluster(t testing.TB) Cluster {
	c := fullCluster()
	for i := range c.Spec.Pools[0].Files {
		c.Spec.Pools[0].Files[i].Path = path.Join(filesRoot, c.Spec.Pools[0].Files[i].Path)
	}
	return resolve(t, c)
}

// withString returns the cluster with another string in one place. Paths of files keep their root.
func withString(t testing.TB, i int, s string) (Cluster, string) {
	in := nastyCluster(t)
	l := leaves(in.Resolved)[i]
	if strings.HasSuffix(l.path, ".path") {
		s = filesRoot + "/" + s
	}
	l.set(reflect.ValueOf(s).Convert(l.get().Type()))
	return in, l.path
}

func stringLeaves(t testing.TB) []int {
	var found []int
	for i, l := range leaves(nastyCluster(t).Resolved) {
		if l.get().Kind() == reflect.String {
			found = append(found, i)
		}
	}
	require.Greater(t, len(found), 60)
	return found
}

// refusals returns, for a field that rejects some strings, the text that the error must contain.
func refusals(path string) string {
	switch {
	case strings.Contains(path, "kubeletFlags"), strings.Contains(path, "labels") && strings.HasPrefix(path, "spec.pools"),
		strings.Contains(path, "taints"), strings.HasPrefix(path, "spec.pools[0].name"), strings.HasPrefix(path, "spec.pools[1].name"):
		return "of the kubelet"
	}
	return ""
}

const placeholder = "zqPLACEHOLDERqz"

// same fails unless the second output is the first with another string in place of the placeholder.
func same(t *testing.T, path, s string, want, got *Output) {
	t.Helper()
	unordered := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
	expected, rendered := substitute(decode(t, want, got), placeholder, s), any(decode(t, got, want))
	if reflect.DeepEqual(expected, rendered) { // cmp takes much longer
		return
	}
	if diff := cmp.Diff(expected, rendered, unordered); diff != "" {
		t.Errorf("%q in %s changed more than itself (-expected +rendered):\n%s", s, path, diff)
	}
}

func TestStringsKeepTheStructure(t *testing.T) {
	all := strings.Join(nasty, "x")
	for _, i := range stringLeaves(t) {
		in, path := withString(t, i, placeholder)
		t.Run(path, func(t *testing.T) {
			want, err := Render(in)
			if err != nil {
				// The field has a grammar of its own, and rejects other strings.
				for _, s := range nasty {
					if in, _ := withString(t, i, s); s != "" {
						_, err := Render(in)
						require.Error(t, err, "%q", s)
					}
				}
				return
			}
			each, reason := []string{all}, refusals(path)
			if strings.HasSuffix(path, ".path") { // a file name's length is limited
				each = []string{strings.Join(nasty, "x/x")}
			}
			if reason != "" { // some are rejected
				each = slices.DeleteFunc(slices.Clone(nasty), func(s string) bool { return s == "" })
			}
			for _, s := range each {
				in, _ := withString(t, i, s)
				got, err := Render(in)
				if err != nil && reason != "" {
					require.ErrorContains(t, err, reason)
					continue
				}
				require.NoError(t, err)
				same(t, path, s, want, got)
			}
		})
	}
}

func FuzzRender(f *testing.F) {
	for i, s := range nasty {
		f.Add(uint(i), s)
	}
	fields := stringLeaves(f)
	f.Fuzz(func(t *testing.T, n uint, s string) {
		i := fields[n%uint(len(fields))]
		before, path := withString(t, i, placeholder)
		after, _ := withString(t, i, s)
		want, err := Render(before)
		if err != nil || s == "" || strings.HasSuffix(path, ".path") {
			return // a field with a grammar of its own, an absent field, or a file outside of filesRoot
		}
		if got, err := Render(after); err == nil {
			same(t, path, s, want, got)
		}
	})
}
