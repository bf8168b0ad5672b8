package drain

import "strings"

// Reasons why pods are blocked. For some, a message of the API server follows.
const (
	WhyBudget      = "its disruption budget allows no disruption now"
	WhyBudgets     = "it is under more than one disruption budget, which the eviction API refuses"
	WhyUnmanaged   = "nothing would start it again, and unmanagedPods is Wait"
	WhyEmptyDir    = "it has data in an emptyDir, and deleteEmptyDirData is false"
	WhyReadiness   = "its readiness changes"
	WhyWritten     = "its disruption budget changes"
	WhyConflict    = "its eviction met a conflict"
	WhyOverload    = "the API server asks for less"
	WhyTerminating = "its namespace is being deleted, and the pod with it"
	WhyRefused     = "the API server refuses its eviction"
	WhyFailed      = "the API server failed"
)

// Passes reports whether a reason may pass within seconds: the API server fails, or other clients write the same objects.
func Passes(why string) bool {
	for _, reason := range []string{WhyReadiness, WhyWritten, WhyConflict, WhyOverload, WhyFailed} {
		if strings.HasPrefix(why, reason) {
			return true
		}
	}
	return false
}

// Reasons returns the reasons that may last. The runbook explains each.
func Reasons() []string {
	return []string{WhyBudget, WhyBudgets, WhyUnmanaged, WhyEmptyDir, WhyOverload, WhyTerminating, WhyRefused, WhyFailed}
}
