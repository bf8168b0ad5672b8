package cli

// Files of fleets: checks of several files together, and facts from files.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

// fleetFiles are valid files by kind.
type fleetFiles struct {
	clusters []*api.Cluster
	releases map[string]rollout.Content
	rollouts map[string]*api.Rollout
	freezes  []api.Freeze
}

func sortFiles(all []manifest) fleetFiles {
	f := fleetFiles{releases: map[string]rollout.Content{}, rollouts: map[string]*api.Rollout{}}
	f.add(all)
	return f
}

// add adds files by kind.
func (f *fleetFiles) add(all []manifest) {
	for _, m := range all {
		switch {
		case m.cluster != nil:
			f.clusters = append(f.clusters, m.cluster)
		case m.release != nil:
			f.releases[m.name] = rollout.ContentOf(m.release, m.data)
		case m.rollout != nil:
			f.rollouts[m.name] = m.rollout
		case m.freeze != nil:
			f.freezes = append(f.freezes, *m.freeze)
		}
	}
}

// facts returns the facts that the specs of clusters imply: each cluster has the release of its spec. All clusters of a cell are in one
// region, so a cluster with an existing network is in that of the others.
func (f fleetFiles) facts() (all []rollout.Fact) {
	regions := map[string]bool{}
	for _, c := range f.clusters {
		all = append(all, rollout.FactOfSpec(c, f.releases[c.Spec.Release.Name]))
		regions[c.Region()] = true
	}
	delete(regions, "")
	if len(regions) != 1 {
		return all
	}
	for region := range regions {
		for i := range all {
			all[i].Region = region
		}
	}
	return all
}

// reportFleet prints the errors of files that depend on other files, and returns the files without such errors.
func reportFleet(w io.Writer, all []manifest) (valid []manifest) {
	files := sortFiles(all)
	for _, m := range all {
		var errs api.Errors
		switch {
		case m.rollout != nil:
			errs = files.checkRollout(m.rollout)
		case m.decision != nil && len(files.rollouts) > 0 && files.rollouts[m.decision.Spec.Rollout] == nil:
			errs = api.Errors{{Cause: field.Invalid(field.NewPath("spec", "rollout"), m.decision.Spec.Rollout, "there is no such rollout")}}
		}
		if len(errs) > 0 {
			fmt.Fprintln(w, errs.In(m.file, m.data))
			continue
		}
		valid = append(valid, m)
	}
	return valid
}

// checkRollout checks a rollout against the other files: the releases and the rollout that it names, and its selectors.
func (f fleetFiles) checkRollout(r *api.Rollout) (errs api.Errors) {
	if len(f.releases) > 0 {
		_, errs = rollout.SubjectOf(r, f.releases)
	}
	if r.Spec.Like != "" && len(f.rollouts) == 1 {
		return errs // its stages are in a file that was not given
	}
	full, wrong := rollout.WithStages(r, f.rollouts)
	if len(wrong) > 0 || len(f.clusters) == 0 {
		return append(errs, wrong...)
	}
	return append(errs, rollout.CheckSelectors(full, f.facts())...)
}

// readFleet reads files and folders of specs, releases, rollouts and freezes. Every error is returned. Other kinds are ignored.
func readFleet(sources []string) ([]manifest, error) {
	return readAll(sources, "name")
}

// readFacts reads a JSON list of facts strictly.
func readFacts(file string) ([]rollout.Fact, error) {
	body, err := readLarge(file)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var facts []rollout.Fact
	if err := decoder.Decode(&facts); err != nil {
		line := 1 + bytes.Count(body[:min(decoder.InputOffset(), int64(len(body)))], []byte("\n"))
		return nil, fmt.Errorf("%s:%d: not a list of facts: %s", file, line, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: not a list of facts: text follows the list; remove it", file)
	}
	for i, f := range facts {
		if !api.IsClusterName(f.Cluster) {
			return nil, fmt.Errorf("%s: fact %d: cluster: %q is not the name of a cluster: correct it", file, i+1, f.Cluster)
		}
	}
	if n := slices.IndexFunc(facts, func(f rollout.Fact) bool { return f.Nodes < 0 || f.NotReady < 0 }); n >= 0 {
		return nil, fmt.Errorf("%s: %s: nodes and notReady must not be negative: correct them", file, facts[n].Cluster)
	}
	return facts, nil
}
