package status

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
)

// UnreadUploads is the document that lists the objects of the specs bucket that drover does not read: status/unread.json.
type UnreadUploads struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Uploads    []Unread `json:"uploads"`
	// More is how many there are beyond those listed.
	More      int       `json:"more,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Unread is an object of the specs bucket that drover does not read.
type Unread struct {
	Key string `json:"key"`
	// DidYouMean is the key that its author may have meant; empty when the object does not look like a spec.
	DidYouMean string `json:"didYouMean,omitempty"`
}

// maxUnread bounds the list.
const maxUnread = 100

// UnreadOf lists which of the keys of the specs bucket drover does not read. Keys that end in a slash are folders that the S3 console made.
func UnreadOf(keys []string) (uploads []Unread, more int) {
	for _, key := range keys {
		_, cluster := names.ClusterOfKey(key)
		_, release := names.ReleaseOfKey(key)
		if cluster || release || strings.HasSuffix(key, "/") {
			continue
		}
		uploads = append(uploads, Unread{Key: key, DidYouMean: meant(key)})
	}
	slices.SortFunc(uploads, func(a, b Unread) int { return strings.Compare(a.Key, b.Key) })
	more = max(0, len(uploads)-maxUnread)
	return uploads[:len(uploads)-more], more
}

// meant is the key that an unread key may have been meant to be.
func meant(key string) string {
	name := path.Base(key)
	extension := strings.ToLower(path.Ext(name))
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, extension) {
		return ""
	}
	name = strings.ToLower(name[:len(name)-len(extension)])
	wanted := names.ClusterSpec(name)
	if strings.Contains(strings.ToLower(key), "release") || name == "channels" {
		wanted = names.ReleaseSpec(name)
	}
	_, cluster := names.ClusterOfKey(wanted)
	_, release := names.ReleaseOfKey(wanted)
	if !cluster && !release {
		return ""
	}
	return wanted
}
