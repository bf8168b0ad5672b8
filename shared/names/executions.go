package names

import (
	"fmt"
	"strings"
	"time"
)

// ConvergeExecution names the execution that converges a version of a spec, after another version. The same step twice is one execution.
// A return to an earlier version is another. Step Functions allows 80 characters.
func ConvergeExecution(cluster, specVersion, after string) string {
	return fmt.Sprintf("%.60s-%s", cluster, SHA256([]byte(cluster + "\x00" + specVersion + "\x00" + after))[:16])
}

// retrySuffix ends the names of executions that drover starts on its own. Names of other executions end in a digest, in a number, or as an
// operator chose.
const retrySuffix = "-again"

// RetryExecution names the execution with which drover retries a version of a spec on its own. The same reason twice is one execution.
func RetryExecution(cluster, specVersion, why string) string {
	return fmt.Sprintf("%.50s-%s", cluster, SHA256([]byte(cluster + "\x00" + specVersion + "\x00" + why))[:16]) + retrySuffix
}

// IsRetry reports whether an execution, by name or ARN, is one that RetryExecution named.
func IsRetry(execution string) bool { return strings.HasSuffix(execution, retrySuffix) }

// DueExecution names the execution that does a cluster's scheduled work of a time. The same work twice is one execution.
func DueExecution(cluster string, at time.Time) string {
	return fmt.Sprintf("%.60s-%s", cluster, SHA256([]byte(Due(at, cluster)))[:16])
}

// UpgradeExecution names the execution that makes a cluster's upgrade. key identifies what requested the upgrade, after is the number of
// the upgrade before. Until that upgrade begins, two starts within an hour are one execution.
func UpgradeExecution(cluster, key string, after int64, now time.Time) string {
	hour := now.UTC().Truncate(time.Hour).Format(time.RFC3339)
	return fmt.Sprintf("%.60s-%s", cluster, SHA256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s", cluster, key, after, hour))[:16])
}

// UpgradeStepExecution names the execution of the converge machine that makes a step of an upgrade. upgrade is the execution of the upgrade
// machine. The same try twice is one execution.
func UpgradeStepExecution(cluster, upgrade string, step, try int) string {
	return fmt.Sprintf("%s-upgrade-%s-%d-%d", cluster, SHA256([]byte(upgrade))[:16], step, try)
}

// IsUpgradeStep reports whether an execution of the converge machine, by its ARN, makes a step of an upgrade.
func IsUpgradeStep(cluster, execution string) bool {
	return strings.HasPrefix(execution[strings.LastIndex(execution, ":")+1:], cluster+"-upgrade-")
}

// Retry is why drover converges a cluster on its own. RetryExecution hashes its words. Never reword them: the same retry would start a
// second execution.
type Retry string

// The retries.
const (
	RetryDue              Retry = "due"
	RetryNotStarted       Retry = "not-started"
	RetryDeletionPending  Retry = "deletion-pending"
	RetrySpecPending      Retry = "spec-pending"
	RetrySilentExecution  Retry = "silent-execution"
	RetryReleaseArrived   Retry = "release-arrived"
	RetryAccount          Retry = "account"
	RetryUpgradePending   Retry = "upgrade-pending"
	RetryDrift            Retry = "drift"
	RetryAbortedExecution Retry = "aborted-execution"
	RetryAfterUpgrade     Retry = "after-upgrade"
	RetryNextUpgrade      Retry = "next-upgrade"
	RetryUpgradeNotBegun  Retry = "upgrade-not-begun"
)

// EarlyCheckKey is the key of UpgradeExecution for the early check of a scheduled upgrade. Never reword it: UpgradeExecution hashes it.
func EarlyCheckKey(origin, release string, at time.Time) string {
	return "check " + origin + " " + release + " " + at.Format(time.RFC3339)
}

// EndedKey is the key of UpgradeExecution that ends the upgrade of an execution which ended without a report. Never reword it:
// UpgradeExecution hashes it.
func EndedKey(execution string, at time.Time) string {
	return "ended " + execution + " " + at.Format(time.RFC3339)
}
