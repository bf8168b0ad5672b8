package status

import "time"

// Release is the document that says whether a release can be used, or what the channels name: status/releases/<name>.json.
type Release struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   Metadata      `json:"metadata"`
	Status     ReleaseStatus `json:"status"`
}

// ReleaseStatus is the verdict on an upload. Clusters are pinned to the content that they use: no verdict changes one.
type ReleaseStatus struct {
	// Version is the S3 version that was looked at, and SHA256 its content's, in hex; both are empty when it was deleted.
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Usable says that nothing was found that blocks.
	Usable  bool   `json:"usable"`
	Message string `json:"message,omitempty"`
	// Checks that found something.
	Checks []Check `json:"checks,omitempty"`
	// UpdatedAt is when this was found.
	UpdatedAt time.Time `json:"updatedAt"`
}

// NewRelease returns the document of a release of which nothing is known yet.
func NewRelease(name string) *Release {
	return &Release{APIVersion: "drover.run/v1alpha1", Kind: "ReleaseStatus", Metadata: Metadata{Name: name}}
}
