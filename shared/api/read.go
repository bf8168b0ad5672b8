package api

// A cache of files. Planning and audits read the same specs and releases repeatedly, and strict decoding is the most expensive step. The
// same bytes always give the same object.

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReadCluster decodes and validates a cluster's spec. So all errors are reported at once, with positions. The cluster is nil if there are
// errors.
func ReadCluster(file string, data []byte, o Options) (*Cluster, Errors) {
	return read(&clustersRead, file, data, o, KindCluster, func(c *Cluster) field.ErrorList {
		errs := append(validateCluster(c, o), validateChannel(c)...)
		c.Spec.PoolDefaults = nil // the pools have them
		return errs
	})
}

// ReadRelease decodes and validates a release, like ReadCluster.
func ReadRelease(file string, data []byte, o Options) (*Release, Errors) {
	return read(&releasesRead, file, data, o, KindRelease, func(r *Release) field.ErrorList { return validateRelease(r, o) })
}

// read reads a file of a kind, or copies it from the cache.
func read[T any](known *filesRead[T], file string, data []byte, o Options, kind string, validate func(*T) field.ErrorList) (*T, Errors) {
	of := fileRead{file, string(data), o.Name, strings.Join(o.TemplateVersions, " "), o.Cell.key()}
	if object := known.get(of); object != nil && o.Now.IsZero() {
		return object, nil
	}
	d := decode(file, data, kind)
	if errs := d.withValidation(func() field.ErrorList { return validate(d.object.(*T)) }); len(errs) > 0 {
		return nil, errs
	}
	object := d.object.(*T)
	if o.Now.IsZero() { // a result that depends on the time is not cached
		known.put(of, object)
	}
	return object, nil
}

// fileRead is everything on which the result depends.
type fileRead struct{ file, data, name, templateVersions, cell string }

// filesRead caches the files that were read last and have no errors. The zero value is empty.
type filesRead[T any] struct {
	mu   sync.Mutex
	kept map[fileRead]*T
	size int
}

// maxRead bounds the bytes of cached files.
const maxRead = 2 << 20

var (
	clustersRead filesRead[Cluster]
	releasesRead filesRead[Release]
)

// get returns a copy, which the caller may change.
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
