package api

// Files that were read before: planning and auditing read the same specs and releases again and again, and reading one strictly costs more
// than all else that is done with it. The same bytes say the same.

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReadCluster decodes and validates a cluster's spec, so that errors of both kinds come at once with their places.
// The cluster is nil when there are errors.
func ReadCluster(file string, data []byte, o Options) (*Cluster, Errors) {
	return read(&clustersRead, file, data, o, KindCluster, func(c *Cluster) field.ErrorList {
		return append(validateCluster(c, o), validateChannel(c)...)
	})
}

// ReadRelease decodes and validates a release, as ReadCluster does a cluster's spec.
func ReadRelease(file string, data []byte, o Options) (*Release, Errors) {
	return read(&releasesRead, file, data, o, KindRelease, func(r *Release) field.ErrorList { return validateRelease(r, o) })
}

// read a file of a kind, or give a copy of what was read of it.
func read[T any](known *filesRead[T], file string, data []byte, o Options, kind string, validate func(*T) field.ErrorList) (*T, Errors) {
	of := fileRead{file, string(data), o.Name, strings.Join(o.TemplateVersions, " ")}
	if object := known.get(of); object != nil && o.Now.IsZero() {
		return object, nil
	}
	d := decode(file, data, kind)
	if errs := d.withValidation(func() field.ErrorList { return validate(d.object.(*T)) }); len(errs) > 0 {
		return nil, errs
	}
	object := d.object.(*T)
	if o.Now.IsZero() { // what is judged at a time may be wrong at another
		known.put(of, object)
	}
	return object, nil
}

// fileRead is all that reading depends on.
type fileRead struct{ file, data, name, templateVersions string }

// filesRead are files with nothing wrong, the last ones. The zero value has none.
type filesRead[T any] struct {
	mu   sync.Mutex
	kept map[fileRead]*T
	size int
}

// maxRead is how many bytes of files are remembered at a time.
const maxRead = 2 << 20

var (
	clustersRead filesRead[Cluster]
	releasesRead filesRead[Release]
)

// get is a copy, which is the caller's.
func (k *filesRead[T]) get(of fileRead) *T {
	k.mu.Lock()
	object := k.kept[of]
	k.mu.Unlock()
	return copyOf(object)
}

func (k *filesRead[T]) put(of fileRead, object *T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.size += len(of.data); k.kept == nil || k.size > maxRead {
		k.kept, k.size = map[fileRead]*T{}, len(of.data)
	}
	k.kept[of] = copyOf(object)
}

func copyOf[T any](object *T) *T { return clone(reflect.ValueOf(object)).Interface().(*T) }
