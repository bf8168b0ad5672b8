package main

import (
	"fmt"
	"io"

	"github.com/drover-run/drover/shared/api"
)

// warnings of a valid file; only a cluster's spec has any. Its release counts if it is among the files that were named beside it.
func warnings(file string, data []byte, beside []string) []string {
	if kind := api.KindOf(data); kind == api.KindRelease || kind == api.KindChannels {
		return nil
	}
	cluster, errs := api.ReadCluster(file, data, options(file))
	if errs != nil {
		return nil
	}
	for _, other := range beside {
		data, err := readFile(other)
		if err != nil || api.KindOf(data) != api.KindRelease {
			continue
		}
		if release, errs := api.ReadRelease(other, data, options(other)); errs == nil && release.Metadata.Name == cluster.Spec.Release.Name {
			return api.Warnings(cluster, release)
		}
	}
	return api.Warnings(cluster, nil)
}

// printWarnings prints each in a line of its own.
func printWarnings(w io.Writer, file string, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintf(w, "%s: warning: %s\n", file, warning)
	}
}
