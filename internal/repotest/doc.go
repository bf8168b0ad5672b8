// Package repotest has only tests. They keep the rules of the repository: what packages may import, how code and pages are written, and
// that pages name what exists. All of them run in the root folder of the repository.
package repotest
