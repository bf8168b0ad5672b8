package preflight

// Room for another cluster, which no upgrade plans: the replacement of a lost one, next to the existing clusters.

import "fmt"

// ClusterQuotaCode is the EKS quota of clusters in an account and region.
// https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
const ClusterQuotaCode = "L-1194D53C"

// clusterQuota warns about the quota of clusters. It never blocks, because an upgrade creates no cluster. But AWS may need days to raise
// a quota, and an operator who lost a cluster cannot wait for that.
func clusterQuota(r *report, f *Facts, _ *Plan) {
	const next = "The upgrade makes none, and goes on. Ask for more in time: `aws service-quotas request-service-quota-increase " +
		"--service-code eks --quota-code " +
		ClusterQuotaCode + " --desired-value …`, or delete clusters that nobody needs."
	quota, found := f.Quotas[ClusterQuotaCode]
	used := fmt.Sprintf("%s (%s): %d of %d are there", quota.Name, ClusterQuotaCode, quota.Used, quota.Limit)
	switch {
	case !found:
		r.warn("Look at it yourself: `aws service-quotas list-service-quotas --service-code eks`.", "Service Quotas does not tell: %s",
			ClusterQuotaCode)
	case quota.Used >= quota.Limit:
		r.warn(next, "%s: one that has to be made anew beside them could not be", used)
	case quota.Used == quota.Limit-1:
		r.warn(next, "%s: of those that have to be made anew beside them one could be, and no more", used)
	}
}
