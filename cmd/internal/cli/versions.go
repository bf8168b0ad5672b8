package cli

// Current and target versions of clusters, and the end of their support.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func versionsCommand() *cobra.Command {
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "versions",
		Short: "Show what every cluster runs, what it changes to, and when support ends",
		Long: `Shows a row for each cluster: its release and Kubernetes version, what they change to and when, how many of its pools and add-ons
change with them, and when standard support of its Kubernetes version ends. -o wide shows a row for each part.

A cluster whose newest spec cannot be read is shown by its last good one.`,
		Example: `  drover versions
  drover versions -o wide
  drover versions -o json`,
		Annotations:       ExitCodes("the versions are printed", "an error"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			fleet, err := ReadFleet(cmd.Context(), c)
			if err != nil {
				return err
			}
			if output.forMachines() {
				return output.print(cmd.OutOrStdout(), fleet)
			}
			d := newDisplay(cmd.OutOrStdout(), false)
			if output.format == formatWide {
				d.parts(fleet)
			} else {
				d.versions(fleet)
			}
			return nil
		},
	}
	output = addOutputFlag(cmd, formatWide)
	return cmd
}

// formatWide is the output format with a row for each part.
const formatWide = "wide"

// ClusterVersions has the current and target versions of a cluster. A target is empty if no change is due.
type ClusterVersions struct {
	Cluster string `json:"cluster"`
	Phase   string `json:"phase"`
	Channel string `json:"channel"`
	Release moves  `json:"release"`
	// ControlPlane has Kubernetes versions. StandardSupportEnds and ExtendedSupportEnds are dates for the current version.
	ControlPlane        planeMove      `json:"controlPlane"`
	StandardSupportEnds string         `json:"standardSupportEnds,omitempty"`
	ExtendedSupportEnds string         `json:"extendedSupportEnds,omitempty"`
	Pools               []poolMove     `json:"pools,omitempty"`
	Addons              []namedVersion `json:"addons,omitempty"`
	// Upgrade is the upgrade in flight, the scheduled upgrade, or the last upgrade.
	Upgrade *status.Upgrade `json:"upgrade,omitempty"`
	// NextUpgrade is the upgrade that waits for Upgrade.
	NextUpgrade *status.Upgrade `json:"nextUpgrade,omitempty"`
	// Due describes when the change to the target starts. Its times are RFC 3339, in UTC.
	Due string `json:"due,omitempty"`
}

type moves struct {
	Current string `json:"current"`
	Target  string `json:"target,omitempty"`
}

// planeMove is the change of the control plane that EKS runs. Deployed is the version in the stack, if it differs: EKS or an
// external change updated the control plane.
type planeMove struct {
	moves
	Deployed string `json:"deployed,omitempty"`
}

// poolMove is the change of a pool's image. KubernetesVersion is the kubelet's version in the name of the current image, if any.
type poolMove struct {
	namedVersion
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
}

type namedVersion struct {
	Name string `json:"name"`
	moves
}

// to sets the target if it differs from the current version.
func (m *moves) to(target string) {
	if target != m.Current {
		m.Target = target
	}
}

// to sets the target unless both the stack and the control plane have that version.
func (m *planeMove) to(target string) {
	if m.moves.to(target); m.Deployed != "" && m.Deployed != target {
		m.Target = target
	}
}

// fleetReader reads the data that all clusters share once.
type fleetReader struct {
	c        *Cell
	stacks   map[string]stack.Deployed
	eks      *eks.Reader
	catalog  map[string]preflight.Version
	channels *api.Channels
	releases map[string]*api.Release
}

func ReadFleet(ctx context.Context, c *Cell) ([]ClusterVersions, error) {
	statuses, err := ReadStatuses(ctx, c)
	if err != nil {
		return nil, err
	}
	fleet := []ClusterVersions{}
	statuses = slices.DeleteFunc(statuses, func(s *status.Cluster) bool { return s.Status.Phase == status.Deleted })
	if len(statuses) == 0 {
		return fleet, nil
	}
	r := &fleetReader{
		c: c, eks: eks.New(awseks.NewFromConfig(c.cfg)), catalog: map[string]preflight.Version{}, releases: map[string]*api.Release{},
	}
	if r.stacks, err = cloudformation.New(awscloudformation.NewFromConfig(c.cfg), nil, "").All(ctx); err != nil {
		return nil, err
	}
	catalog, err := r.eks.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range catalog {
		r.catalog[v.Version] = v
	}
	if object, err := c.Specs.Get(ctx, names.ReleaseSpec(api.ChannelsName), api.MaxFile); err == nil {
		r.channels, _ = api.ReadChannels("", object.Body, api.Options{})
	} else if !isUnusable(err) {
		return nil, err
	}
	for _, s := range statuses {
		v, err := r.cluster(ctx, s)
		if err != nil {
			return nil, err
		}
		fleet = append(fleet, v)
	}
	return fleet, r.readKubelets(ctx, fleet)
}

func (r *fleetReader) cluster(ctx context.Context, s *status.Cluster) (ClusterVersions, error) {
	name := s.Metadata.Name
	v := ClusterVersions{
		Cluster: name, Phase: string(s.Status.Phase), Channel: string(api.ChannelNone), Upgrade: s.Status.Upgrade,
		NextUpgrade: s.Status.NextUpgrade,
	}
	deployed := map[string]stack.Deployed{}
	for full, stack := range r.stacks {
		if cluster, _, ok := names.SplitStack(full); ok && cluster == name {
			deployed[stack.Name] = stack
		}
	}
	v.Release.Current, _ = plan.Pin(deployed)
	if err := r.readControlPlane(ctx, &v, plan.KubernetesVersion(deployed)); err != nil {
		return v, err
	}
	if version, ok := r.catalog[v.ControlPlane.Current]; ok {
		v.StandardSupportEnds, v.ExtendedSupportEnds = dayOf(version.EndOfStandard), dayOf(version.EndOfExtended)
	}
	images := plan.Images(deployed)
	for _, pool := range slices.Sorted(maps.Keys(images)) {
		v.Pools = append(v.Pools, poolMove{namedVersion: namedVersion{pool, moves{Current: images[pool]}}})
	}
	spec, err := r.readSpec(ctx, s)
	if err != nil || spec == nil {
		return v, err
	}
	if c := spec.Spec.Upgrade.Channel; c != "" {
		v.Channel = string(c)
	}
	return v, r.setParts(ctx, &v, spec, deployed)
}

// readSpec returns the newest spec of a cluster. If that spec is absent or unusable, it returns the last good spec, or nil. The deployed
// state does not depend on an upload that drover rejected.
func (r *fleetReader) readSpec(ctx context.Context, s *status.Cluster) (*api.Cluster, error) {
	key := names.ClusterSpec(s.Metadata.Name)
	for _, version := range []string{"", s.Status.GoodVersion} {
		read := func() (store.Object, error) { return r.c.Specs.Get(ctx, key, api.MaxFile) }
		if version != "" {
			read = func() (store.Object, error) { return r.c.Specs.GetVersion(ctx, key, version, api.MaxFile) }
		}
		object, err := read()
		if err != nil && !isUnusable(err) {
			return nil, err
		}
		if err != nil {
			continue
		}
		if spec, errs := api.ReadCluster("", object.Body, api.Options{}); errs == nil {
			return spec, nil
		}
	}
	return nil, nil
}

// isUnusable reports whether an object is absent or too large. The table still shows the other clusters.
func isUnusable(err error) bool { return specs.Missing(specs.Explain(err)) }

// readControlPlane reads the version of a deployed control plane from EKS.
func (r *fleetReader) readControlPlane(ctx context.Context, v *ClusterVersions, deployed string) error {
	if deployed == "" {
		return nil
	}
	runs, err := r.eks.ControlPlane(ctx, names.EKSCluster(v.Cluster))
	if err != nil && fault.Code(err) != "ResourceNotFoundException" { // deleted outside drover; the status reports it
		return err
	}
	if v.ControlPlane.Current = runs.Version; runs.Version != deployed {
		v.ControlPlane.Deployed = deployed
	}
	return nil
}

// setParts sets the current versions of a cluster's parts, and their targets from its upgrade or its channel.
func (r *fleetReader) setParts(ctx context.Context, v *ClusterVersions, spec *api.Cluster, deployed map[string]stack.Deployed) error {
	release, sha := plan.Pin(deployed)
	if sha == "" {
		v.Due = "as it is created"
		v.Release.to(spec.Spec.Release.Name)
		return nil
	}
	pinned, err := r.readRelease(ctx, r.c.State.Objects, names.PinnedRelease(sha), release)
	if err != nil {
		return err
	}
	current := resolveWith(spec, pinned)
	for _, addon := range current.Spec.Addons {
		if version := plan.AddonVersions(deployed, []api.Addon{addon})[addon.Name]; version != "" {
			v.Addons = append(v.Addons, namedVersion{addon.Name, moves{Current: version}})
		}
	}
	target, version, err := r.resolveTarget(ctx, v, spec, deployed)
	if err != nil {
		return err
	}
	if u := v.NextUpgrade; u != nil && v.Due != "" {
		v.Due += ", then " + u.To + " " + dueOf(u)
	}
	if target == "" {
		return nil
	}
	v.Release.to(target)
	next := pinned // the deployed release, in the version that was pinned
	if target != release {
		if next, err = r.readRelease(ctx, r.c.Specs, names.ReleaseSpec(target), target); err != nil || next == nil {
			return err // its content is unknown; the status reports it
		}
	}
	future := resolveWith(spec, next)
	v.ControlPlane.to(cmp.Or(version, future.Spec.KubernetesVersion))
	for i := range v.Pools {
		for _, pool := range future.Spec.Pools {
			if pool.Name == v.Pools[i].Name {
				v.Pools[i].to(pool.ImageID)
			}
		}
	}
	for i := range v.Addons {
		for _, addon := range future.Spec.Addons {
			if addon.Name == v.Addons[i].Name {
				v.Addons[i].to(addon.Version)
			}
		}
	}
	for _, addon := range future.Spec.Addons {
		if !slices.ContainsFunc(v.Addons, func(a namedVersion) bool { return a.Name == addon.Name }) {
			v.Addons = append(v.Addons, namedVersion{addon.Name, moves{Target: addon.Version}})
		}
	}
	return nil
}

// resolveWith returns a spec with the defaults of a release, which may differ from the release in the spec. Other defaults stay empty.
func resolveWith(spec *api.Cluster, release *api.Release) *api.Cluster {
	if release == nil {
		return spec
	}
	named := *spec
	named.Spec.Release.Name = release.Metadata.Name
	resolved, _ := api.Resolve(&named, release)
	return resolved
}

// readRelease returns a release, or nil if it is absent or invalid.
func (r *fleetReader) readRelease(ctx context.Context, from store.Objects, key, name string) (*api.Release, error) {
	if release, found := r.releases[key]; found {
		return release, nil
	}
	object, err := from.Get(ctx, key, api.MaxFile)
	if err != nil && !isUnusable(err) {
		return nil, err
	}
	release, _ := api.ReadRelease("", object.Body, api.Options{Name: name})
	if release != nil {
		release = release.In(r.c.cfg.Region)
	}
	r.releases[key] = release
	return release, nil
}

// resolveTarget returns the target release, with its Kubernetes version if an upgrade recorded it, and sets v.Due.
// The release is empty if no change is due.
func (r *fleetReader) resolveTarget(
	ctx context.Context, v *ClusterVersions, spec *api.Cluster, deployed map[string]stack.Deployed,
) (release, version string, err error) {
	if u := v.Upgrade; u != nil {
		switch {
		case u.Phase == string(upgrade.Done):
		case !needsUser(u):
			if v.Due = dueOf(u); spec.Spec.Paused && u.Started == nil {
				v.Due = "paused"
			}
			return u.To, u.ToVersion, nil
		case isStillTarget(u, spec):
			v.Due = u.Phase + ": see drover status"
			return u.To, u.ToVersion, nil
		}
	}
	if channel := spec.Spec.Upgrade.Channel; r.channels == nil || r.channels.Spec.Release(channel, plan.KubernetesVersion(deployed)) == "" {
		if channel != "" && channel != api.ChannelNone {
			v.Due = fmt.Sprintf("never: no release is in its channel %s", channel)
		}
		return "", "", nil
	}
	return r.resolveChannel(ctx, v, spec, deployed)
}

// dueOf returns when an upgrade that is in flight or scheduled is due.
func dueOf(u *status.Upgrade) string {
	if u.At != nil && u.Started == nil && !needsUser(u) {
		return u.At.UTC().Format(time.RFC3339) + " (" + u.Origin + ")"
	}
	return u.Phase
}

// resolveChannel returns the release of the cluster's channel, as planning would decide now. A release that a rollback or another
// upgrade superseded is not a target.
func (r *fleetReader) resolveChannel(
	ctx context.Context, v *ClusterVersions, spec *api.Cluster, deployed map[string]stack.Deployed,
) (release, version string, err error) {
	record, _, err := r.c.State.Upgrade(ctx, v.Cluster)
	if err != nil {
		return "", "", err
	}
	if record != nil && record.Stack != deployed[names.ControlPlane].ID {
		record = nil // from a deleted cluster of the same name
	}
	in := upgrade.Situation{Spec: spec, Record: record, Channels: &r.channels.Spec, Now: time.Now()}
	in.Deployed.Release, in.Deployed.SHA256 = plan.Pin(deployed)
	in.Deployed.KubernetesVersion = plan.KubernetesVersion(deployed)
	in.KubernetesVersion = func(release string) (string, error) {
		next, err := r.readRelease(ctx, r.c.Specs, names.ReleaseSpec(release), release)
		if err == nil && next == nil {
			err = fmt.Errorf("the release %s does not exist, or cannot be used", release)
		}
		if err != nil {
			return "", err
		}
		return next.Spec.KubernetesVersion, nil
	}
	d, err := upgrade.Decide(in)
	switch {
	case err != nil:
		return "", "", nil // the status reports the error in the release of the spec
	case d.Start != nil && d.Start.Origin == upgrade.OriginChannel:
		release, v.Due = d.Start.Release, "within five minutes (Channel)"
	case d.Pending == nil || d.Pending.Origin != upgrade.OriginChannel:
		return "", "", nil
	default:
		release = d.Pending.To.Release
		switch v.Due = d.Pending.At.UTC().Format(time.RFC3339) + " (Channel)"; {
		case d.Pending.Blocked:
			v.Due = "no window opens again"
		case d.Pending.Unreadable != "":
			v.Due = "when its release can be used (Channel)"
		}
	}
	if spec.Spec.Paused {
		v.Due = "paused"
	}
	if u := v.Upgrade; u != nil && u.To == release {
		v.Due = u.Phase + ": see drover status"
	}
	return release, "", nil
}

// needsUser reports whether an upgrade continues only after a user acts.
func needsUser(u *status.Upgrade) bool {
	return u.Phase == string(upgrade.Blocked) || u.Phase == string(upgrade.Stopped) || u.Phase == status.UpgradeMissed
}

// isStillTarget reports whether the release of an upgrade that needs a user is still the cluster's target: the
// upgrade was stopped, or the spec still requests it.
func isStillTarget(u *status.Upgrade, spec *api.Cluster) bool {
	switch {
	case u.Phase == string(upgrade.Stopped):
		return true
	case u.Origin == string(upgrade.OriginSpec):
		return spec.Spec.Release.Name == u.To
	case u.Origin == string(upgrade.OriginAt):
		return spec.Spec.Upgrade.At != nil && spec.Spec.Upgrade.At.Release == u.To
	}
	return false
}

// readKubelets sets the Kubernetes version of each pool's image. The names of EKS images contain it.
func (r *fleetReader) readKubelets(ctx context.Context, fleet []ClusterVersions) error {
	ids := map[string]bool{}
	for _, v := range fleet {
		for _, pool := range v.Pools {
			ids[pool.Current] = true
		}
	}
	if len(ids) == 0 {
		return nil
	}
	images, err := ec2.New(r.c.cfg).Images(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return err
	}
	for _, v := range fleet {
		for i := range v.Pools {
			v.Pools[i].KubernetesVersion = images[v.Pools[i].Current].Kubernetes()
		}
	}
	return nil
}

func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}
