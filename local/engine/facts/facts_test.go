package facts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEntries(t *testing.T) {
	seen := map[Fact]bool{}
	for _, e := range All() {
		require.False(t, seen[e.Fact], e.Fact)
		seen[e.Fact] = true
		require.True(t, strings.HasSuffix(e.Question, "?"), e.Question)
		require.NotEqual(t, e.Strict, e.Other)
		require.True(t, strings.HasPrefix(e.Page, "https://docs.aws.amazon.com/"), e.Page)
		require.NotEmpty(t, e.Trial)
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
	for _, e := range All() {
		require.True(t, all.Other(e.Fact), e.Fact)
	}
	_, err = Parse("key-tags,key-color")
	require.ErrorContains(t, err, `"key-color" is no open fact: give all or some of key-tags,`)
	require.False(t, Readings(nil).Other(KeyTags), "no readings are strict")
}
