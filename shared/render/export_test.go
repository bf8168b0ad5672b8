package render

import (
	"fmt"
	"io/fs"
	"text/template"
)

// RenderFrom renders with the template versions of a folder.
func RenderFrom(files fs.FS, in Cluster, names ...string) (*Output, error) {
	versions := map[string]*template.Template{}
	for _, name := range names {
		set, err := parseSet(files, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		versions[name] = set
	}
	return renderWith(versions, in)
}
