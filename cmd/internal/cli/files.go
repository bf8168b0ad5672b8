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

// standardInput is the name of a file that stands for standard input.
const standardInput = "-"

// readFile reads a spec, refusing one that is too large before all of it is read.
func readFile(file string) ([]byte, error) {
	opened := os.Stdin
	if file != standardInput {
		var err error
		if opened, err = os.Open(file); err != nil {
			return nil, err
		}
		defer opened.Close()
	}
	data, err := io.ReadAll(io.LimitReader(opened, api.MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > api.MaxFile {
		return nil, fmt.Errorf("%s is too large: more than %d bytes; a spec has at most that many", file, api.MaxFile)
	}
	return data, nil
}

// options of validation for a file. Its object is named by metadata.name: a file must have the same name, and standard input has none.
func options(file string) api.Options {
	o := api.Options{TemplateVersions: templates.Versions(), Now: time.Now()}
	if file != standardInput {
		o.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	return o
}

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

// ReadRelease reads the release of a cluster: the file given, or the one beside the spec's folder, as in the specs bucket.
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
