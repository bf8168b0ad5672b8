package api

import "k8s.io/apimachinery/pkg/util/validation/field"

func validateNetwork(path *field.Path, s *ClusterSpec) field.ErrorList      { return nil }
func validateControlPlane(path *field.Path, s *ClusterSpec) field.ErrorList { return nil }
func validatePool(path *field.Path, p *Pool) field.ErrorList                { return nil }
func validateTags(path *field.Path, tags map[string]string) field.ErrorList { return nil }
