// Package templates holds the template versions: frozen sets of the CloudFormation templates, node configurations and
// scripts that drover renders. A cluster keeps its version until its spec or release names another version, so a
// version that has been released is never edited: a change is a new folder. v1 has not been released: it may still
// change (ADR 15).
//
// The suffix of a file gives its language, and so the encoders that its interpolations may use:
//
//	*.yaml.tmpl  CloudFormation and node configuration: yaml, jsontext, id, ref
//	*.sh.tmpl    bash: shell
//	*.mime.tmpl  the envelope of user data: no interpolation, only the other files
//
// Loading (shared/render) refuses a file with an interpolation that passes through no encoder of its language.
package templates

import (
	"embed"
	"io/fs"
)

//go:embed v*/*.tmpl
var files embed.FS

// FS holds the template files: one folder a version.
func FS() fs.FS { return files }

// Versions lists the template versions, oldest first.
func Versions() []string {
	entries, err := fs.ReadDir(files, ".")
	if err != nil { // an embedded root is always there
		panic(err)
	}
	var versions []string
	for _, entry := range entries {
		versions = append(versions, entry.Name())
	}
	return versions
}
