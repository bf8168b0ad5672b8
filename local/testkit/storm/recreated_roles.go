package storm

// A role of a function is deleted and created again. Access entries belong to the unique id of a role, so API servers refuse the function
// until an operator runs the commands of the status.

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// groupsOfRoles are the Kubernetes groups of the functions that call API servers. prepare is an administrator.
var groupsOfRoles = map[string]string{
	"prepare": "", "join": kube.JoinGroup, "drain": kube.DrainGroup, "upgrade": kube.UpgradeGroup, "sweep": kube.SweepGroup,
}

// recreateRole recreates a role in the middle of a life. An operator restores its access in each cluster later.
func (p *plot) recreateRole(r *rand.Rand) {
	role := pick(r, "prepare", "join", "drain", "upgrade", "sweep")
	at, after := p.amid(r), time.Duration(5+r.IntN(85))*time.Minute
	cluster := slices.Sorted(maps.Keys(p.last))[0]
	p.acts = append(p.acts,
		act{at: at, cluster: cluster, what: "recreate the role of " + role, do: func(w *world) { w.deleteAndCreateRole(role) }},
		act{at: at + after, cluster: cluster, what: "restore the access of " + role, do: func(w *world) { w.restoreAccess(role) }},
	)
	p.sortActs()
}

// deleteAndCreateRole recreates the role of a function. IAM denies calls that are in flight, because their session is of the deleted role.
func (w *world) deleteAndCreateRole(role string) {
	w.observed.Lock()
	w.observed.recreatedRoles[role] = time.Now()
	w.observed.Unlock()
	w.RecreateRole(role)
}

// restoreAccess runs the commands that the status of a refused cluster names, in every cluster.
func (w *world) restoreAccess(role string) {
	for _, cluster := range w.clusters() {
		entry := eks.EntryInput{ClusterName: names.EKSCluster(cluster), PrincipalArn: harness.RoleARN(role)}
		if _, err := w.EKS.DeleteAccessEntry(w.t.Context(), w.Admin(), entry); err != nil {
			w.record("%s: no access of %s: %v", cluster, role, err) // the cluster does not exist
			continue
		}
		created := eks.CreateAccessEntryInput{ClusterName: entry.ClusterName, PrincipalArn: entry.PrincipalArn}
		if group := groupsOfRoles[role]; group != "" {
			created.KubernetesGroups = []string{group}
		}
		_, err := w.EKS.CreateAccessEntry(w.t.Context(), w.Admin(), created)
		if role == "prepare" && err == nil {
			_, err = w.EKS.AssociateAccessPolicy(w.t.Context(), w.Admin(), eks.AssociateAccessPolicyInput{
				ClusterName: entry.ClusterName, PrincipalArn: entry.PrincipalArn, AccessScope: eks.AccessScope{Type: "cluster"},
				PolicyArn: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
			})
		}
		if err != nil {
			w.record("%s: no access of %s: %v", cluster, role, err) // the cluster is being deleted
		}
	}
}
