package cli

import (
	"fmt"
	"io"

	"github.com/drover-run/drover/shared/api"
)

// warnings returns the warnings about the spec of a cluster; other manifests have none. It considers the cluster's release if all
// contains it.
func warnings(m manifest, all []manifest) (lines []string) {
	if m.cluster == nil {
		if m.release != nil && m.release.NamesWorkloadRoles() {
			return []string{"the roles and policies of pods are not checked: an upload compares them with the settings of the cell"}
		}
		return nil
	}
	if m.cluster.NamesWorkloadRoles() {
		defer func() {
			lines = append(lines, fmt.Sprintf("the roles and policies of pods are not checked: `drover diff %s` and an upload compare them with "+
				"the settings of the cell", m.file))
		}()
	}
	for _, other := range all {
		if other.release != nil && other.name == m.cluster.Spec.Release.Name {
			return api.Warnings(m.cluster, other.release).Lines()
		}
	}
	return api.Warnings(m.cluster, nil).Lines()
}

// printWarnings prints one warning a line.
func printWarnings(w io.Writer, file string, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintf(w, "%s: warning: %s\n", file, warning)
	}
}
