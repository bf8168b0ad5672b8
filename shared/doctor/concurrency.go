package doctor

import "fmt"

// What drover needs of Lambda's concurrent executions. With the least, fifty nodes join at the same time: that is the limit of some new
// accounts, and drover is tested with it. With fewer, its functions would wait for each other.
const (
	leastConcurrency      = 10
	concurrencyPerCluster = 10
)

// concurrency compares the invocations that drover's functions share with what it needs. Functions of others share them too.
func (r *report) concurrency(clusters int) {
	const service, code = "lambda", "L-B99A9384"
	wanted := leastConcurrency + concurrencyPerCluster*max(1, clusters)
	left, reserved := r.facts.Unreserved, r.facts.Concurrency-r.facts.Unreserved
	fix := fmt.Sprintf("aws service-quotas request-service-quota-increase --region %s --service-code %s --quota-code %s --desired-value %d",
		r.facts.Region, service, code, reserved+wanted)
	state := fmt.Sprintf("%d of %d concurrent executions of Lambda are not reserved", left, r.facts.Concurrency)
	switch {
	case r.facts.Concurrency == 0:
		r.warn("check it yourself: `aws lambda get-account-settings --region "+r.facts.Region+"`", "Lambda does not report its limit")
	case left < leastConcurrency:
		r.block(fix, "%s; needed: %d", state, leastConcurrency)
	case left < wanted:
		r.warn(fix, "%s; needed: %d, and %d for full speed", state, leastConcurrency, wanted)
	default:
		r.ok("%s; needed: %d", state, wanted)
	}
}
