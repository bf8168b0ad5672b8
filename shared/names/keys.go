package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// SpecsBucket returns the bucket to which users write specs.
func SpecsBucket(account, region string) string { return Prefix + "specs-" + account + "-" + region }

// StateBucket returns the bucket that only drover writes.
func StateBucket(account, region string) string { return Prefix + "state-" + account + "-" + region }

// Keys in the specs bucket.
const (
	ClusterSpecs = "clusters/"
	ReleaseSpecs = "releases/"
	Rollouts     = "rollouts/"
	Freezes      = "freezes/"
	Decisions    = "decisions/"
)

// ClusterSpec returns the key of a cluster's spec in the specs bucket.
func ClusterSpec(cluster string) string { return ClusterSpecs + cluster + ".yaml" }

// ReleaseSpec returns the key of a release in the specs bucket.
func ReleaseSpec(release string) string { return ReleaseSpecs + release + ".yaml" }

// Rollout returns the key of a rollout in the specs bucket.
func Rollout(rollout string) string { return Rollouts + rollout + ".yaml" }

// Freeze returns the key of a freeze in the specs bucket.
func Freeze(freeze string) string { return Freezes + freeze + ".yaml" }

// Decision returns the key of a decision on a rollout in the specs bucket.
func Decision(rollout, decision string) string { return Decisions + rollout + "/" + decision + ".yaml" }

// ClusterOfKey returns the cluster whose spec has a key of the specs bucket. ok is false for keys with further slashes, other suffixes or
// empty names. It is also false for unprintable keys, because a status would show them.
func ClusterOfKey(key string) (cluster string, ok bool) { return nameOfKey(key, ClusterSpecs) }

// ReleaseOfKey returns the release whose key in the specs bucket this is. It inverts ReleaseSpec. The channels file is one such key.
func ReleaseOfKey(key string) (release string, ok bool) { return nameOfKey(key, ReleaseSpecs) }

func nameOfKey(key, prefix string) (name string, ok bool) {
	name, hasPrefix := strings.CutPrefix(key, prefix)
	name, isYAML := strings.CutSuffix(name, ".yaml")
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	return name, hasPrefix && isYAML && name != "" && !strings.Contains(name, "/") && !strings.ContainsFunc(name, unprintable)
}

// Keys in the state bucket.

// Statuses is the prefix of clusters' statuses.
const Statuses = "status/clusters/"

// Status returns the key of a cluster's status.
func Status(cluster string) string { return Statuses + cluster + ".json" }

// ReleaseStatuses is the prefix of releases' statuses.
const ReleaseStatuses = "status/releases/"

// ReleaseStatus returns the key of the status of a release, or of the channels.
func ReleaseStatus(release string) string { return ReleaseStatuses + release + ".json" }

// IgnoredUploads is the key of the list of objects in the specs bucket that drover does not read.
const IgnoredUploads = "status/ignored.json"

// Template returns the key of a rendered template, by content.
func Template(body []byte) string { return "templates/" + SHA256(body) + ".yaml" }

// UserData returns the key of node configuration, by content.
func UserData(body []byte) string { return "userdata/" + SHA256(body) }

// RelayCodes is the prefix of the code of clusters' relays.
const RelayCodes = "relay/"

// RelayCode returns the key of the code of relays, by content.
func RelayCode(sha string) string { return RelayCodes + sha + ".zip" }

// PinnedReleases is the prefix of the releases to which clusters are pinned.
const PinnedReleases = "releases/"

// PinnedRelease returns the key of a pinned release, by content.
func PinnedRelease(sha string) string { return PinnedReleases + sha + ".yaml" }

// Plan returns the key of a plan, by content. Plans are too large for a state machine's payload.
func Plan(body []byte) string { return "plans/" + SHA256(body) + ".json" }

// Leases is the prefix of clusters' leases.
const Leases = "leases/"

// Lease returns the key of a cluster's lease.
func Lease(cluster string) string { return Leases + cluster + ".json" }

// Waiters is the prefix of the task tokens of executions that wait for a stack.
const Waiters = "waiters/"

// Waiter returns the key of the execution that waits for a stack. A stack has one operation at a time, so one key is enough.
func Waiter(stackName string) string { return Waiters + stackName + ".json" }

// RollsOf returns the key of the times at which drover rolls pools of a cluster.
func RollsOf(cluster string) string { return Rolls + cluster + ".json" }

// Rolls is the prefix of the keys that RollsOf returns.
const Rolls = "rolls/"

// Upgrades is the prefix of the records of clusters' upgrades.
const Upgrades = "upgrades/"

// Upgrade returns the key of the record of a cluster's upgrade.
func Upgrade(cluster string) string { return Upgrades + cluster + ".json" }

// UpgradeBaselines returns the prefix of a cluster's baselines.
func UpgradeBaselines(cluster string) string { return "baselines/" + cluster + "/" }

// UpgradeBaseline returns the key of a baseline: the state of a cluster's workloads before one of its upgrades.
func UpgradeBaseline(cluster string, number int64) string {
	return fmt.Sprintf("%s%d.json", UpgradeBaselines(cluster), number)
}

// HandledChannels is the key of the channels' content for which clusters were last planned.
const HandledChannels = "channels.json"

// Dues is the prefix of scheduled work, ordered by time.
const Dues = "due/"

// Due returns the key of a cluster's scheduled work at a time.
func Due(at time.Time, cluster string) string {
	return Dues + at.UTC().Format(time.RFC3339) + "/" + cluster
}

// ParseDue reads a key that Due returned.
func ParseDue(key string) (at time.Time, cluster string, ok bool) {
	text, cluster, ok := strings.Cut(strings.TrimPrefix(key, Dues), "/")
	at, err := time.Parse(time.RFC3339, text)
	return at, cluster, ok && err == nil && cluster != "" && Due(at, cluster) == key
}

// Inspection returns the key that makes the next sweep audit a cluster: a stack was changed outside drover, the relay of a private cluster
// was deleted, or a node is about to reach its NotReady limit.
func Inspection(cluster string) string { return inspections + cluster }

const inspections = Dues + "inspect/"

// ParseInspection returns the cluster of a key that Inspection returned.
func ParseInspection(key string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(key, inspections)
	return cluster, ok && cluster != "" && !strings.Contains(cluster, "/")
}

// SHA256 returns the SHA-256 of a body in hex: its content address.
func SHA256(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
