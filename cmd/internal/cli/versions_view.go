package cli

// The tables of versions: a row for each cluster, or for each part of each cluster.

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli/view"
)

// versions shows a row for each cluster.
func (d *display) versions(fleet []ClusterVersions) {
	table := &view.Table{Columns: []view.Column{
		{Title: "CLUSTER"}, {
			Title: "RELEASE", Min: 10,
		}, {Title: "KUBERNETES"}, {Title: "CHANGES", Min: 12, Wrap: true}, {Title: "DUE", Min: 10, Wrap: true},
		{Title: "SUPPORTED UNTIL"},
	}}
	for _, v := range fleet {
		table.Add(view.Text(v.Cluster), view.Text(v.Release.arrow()), view.Text(v.ControlPlane.arrow()), view.Text(cmp.Or(v.changes(), "-")),
			view.Text(cmp.Or(relativeTimes(v.Due, d.now), "-")), view.Text(cmp.Or(v.StandardSupportEnds, "-")))
	}
	table.Write(d.out, d.width, d.color)
}

// arrow returns "1.36 → 1.37", or the current version if no change is due.
func (m moves) arrow() string {
	if m.Target == "" {
		return cmp.Or(m.Current, "-")
	}
	return cmp.Or(m.Current, "-") + " → " + m.Target
}

// arrow includes the deployed version if EKS runs a different version.
func (m planeMove) arrow() string {
	if m.Deployed != "" {
		m.Current = cmp.Or(m.Current, "-") + " (deployed with " + m.Deployed + ")"
	}
	return m.moves.arrow()
}

// changes counts the pools and add-ons that change: "2 pools, 3 add-ons".
func (v ClusterVersions) changes() string {
	pools, addons := 0, 0
	for _, p := range v.Pools {
		if p.Target != "" {
			pools++
		}
	}
	for _, a := range v.Addons {
		if a.Target != "" {
			addons++
		}
	}
	var parts []string
	if pools > 0 {
		parts = append(parts, view.Count(pools, "pool"))
	}
	if addons > 0 {
		parts = append(parts, view.Count(addons, "add-on"))
	}
	return strings.Join(parts, ", ")
}

// PrintVersions prints the versions of clusters in the format of drover versions -o wide.
func PrintVersions(w io.Writer, fleet []ClusterVersions) { newDisplay(w, false).parts(fleet) }

// parts shows a row for each part of each cluster.
func (d *display) parts(fleet []ClusterVersions) {
	table := &view.Table{Columns: []view.Column{
		{Title: "CLUSTER"}, {
			Title: "PART", Min: 22, Wrap: true,
		}, {Title: "CURRENT", Min: 18, Wrap: true}, {Title: "TARGET", Min: 10, Wrap: true}, {Title: "DUE", Min: 10, Wrap: true},
		{Title: "SUPPORTED UNTIL", Min: 12, Wrap: true},
	}}
	row := func(v ClusterVersions, part string, m moves, due, until string) {
		table.Add(view.Text(v.Cluster), view.Text(part), view.Text(cmp.Or(m.Current, "-")), view.Text(cmp.Or(m.Target, "-")),
			view.Text(cmp.Or(relativeTimes(due, d.now), "-")), view.Text(cmp.Or(until, "-")))
	}
	for _, v := range fleet {
		row(v, "release", v.Release, v.Due, "")
		until := v.StandardSupportEnds
		if until != "" && v.ExtendedSupportEnds != "" {
			until += ", extended " + v.ExtendedSupportEnds
		}
		if v.ControlPlane.Deployed != "" {
			v.ControlPlane.Current = cmp.Or(v.ControlPlane.Current, "-") + " (deployed with " + v.ControlPlane.Deployed + ")"
		}
		row(v, "control plane", v.ControlPlane.moves, "", until)
		for _, p := range v.Pools {
			if p.KubernetesVersion != "" {
				p.Current = fmt.Sprintf("%s (%s)", p.KubernetesVersion, p.Current)
			}
			row(v, "pool "+p.Name, p.moves, "", "")
		}
		for _, a := range v.Addons {
			row(v, "add-on "+a.Name, a.moves, "", "")
		}
	}
	table.Write(d.out, d.width, d.color)
}

// timestamp matches an RFC 3339 time in UTC.
var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// relativeTimes replaces each time stamp with a relative time, such as "in 3d".
func relativeTimes(text string, now time.Time) string {
	return timestamp.ReplaceAllStringFunc(text, func(stamp string) string {
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			return stamp
		}
		return view.Relative(now, at)
	})
}
