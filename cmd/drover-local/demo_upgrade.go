package main

// The demo ends with an upgrade by one minor version: the spec names the next release, and the schedule starts it when it may.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// advance is how long before it starts the demo's upgrade is uploaded.
const advance = 3 * time.Second

// upgrade uploads the next release and the spec that names it, has the schedule start the upgrade, and waits until it is done. It fails
// if a budget was broken, or anything is left of the version before.
func (l load) upgrade(ctx context.Context, out io.Writer, show *timeline, a *account.Account, c *cli.Cell, d demo, o localOptions) error {
	name := d.cluster.Metadata.Name
	next, body, err := cli.ReadRelease(o.upgrade, o.demo, d.cluster)
	if err != nil {
		return err
	}
	_, spec, err := withRelease(o.demo, d.cluster, d.spec, next.Metadata.Name)
	if err != nil {
		return err
	}
	at := time.Now().Add(advance).UTC().Truncate(time.Second)
	spec = fmt.Appendf(spec, "  upgrade:\n    window: {start: \"00:00\", duration: 24h}\n    notBefore: %q\n", at.Format(time.RFC3339))
	if _, err := c.Specs.Put(ctx, names.ReleaseSpec(next.Metadata.Name), body); err != nil {
		return err
	}
	if _, err := c.Specs.Put(ctx, names.ClusterSpec(name), spec); err != nil {
		return err
	}
	fmt.Fprintln(out)
	show.line("uploaded", name, "release %s, to be upgraded to at %s", next.Metadata.Name, at.Format(time.TimeOnly))
	if err := l.waitForScheduled(ctx, show, a, c, name, at); err != nil {
		return err
	}
	u, err := awaitUpgrade(ctx, c, name)
	if err != nil {
		return err
	}
	show.Wait("the last drains")
	if err := a.Settle(ctx); err != nil {
		return err
	}
	if err := l.healthy(ctx); err != nil {
		return err
	}
	show.Wait("")
	show.line("upgraded", name, "it is at %s", cli.ReleaseLabel(u.To, u.ToVersion))
	fmt.Fprintln(out)
	cli.PrintUpgrade(out, u)
	if err := l.printVersions(ctx, out, c, name, next); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nWhat the watcher saw:\n\n")
	return printDisruption(out, l.watcher.Healthy)
}

// waitForScheduled waits for the scheduled upgrade in the status, and then runs the sweep, whose schedule is not accelerated here.
func (l load) waitForScheduled(ctx context.Context, show *timeline, a *account.Account, c *cli.Cell, name string, at time.Time) error {
	show.Wait("the time of the upgrade")
	if _, err := awaitStatus(ctx, c, name, func(s *status.Status) bool {
		return s.Upgrade != nil && s.Upgrade.Phase == status.UpgradeScheduled && s.Phase == status.Ready
	}); err != nil {
		return err
	}
	show.line("status", name, "to be upgraded at %s", at.Format(time.TimeOnly))
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
		return ctx.Err()
	}
	show.line("schedule", "", "drover-sweep, which runs every two minutes, runs now")
	return a.Scheduler.Fire(ctx, "drover", "drover-sweep")
}

// awaitUpgrade waits until the upgrade is over. One that is not done is an error that names the checks.
func awaitUpgrade(ctx context.Context, c *cli.Cell, name string) (*status.Upgrade, error) {
	s, err := awaitStatus(ctx, c, name, func(s *status.Status) bool { return s.Upgrade != nil && s.Upgrade.Ended != nil })
	if err != nil {
		return nil, err
	}
	if s.Upgrade.Phase != string(upgrade.Done) {
		return nil, fmt.Errorf("the upgrade of %s is %s: %s %q", name, s.Upgrade.Phase, s.Upgrade.Message, cli.CheckLines(s.Upgrade.Checks))
	}
	return s.Upgrade, nil
}

func awaitStatus(ctx context.Context, c *cli.Cell, name string, holds func(*status.Status) bool) (*status.Status, error) {
	for {
		cluster, err := c.State.Status(ctx, name)
		if err != nil {
			return nil, err
		}
		if holds(&cluster.Status) {
			return &cluster.Status, nil
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", name, ctx.Err())
		}
	}
}

// printVersions prints the rows of a cluster in the table of drover versions, and fails if anything is not at the release.
func (l load) printVersions(ctx context.Context, out io.Writer, c *cli.Cell, cluster string, release *api.Release) error {
	fleet, err := cli.ReadFleet(ctx, c)
	if err != nil {
		return err
	}
	fleet = slices.DeleteFunc(fleet, func(v cli.ClusterVersions) bool { return v.Cluster != cluster }) // others may be created now
	fmt.Fprintln(out)
	cli.PrintVersions(out, fleet)
	for _, v := range fleet {
		if v.Release.Current != release.Metadata.Name || v.ControlPlane.Current != release.Spec.KubernetesVersion {
			return fmt.Errorf("%s is at release %s and Kubernetes %s", v.Cluster, v.Release.Current, v.ControlPlane.Current)
		}
		for _, pool := range v.Pools {
			if pool.KubernetesVersion != release.Spec.KubernetesVersion {
				return fmt.Errorf("pool %s of %s is at Kubernetes %s", pool.Name, v.Cluster, pool.KubernetesVersion)
			}
		}
		for _, addon := range v.Addons {
			i := slices.IndexFunc(release.Spec.Addons, func(a api.Addon) bool { return a.Name == addon.Name })
			if i < 0 {
				return fmt.Errorf("add-on %s of %s is not in release %s", addon.Name, v.Cluster, release.Metadata.Name)
			}
			if want := release.Spec.Addons[i].Version; addon.Current != want {
				return fmt.Errorf("add-on %s of %s is at %s, and the release at %s", addon.Name, v.Cluster, addon.Current, want)
			}
		}
	}
	return nil
}

// withRelease is the spec with another release.
func withRelease(file string, cluster *api.Cluster, spec []byte, release string) (*api.Cluster, []byte, error) {
	line := func(name string) []byte { return fmt.Appendf(nil, "\n  release:\n    name: %q\n", name) }
	changed := bytes.Replace(spec, line(cluster.Spec.Release.Name), line(release), 1)
	read, err := cli.ParseCluster(file, changed)
	if err != nil {
		return nil, nil, err
	}
	if read.Spec.Release.Name != release {
		return nil, nil, fmt.Errorf("%s: its release is not written on a line of its own, as name: %q", file, cluster.Spec.Release.Name)
	}
	return read, changed, nil
}
