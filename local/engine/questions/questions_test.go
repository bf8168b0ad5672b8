package questions

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuestions(t *testing.T) {
	seen := map[Name]bool{}
	for _, q := range All() {
		require.False(t, seen[q.Name], q.Name)
		seen[q.Name] = true
		require.True(t, strings.HasSuffix(q.Text, "?"), q.Text)
		require.NotEqual(t, q.Strict, q.Other)
		require.True(t, strings.HasPrefix(q.Page, "https://docs.aws.amazon.com/"), q.Page)
		require.NotEmpty(t, q.Trial)
	}
}

func TestParse(t *testing.T) {
	none, err := Parse("")
	require.NoError(t, err)
	require.False(t, none.Other(KeyTags))
	some, err := Parse("key-grants,key-tags")
	require.NoError(t, err)
	require.True(t, some.Other(KeyTags))
	require.False(t, some.Other(TerminateHooks))
	require.Equal(t, "key-grants,key-tags", some.String())
	all, err := Parse("all")
	require.NoError(t, err)
	for _, q := range All() {
		require.True(t, all.Other(q.Name), q.Name)
	}
	_, err = Parse("key-tags,key-color")
	require.ErrorContains(t, err, `"key-color" is no open question: give all or some of key-tags,`)
	require.False(t, Readings(nil).Other(KeyTags), "no readings are strict")
}
