package cli

import (
	"fmt"
	"io"

	"github.com/drover-run/drover/shared/api"
)

// warnings of a manifest; only the spec of a cluster has any. The cluster's release counts if it is among the manifests beside it.
func warnings(m manifest, beside []manifest) []string {
	if m.cluster == nil {
		return nil
	}
	for _, other := range beside {
		if other.release != nil && other.name == m.cluster.Spec.Release.Name {
			return api.Warnings(m.cluster, other.release)
		}
	}
	return api.Warnings(m.cluster, nil)
}

// printWarnings prints each in a line of its own.
func printWarnings(w io.Writer, file string, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintf(w, "%s: warning: %s\n", file, warning)
	}
}
