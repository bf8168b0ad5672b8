package doctor

import (
	"fmt"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// Principals returns the ARNs of an account's roles and users that the access entries of clusters name, and how many entries name
// principals of other accounts. EKS looks up none of those.
func Principals(account string, clusters []Cluster) (ours []string, others int) {
	for _, c := range clusters {
		for _, entry := range c.Resolved.Spec.ControlPlane.Access {
			if parts := strings.SplitN(entry.PrincipalARN, ":", 6); len(parts) == 6 && parts[4] == account {
				ours = append(ours, entry.PrincipalARN)
			} else {
				others++
			}
		}
	}
	return ours, others
}

// principals finds roles and users of access entries that do not exist. EKS refuses such an entry, and so the control plane's stack fails.
// https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
func (r *report) principals(clusters []Cluster) {
	for _, c := range clusters {
		for i, entry := range c.Resolved.Spec.ControlPlane.Access {
			ours, _ := Principals(r.facts.Account, []Cluster{{Resolved: oneEntry(entry)}})
			switch actual := r.facts.Principals[entry.PrincipalARN]; {
			case len(ours) == 0 || actual == entry.PrincipalARN:
			case actual == "":
				r.block(fmt.Sprintf("create it, or remove spec.controlPlane.access[%d]; `%s` shows whether it exists", i, lookUp(entry.PrincipalARN)),
					"%s: %s does not exist", c.name(), entry.PrincipalARN)
			default:
				r.block(fmt.Sprintf("set spec.controlPlane.access[%d].principalARN to %s", i, actual), "%s: %s has another path: it is %s", c.name(),
					entry.PrincipalARN, actual)
			}
		}
	}
	if len(clusters) == 0 || len(r.found) > 0 {
		return
	}
	switch _, others := Principals(r.facts.Account, clusters); others {
	case 0:
		r.ok("the principals of access entries exist")
	default:
		r.ok("the principals of access entries exist; not checked, because they are in other accounts: %d", others)
	}
}

func oneEntry(entry api.AccessEntry) *api.Cluster {
	c := &api.Cluster{}
	c.Spec.ControlPlane.Access = []api.AccessEntry{entry}
	return c
}

// lookUp returns the command that shows a role or user.
func lookUp(principal string) string {
	name := principal[strings.LastIndex(principal, "/")+1:]
	if strings.Contains(principal, ":user/") {
		return "aws iam get-user --user-name " + name
	}
	return "aws iam get-role --role-name " + name
}
