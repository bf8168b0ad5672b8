package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestProtectsDeletion(t *testing.T) {
	for spec, want := range map[string]bool{
		"spec: {deletionProtection: true}":                        true,
		"spec: {deletionProtection: false}":                       false,
		"spec: {unknown: 1, deletionProtection: false}":           false,
		"apiVersion: drover.run/v0\nspec: {pools: [{name: a}]}\n": true,
		"":                                  true,
		"spec: {deletionProtection: maybe}": true,
	} {
		require.Equal(t, want, api.ProtectsDeletion([]byte(spec)), spec)
	}
}
