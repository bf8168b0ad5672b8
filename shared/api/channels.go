package api

// ChannelsName is what the one object of kind Channels is called, and so no release.
const ChannelsName = "channels"

// Channels say which release each channel is at. There is one such object: releases/channels.yaml in the specs bucket.
type Channels struct {
	// APIVersion is drover.run/v1alpha1.
	APIVersion string `json:"apiVersion" rule:"enum=drover.run/v1alpha1"`
	// Kind is Channels.
	Kind string `json:"kind" rule:"enum=Channels"`
	// Metadata names the object: channels.
	Metadata Metadata `json:"metadata" rule:"name=channels-name"`
	// Spec is what the channels are at.
	Spec ChannelsSpec `json:"spec"`
}

// ChannelsSpec is what each channel is at. A cluster that follows one which is not stated stays as it is. No channel takes a cluster to
// an older Kubernetes version.
type ChannelsSpec struct {
	// Stable is the release for most clusters.
	Stable string `json:"stable,omitempty" rule:"format=release-name"`
	// Rapid is the release for clusters that try what is new.
	Rapid string `json:"rapid,omitempty" rule:"format=release-name"`
	// Nodes are releases by Kubernetes version, of that version each: new images and add-ons for clusters that keep theirs.
	Nodes map[string]string `json:"nodes,omitempty" rule:"keys=kubernetes-version;format=release-name"`
}

// Release of a channel, for a cluster of a Kubernetes version; "" when there is none.
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

// Releases that the channels name, with the field of each.
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
