package cli

// Files to check or upload: specs of clusters, releases and the channels, and the files of fleets.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// manifest is a valid file with one object.
type manifest struct {
	file string
	data []byte
	// name of the object, and the key of its upload.
	name, key string
	// The object in the file; nil for other kinds. All are nil for the channels.
	cluster  *api.Cluster
	release  *api.Release
	rollout  *api.Rollout
	decision *api.Decision
	freeze   *api.Freeze
}

// ofFleet reports whether the file is of a kind of fleets.
func (m manifest) ofFleet() bool { return m.rollout != nil || m.decision != nil || m.freeze != nil }

// readManifests reads and validates files, folders and standard input. The error joins the errors of all files.
// The result has freezes first, because they stop work. Then come releases, the channels and clusters, because a spec refers to a release
// or a channel; then rollouts, which select clusters, and decisions, which name rollouts.
func readManifests(sources []string) ([]manifest, error) {
	if len(sources) == 0 {
		return nil, errors.New("there is nothing to upload: give a FILE, or -f with a file, a folder or - for standard input")
	}
	all, err := readAll(sources, "upload")
	slices.SortStableFunc(all, func(a, b manifest) int { return a.order() - b.order() })
	return all, err
}

// readAll reads and validates files, folders and standard input. The error joins the errors of all files. use is what the caller does with
// the files: two files of one object are an error, because only one of them can be used.
func readAll(sources []string, use string) (all []manifest, err error) {
	var errs []error
	from := map[string]string{}
	for _, source := range sources {
		files, err := filesIn(source)
		if err != nil {
			errs = append(errs, err)
		}
		for _, file := range files {
			m, err := readManifest(file)
			switch {
			case err != nil:
				errs = append(errs, err)
			case from[m.key] == file: // named twice
			case from[m.key] != "":
				errs = append(errs, fmt.Errorf("%s and %s are both %s: %s one of them", from[m.key], file, m.key, use))
			default:
				from[m.key] = file
				all = append(all, m)
			}
		}
	}
	return all, errors.Join(errs...)
}

// filesIn lists the YAML files of a folder, sorted by name. It returns any other source unchanged.
func filesIn(source string) ([]string, error) {
	if source == standardInput {
		return []string{source}, nil
	}
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{source}, nil
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && filepath.Ext(entry.Name()) == ".yaml" {
			files = append(files, filepath.Join(source, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no .yaml file in %s: name a folder that has specs or releases directly in it", source)
	}
	return files, nil
}

// readManifest reads a file by its kind. A file without a kind is validated as the spec of a cluster.
func readManifest(file string) (manifest, error) {
	m := manifest{file: file}
	var err error
	if m.data, err = readFile(file); err != nil {
		return m, err
	}
	var errs api.Errors
	switch api.KindOf(m.data) {
	case api.KindRelease:
		if m.release, errs = api.ReadRelease(file, m.data, options(file)); m.release != nil {
			m.name = m.release.Metadata.Name
		}
	case api.KindChannels:
		m.name = api.ChannelsName
		o := options(file)
		if file == standardInput {
			o.Name = api.ChannelsName
		}
		_, errs = api.ReadChannels(file, m.data, o)
	case api.KindRollout:
		if m.rollout, errs = api.ReadRollout(file, m.data, options(file)); m.rollout != nil {
			m.name, m.key = m.rollout.Metadata.Name, names.Rollout(m.rollout.Metadata.Name)
		}
		return m, errs.Err()
	case api.KindDecision:
		if m.decision, errs = api.ReadDecision(file, m.data, options(file)); m.decision != nil {
			m.name, m.key = m.decision.Metadata.Name, names.Decision(m.decision.Spec.Rollout, m.decision.Metadata.Name)
		}
		return m, errs.Err()
	case api.KindFreeze:
		if m.freeze, errs = api.ReadFreeze(file, m.data, options(file)); m.freeze != nil {
			m.name, m.key = m.freeze.Metadata.Name, names.Freeze(m.freeze.Metadata.Name)
		}
		return m, errs.Err()
	default:
		if m.cluster, errs = api.ReadCluster(file, m.data, options(file)); m.cluster != nil {
			m.name, m.key = m.cluster.Metadata.Name, names.ClusterSpec(m.cluster.Metadata.Name)
			return m, nil
		}
	}
	m.key = names.ReleaseSpec(m.name)
	return m, errs.Err()
}

// order is the position of the manifest's kind in an upload.
func (m manifest) order() int {
	switch {
	case m.freeze != nil:
		return 0
	case m.rollout != nil:
		return 4
	case m.decision != nil:
		return 5
	case m.cluster != nil:
		return 3
	case m.name == api.ChannelsName:
		return 2
	}
	return 1
}
