package storm

// Random faults: rules for local/engine/faults.

import (
	"fmt"
	"math/rand/v2"
)

// randomFaults write rules, each of one kind of fault. A new entry would change other worlds, also those of
// recorded traces: put it into addRecent.
var randomFaults = []func(*rand.Rand) string{
	func(r *rand.Rand) string {
		return fmt.Sprintf("throttle caller=%s p=%.2f", caller(r), 0.05+r.Float64()/3)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("error=%s status=%d caller=%s p=%.2f", pick(r, "InternalFailure", "ServiceUnavailable"), 500+3*r.IntN(2), caller(r),
			0.02+r.Float64()/5)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("latency=%dms p=%.2f", 50+r.IntN(5000), r.Float64()/2+0.01)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("conflict=%s p=%.2f", pick(r, "409", "412"), 0.05+r.Float64()/3)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("crash-before caller=%s p=%.3f", caller(r), r.Float64()/20+0.001)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("crash-after caller=%s p=%.3f", caller(r), r.Float64()/20+0.001)
	},
	func(r *rand.Rand) string { return fmt.Sprintf("drop p=%.2f", 0.05+r.Float64()/2) },
	func(r *rand.Rand) string { return fmt.Sprintf("duplicate p=%.2f", 0.05+r.Float64()/2) },
	func(r *rand.Rand) string { return fmt.Sprintf("reorder=%ds p=%.2f", 1+r.IntN(900), 0.05+r.Float64()/2) },
	func(r *rand.Rand) string {
		return fmt.Sprintf("kill machine=converge p=%.3f count=%d", r.Float64()/30+0.001, 1+r.IntN(2))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("instance-lost p=%.3f count=%d", 0.01+r.Float64()/20, 1+r.IntN(3))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("api-server-down=%ds p=%.3f", 10+r.IntN(1200), 0.01+r.Float64()/20)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("update-fails p=%.2f count=%d", 0.2+r.Float64()/2, 1+r.IntN(2))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("kill machine=%s p=%.3f count=1", pick(r, "join-node", "drain-node", "upgrade"), r.Float64()/10+0.01)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("update-fails=%s count=%d", pick(r, "Unknown", "OperationNotPermitted"), 1+r.IntN(2))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("kubelet-version=v1.32.1-eks-1 p=%.2f count=%d", 0.05+r.Float64()/2, 1+r.IntN(4)) // older than any in the world
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("kubelet-version=v1.39.1-eks-1 p=%.2f count=%d", 0.05+r.Float64()/2, 1+r.IntN(4)) // newer
	},
	func(r *rand.Rand) string {
		code := pick(r, "InsufficientInstanceCapacity", "VcpuLimitExceeded")
		return fmt.Sprintf("launch-fails=%s p=%.2f after=%dm for=%dm", code, 0.2+r.Float64()*0.8, 1+r.IntN(90), 1+r.IntN(90))
	},
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// caller returns a function, or the pattern of all functions.
func caller(r *rand.Rand) string {
	return pick(r, "*", "admit", "plan", "change", "stackevent", "report", "upgrade", "sweep", "join", "drain", "prepare", "clean", "publish")
}

// someFaultRules returns a few rules.
func someFaultRules(r *rand.Rand) (rules []string) {
	for range r.IntN(4) {
		rules = append(rules, randomFaults[r.IntN(len(randomFaults))](r))
	}
	return rules
}
