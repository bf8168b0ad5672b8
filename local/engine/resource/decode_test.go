package resource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

type sample struct {
	Name     string
	Size     *int
	Enabled  *bool
	Tags     []Tag
	Document map[string]any
	Inner    *struct{ Count int }
}

func TestDecode(t *testing.T) {
	three, yes := 3, true
	for name, test := range map[string]struct {
		properties map[string]any
		want       sample
		err        string
	}{
		"typed values are taken as they are": {
			properties: map[string]any{"Name": "n", "Size": 3.0, "Enabled": true, "Tags": []any{map[string]any{"Key": "k", "Value": "v"}}},
			want:       sample{Name: "n", Size: &three, Enabled: &yes, Tags: []Tag{{"k", "v"}}},
		},
		"strings stand for numbers and booleans, numbers for strings": {
			properties: map[string]any{"Name": 7.0, "Size": "3", "Enabled": "true"},
			want:       sample{Name: "7", Size: &three, Enabled: &yes},
		},
		"an unknown key is named with its path": {
			properties: map[string]any{"Inner": map[string]any{"Cuont": 1.0}}, err: "#/Inner: extraneous key [Cuont] is not permitted",
		},
		"a wrong type is named with its path": {
			properties: map[string]any{"Tags": []any{"k=v"}}, err: "#/Tags/0: expected type: JSONObject, found: String",
		},
		"a fraction is no integer": {properties: map[string]any{"Size": 1.5}, err: "#/Size: expected type: Integer, found: Number"},
		"a word is no boolean": {
			properties: map[string]any{"Enabled": "yes"}, err: "#/Enabled: expected type: Boolean, found: String",
		},
		"a list where one value belongs is none": {
			properties: map[string]any{"Name": []any{"n"}}, err: "#/Name: expected type: String, found: JSONArray",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got sample
			err := Decode(test.properties, &got)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(test.want, got))
		})
	}
}
