package preflight

// Room for what no upgrade plans: a cluster that is lost, and has to be made anew beside those that are there.

import "fmt"

// ClusterQuotaCode is the quota of EKS on the clusters of an account in a region.
// https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
const ClusterQuotaCode = "L-1194D53C"

// clusterQuota: an upgrade makes no cluster, so that this never stops one. But AWS may take days to raise a quota,
// and who has lost a cluster does not have them.
func clusterQuota(r *report, f *Facts, _ *Plan) {
	const next = "The upgrade makes none, and goes on. Ask for more in time: `aws service-quotas request-service-quota-increase " +
		"--service-code eks --quota-code " +
		ClusterQuotaCode + " --desired-value …`, or delete clusters that nobody needs."
	quota, known := f.Quotas[ClusterQuotaCode]
	used := fmt.Sprintf("%s (%s): %d of %d are there", quota.Name, ClusterQuotaCode, quota.Used, quota.Limit)
	switch {
	case !known:
		r.warn("Look at it yourself: `aws service-quotas list-service-quotas --service-code eks`.", "Service Quotas does not tell: %s",
			ClusterQuotaCode)
	case quota.Used >= quota.Limit:
		r.warn(next, "%s: one that has to be made anew beside them could not be", used)
	case quota.Used == quota.Limit-1:
		r.warn(next, "%s: of those that have to be made anew beside them one could be, and no more", used)
	}
}
