package status

import "time"

// Release is the status document of a release or of the channels: status/releases/<name>.json.
type Release struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   Metadata      `json:"metadata"`
	Status     ReleaseStatus `json:"status"`
}

// ReleaseStatus is the verdict on an upload. It changes no cluster: clusters are pinned to the content that they use.
type ReleaseStatus struct {
	// Version is the S3 version that was checked, and SHA256 the hash of its content, in hex. Both are empty after a deletion.
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Usable reports whether no check blocks.
	Usable  bool   `json:"usable"`
	Message string `json:"message,omitempty"`
	// Checks that found something.
	Checks []Check `json:"checks,omitempty"`
	// UpdatedAt is when the checks ran.
	UpdatedAt time.Time `json:"updatedAt"`
}

// NewRelease returns the document of a release that was not checked yet.
func NewRelease(name string) *Release {
	return &Release{APIVersion: "drover.run/v1alpha1", Kind: "ReleaseStatus", Metadata: Metadata{Name: name}}
}
