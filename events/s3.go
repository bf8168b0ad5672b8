package events

// Object is the detail of S3's "Object Created" and "Object Deleted" events.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
type Object struct {
	Bucket struct {
		Name string `json:"name"`
	} `json:"bucket"`
	Object struct {
		Key string `json:"key"`
		// VersionID is absent in unversioned buckets.
		VersionID string `json:"version-id,omitempty"`
		// Sequencer orders the events of one key. Compare sequencers as hexadecimal numbers.
		Sequencer string `json:"sequencer,omitempty"`
	} `json:"object"`
	Reason string `json:"reason,omitempty"`
	// DeletionType is set on deletions: "Permanently Deleted" or "Delete Marker Created".
	DeletionType string `json:"deletion-type,omitempty"`
}
