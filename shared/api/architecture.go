package api

import "strings"

// ArchitectureOf returns the architecture of an instance type, such as m7g.large, by its name. A name that implies none is taken for AMD64.
func ArchitectureOf(instanceType string) Architecture {
	family, _, _ := strings.Cut(instanceType, ".")
	if architecture, certain := architectureOf(family); certain {
		return architecture
	}
	return AMD64
}
