package harness

// Rendered clusters: planning and auditing render the same cluster again and again, which is to give the same bytes
// every time. Most of the times it is remembered; the others show whether it does.

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/drover-run/drover/shared/render"
)

// rendered are the clusters that were rendered last, by all that rendering depends on.
type rendered struct {
	mu   sync.Mutex
	kept map[string]*render.Output
	asks int
}

const (
	// maxRendered are kept at a time.
	maxRendered = 200
	// renderedAnew is one of how many that are known.
	renderedAnew = 16
)

// render is render.Render. What it returns is others' too.
func (r *rendered) render(in render.Cluster) (*render.Output, error) {
	key, err := json.Marshal(in)
	if err != nil {
		return render.Render(in)
	}
	r.mu.Lock()
	known := r.kept[string(key)]
	r.asks++
	anew := r.asks%renderedAnew == 0
	r.mu.Unlock()
	if known != nil && !anew {
		return known, nil
	}
	out, err := render.Render(in)
	if err != nil {
		return nil, err
	}
	if known != nil && !reflect.DeepEqual(out, known) {
		panic(fmt.Sprintf("the same cluster was rendered to something else, or what was rendered was changed: %s", key))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || len(r.kept) >= maxRendered {
		r.kept = map[string]*render.Output{}
	}
	r.kept[string(key)] = out
	return out, nil
}
