package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/templates"
)

// standardInput is the file name that means standard input.
const standardInput = "-"

// readFile reads a spec. It stops early and fails if the spec is too large.
func readFile(file string) ([]byte, error) {
	return readUpTo(file, api.MaxFile, "; a spec has at most that many")
}

// maxFacts bounds a file of facts: 10,000 clusters have a few megabytes.
const maxFacts = 64 << 20

// readLarge reads a file of facts.
func readLarge(file string) ([]byte, error) { return readUpTo(file, maxFacts, "") }

// readUpTo reads a file or standard input. It stops and fails after a number of bytes. limit explains the number.
func readUpTo(file string, bytes int64, limit string) ([]byte, error) {
	opened := os.Stdin
	if file != standardInput {
		var err error
		if opened, err = os.Open(file); err != nil {
			return nil, err
		}
		defer opened.Close()
	}
	data, err := io.ReadAll(io.LimitReader(opened, bytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > bytes {
		return nil, fmt.Errorf("%s is too large: more than %d bytes%s", file, bytes, limit)
	}
	return data, nil
}

// options returns the options of validation for a file. A file must be named after its metadata.name. Standard input has no name.
func options(file string) api.Options {
	o := api.Options{TemplateVersions: templates.Versions(), Now: time.Now()}
	if file != standardInput {
		o.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	return o
}

// FileOptions returns the options of validation for a file, as drover validate uses them.
func FileOptions(file string) api.Options { return options(file) }

// ParseCluster decodes and validates the spec of a cluster.
func ParseCluster(file string, data []byte) (*api.Cluster, error) {
	cluster, errs := api.ReadCluster(file, data, options(file))
	return cluster, errs.Err()
}

// ReadCluster reads and validates the spec of a cluster.
func ReadCluster(file string) (*api.Cluster, []byte, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := ParseCluster(file, data)
	return cluster, data, err
}

// ReadRelease reads the release of a cluster from the given file or, without one, from the folder releases next to the spec's
// folder, as in the specs bucket.
func ReadRelease(file, spec string, cluster *api.Cluster) (*api.Release, []byte, error) {
	name := cluster.Spec.Release.Name
	if file == "" {
		file = filepath.Join(filepath.Dir(filepath.Dir(spec)), "releases", name+".yaml")
	}
	data, err := readFile(file)
	if os.IsNotExist(err) {
		return nil, nil, fmt.Errorf("%s names release %s, and there is no %s: say where it is with --release FILE", spec, name, file)
	}
	if err != nil {
		return nil, nil, err
	}
	release, errs := api.ReadRelease(file, data, options(file))
	return release, data, errs.Err()
}
