package templates

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionsAreFoldersOfTemplates(t *testing.T) {
	require.Equal(t, []string{"v1"}, Versions())
	for _, version := range Versions() {
		found, err := fs.Glob(FS(), version+"/*.tmpl")
		require.NoError(t, err)
		require.NotEmpty(t, found)
	}
}
