package status

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
)

// IgnoredUploads is the document that lists the objects of the specs bucket that drover does not read: status/ignored.json.
type IgnoredUploads struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Uploads    []IgnoredUpload `json:"uploads"`
	// More is how many there are beyond those listed.
	More      int       `json:"more,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// IgnoredUpload is an object of the specs bucket that drover does not read.
type IgnoredUpload struct {
	Key string `json:"key"`
	// DidYouMean is the key that its author may have meant; empty when the object does not look like a spec.
	DidYouMean string `json:"didYouMean,omitempty"`
}

// maxIgnored bounds the list.
const maxIgnored = 100

// IgnoredOf lists which of the keys of the specs bucket drover does not read. Keys that end in a slash are folders of the S3 console.
func IgnoredOf(keys []string) (uploads []IgnoredUpload, more int) {
	for _, key := range keys {
		if isRead(key) || strings.HasSuffix(key, "/") {
			continue
		}
		uploads = append(uploads, IgnoredUpload{Key: key, DidYouMean: meant(key)})
	}
	slices.SortFunc(uploads, func(a, b IgnoredUpload) int { return strings.Compare(a.Key, b.Key) })
	more = max(0, len(uploads)-maxIgnored)
	return uploads[:len(uploads)-more], more
}

// isRead reports whether drover reads objects with a key.
func isRead(key string) bool {
	_, cluster := names.ClusterOfKey(key)
	_, release := names.ReleaseOfKey(key)
	_, rollout := names.RolloutOfKey(key)
	_, freeze := names.FreezeOfKey(key)
	_, _, decision := names.DecisionOfKey(key)
	return cluster || release || rollout || freeze || decision
}

// meant is the key that an ignored key may have been meant to be.
func meant(key string) string {
	name := path.Base(key)
	extension := strings.ToLower(path.Ext(name))
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, extension) {
		return ""
	}
	name = strings.ToLower(name[:len(name)-len(extension)])
	wanted, lower := names.ClusterSpec(name), strings.ToLower(key)
	switch folder := path.Base(path.Dir(key)); {
	case strings.Contains(lower, "release") || name == "channels":
		wanted = names.ReleaseSpec(name)
	case strings.Contains(lower, "decision") && folder != "." && !strings.Contains(strings.ToLower(folder), "decision"):
		wanted = names.Decision(folder, name)
	case strings.Contains(lower, "decision"):
		return "" // the rollout is not known
	case strings.Contains(lower, "rollout"):
		wanted = names.Rollout(name)
	case strings.Contains(lower, "freeze"):
		wanted = names.Freeze(name)
	}
	if !isRead(wanted) {
		return ""
	}
	return wanted
}
