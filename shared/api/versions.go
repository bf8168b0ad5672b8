package api

// Kubernetes versions: those that EKS offers, and the allowed upgrades.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateVersions checks the Kubernetes version of a resolved cluster against the versions that EKS offers and the deployed one, which
// is empty for a new cluster. A control plane is upgraded by one minor version at a time, and an upgrade spans as many as its release
// allows. from is the oldest allowed version, empty for the one before. A cluster may stay on a version that EKS no longer offers.
// https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
func ValidateVersions(resolved *Cluster, offered []string, current, from string) Errors {
	path, want := field.NewPath("spec", "kubernetesVersion"), resolved.Spec.KubernetesVersion
	if want == current {
		return nil
	}
	var errs field.ErrorList
	if !slices.Contains(offered, want) {
		sorted := slices.Clone(offered)
		slices.SortFunc(sorted, func(a, b string) int { return minor(a) - minor(b) })
		errs = append(errs, field.NotSupported(path, want, sorted))
	}
	switch step := minor(want) - minor(current); {
	case current == "":
	case step < 0:
		errs = append(errs,
			field.Forbidden(path, fmt.Sprintf("the cluster runs %s, and Kubernetes is not downgraded: "+
				"`drover upgrade %s --rollback` rolls an upgrade back", current, resolved.Metadata.Name)))
	case step > 1 && from != "":
		if minor(current) < minor(from) {
			errs = append(errs,
				field.Forbidden(path, fmt.Sprintf("the cluster runs %s, and the release supports upgrades from %s or later: "+
					"upgrade to a release of 1.%d first", current, from, minor(current)+1)))
		}
	case step > 1:
		errs = append(errs,
			field.Forbidden(path, fmt.Sprintf("the cluster runs %s, and moves one minor version at a time: the next step is 1.%d", current,
				minor(current)+1)))
	}
	return fromFields(errs)
}

// minor returns 36 for "1.36", and -1 for an invalid version.
func minor(version string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "1."))
	if err != nil {
		return -1
	}
	return n
}
