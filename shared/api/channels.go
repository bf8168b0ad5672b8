package api

// ChannelsName is the name of the only object of kind Channels. No release can have it.
const ChannelsName = "channels"

// Channels names the release of each channel. There is one such object: releases/channels.yaml in the specs bucket.
type Channels struct {
	// APIVersion is drover.run/v1alpha1.
	APIVersion string `json:"apiVersion" rule:"enum=drover.run/v1alpha1"`
	// Kind is Channels.
	Kind string `json:"kind" rule:"enum=Channels"`
	// Metadata names the object: channels.
	Metadata Metadata `json:"metadata" rule:"name=channels-name"`
	// Spec is the release of each channel.
	Spec ChannelsSpec `json:"spec"`
}

// ChannelsSpec is the release of each channel. A cluster that follows a channel without a release does not change. No channel takes a
// cluster to an older Kubernetes version.
type ChannelsSpec struct {
	// Stable is the release for most clusters.
	Stable string `json:"stable,omitempty" rule:"format=release-name"`
	// Rapid is the release for clusters that try new releases first.
	Rapid string `json:"rapid,omitempty" rule:"format=release-name"`
	// Nodes are releases by their Kubernetes version: new images and add-ons for clusters that keep their version.
	Nodes map[string]string `json:"nodes,omitempty" rule:"keys=kubernetes-version;format=release-name"`
}

// Release returns a channel's release for a cluster of a Kubernetes version, or "".
func (s ChannelsSpec) Release(channel Channel, kubernetesVersion string) string {
	switch channel {
	case ChannelStable:
		return s.Stable
	case ChannelRapid:
		return s.Rapid
	case ChannelNodes:
		return s.Nodes[kubernetesVersion]
	}
	return ""
}

// Releases returns the releases that the channels name, with the field of each.
func (s ChannelsSpec) Releases() map[string]string {
	named := map[string]string{}
	add := func(field, release string) {
		if release != "" {
			named[field] = release
		}
	}
	add("spec.stable", s.Stable)
	add("spec.rapid", s.Rapid)
	for version, release := range s.Nodes {
		add("spec.nodes["+version+"]", release)
	}
	return named
}
