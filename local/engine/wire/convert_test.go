package wire

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"
)

// Package local/testkit/harness compares results with those that the SDK decodes. A result that would lose a member is
// not converted.
func TestResultAs(t *testing.T) {
	type inner struct{ Name *string }
	type client struct {
		ID       *string
		When     *time.Time
		Sizes    []int32
		Inner    *inner
		Unsent   *string
		Metadata any
	}
	at := time.Date(2000, 1, 1, 0, 0, 0, 123_999_999, time.FixedZone("", 3600))
	for name, c := range map[string]struct {
		result any
		want   *client
	}{
		"every member by its name": {
			struct {
				Identifier string `json:"id" xml:"id"`
				When       time.Time
				Sizes      []int
				Inner      struct{ Name string }
			}{"x", at, []int{1, 2}, struct{ Name string }{"y"}},
			&client{ID: aws.String("x"), When: aws.Time(at.UTC().Truncate(time.Millisecond)), Sizes: []int32{1, 2}, Inner: &inner{aws.String("y")}},
		},
		"omits zero values but not an empty list": {
			struct {
				ID    string `json:",omitempty" xml:",omitempty"`
				When  time.Time
				Sizes []int
			}{}, &client{Sizes: []int32{}},
		},
		"nothing":                              {nil, &client{}},
		"a member that the client lacks":       {struct{ ID, Other string }{}, nil},
		"a member of another type":             {struct{ When string }{"2000-01-01"}, nil},
		"a member that the client sets itself": {struct{ Metadata string }{}, nil},
		"a member of unknown type":             {struct{ ID json.RawMessage }{}, nil},
		"a map":                                {map[string]any{}, nil},
	} {
		for _, format := range []Protocol{Query, JSON11} {
			got, ok := ResultAs(c.result, format, reflect.TypeFor[*client]())
			require.Equal(t, c.want != nil, ok, name)
			if ok {
				require.Equal(t, c.want, got, name)
			}
		}
	}
	_, ok := ResultAs(nil, CBOR, reflect.TypeFor[*client]())
	require.False(t, ok)
}
