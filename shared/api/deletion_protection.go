package api

import "go.yaml.in/yaml/v3"

// ProtectsDeletion reports whether a once accepted spec turns deletion protection on, which is the default. It reads no other field. So a
// spec that an earlier version of drover accepted still protects its cluster, even if this version would reject it.
func ProtectsDeletion(spec []byte) bool {
	var read struct {
		Spec struct {
			DeletionProtection *bool `yaml:"deletionProtection"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal(spec, &read); err != nil || read.Spec.DeletionProtection == nil {
		return true
	}
	return *read.Spec.DeletionProtection
}
