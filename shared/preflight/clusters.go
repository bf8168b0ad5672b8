package preflight

// Room for another cluster, which no upgrade plans: the replacement of a lost one, next to the existing clusters.

import "fmt"

// ClusterQuotaCode is the EKS quota of clusters in an account and region.
// https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
const ClusterQuotaCode = "L-1194D53C"

// clusterQuota warns about the quota of clusters. It never blocks, because an upgrade creates no cluster. But AWS may need days to raise
// a quota, and an operator who lost a cluster cannot wait for that.
func clusterQuota(r *report, f *Facts, _ *Plan) {
	const next = "The upgrade continues, because it creates no cluster. Request an increase in time: `aws service-quotas " +
		"request-service-quota-increase --service-code eks --quota-code " + ClusterQuotaCode + " --desired-value …`, or delete unused clusters."
	quota, found := f.Quotas[ClusterQuotaCode]
	used := fmt.Sprintf("%s (%s): %d of %d are used", quota.Name, ClusterQuotaCode, quota.Used, quota.Limit)
	switch {
	case !found:
		r.warn("Check it yourself: `aws service-quotas list-service-quotas --service-code eks`.", "Service Quotas has no value for %s",
			ClusterQuotaCode)
	case quota.Used >= quota.Limit:
		r.warn(next, "%s: a lost cluster could not be recreated", used)
	case quota.Used == quota.Limit-1:
		r.warn(next, "%s: only one lost cluster could be recreated", used)
	}
}
