package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/templates"
)

// readFile reads a spec, refusing one that is too large before it is read.
func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > api.MaxFile {
		return nil, fmt.Errorf("%s has %d bytes: at most %d are allowed", file, info.Size(), api.MaxFile)
	}
	return os.ReadFile(file)
}

// options of validation for a file: it must be called as its object.
func options(file string) api.Options {
	return api.Options{
		Name:             strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)),
		TemplateVersions: templates.Versions(),
		Now:              time.Now(),
	}
}

// readCluster reads and validates the spec of a cluster.
func readCluster(file string) (*api.Cluster, []byte, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, nil, err
	}
	cluster, errs := api.ReadCluster(file, data, options(file))
	return cluster, data, errs.Err()
}

// readRelease reads the release of a cluster: the file given, or the one beside the spec's folder, as in the specs bucket.
func readRelease(file, spec string, cluster *api.Cluster) (*api.Release, []byte, error) {
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
