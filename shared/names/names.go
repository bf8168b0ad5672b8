// Package names fixes what things are called, on AWS and in drover's own buckets: stack names, roles, keys.
// Everything that matches resources by prefix (IAM policies, event patterns, the stack-event function) relies on it.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Bus is the event bus that drover's own events go to.
const Bus = "drover"

// Prefix starts the name of everything drover makes in an account, so that policies can be scoped to it.
const Prefix = "drover-"

// Stacks of a cluster, in the order in which they are changed.
const (
	Network      = "network"
	ControlPlane = "control-plane"
	// Addons holds the add-ons that nodes need before they can be Ready (CNI, kube-proxy, pod identity).
	Addons = "addons"
	// PoolPrefix starts the stack of each pool: pool-<name>.
	PoolPrefix = "pool-"
	// NodeAddons holds the add-ons that need nodes to run on, so it comes after the pools.
	NodeAddons = "addons-on-nodes"
)

// Tags that every stack of a cluster carries.
const (
	TagCluster     = "drover:cluster"
	TagStack       = "drover:stack"
	TagSpecVersion = "drover:spec-version"
	TagChecksum    = "drover:checksum"
	// TagRelease pins a cluster to a release by content: <release name>@<sha256>.
	TagRelease = "drover:release"
	// TagRollAt is when the nodes of a pool were last replaced on demand, in RFC 3339 and UTC. It is on the pool's stack and
	// instances.
	TagRollAt = "drover:roll-at"
	// TagTemplate is the key of the template that a pool's stack was made of, in the state bucket: its parameters can be changed
	// without anything else.
	TagTemplate = "drover:template"
	// TagTemplateVersion is the template version of a pool's stack, if it is another than the first: those of v1 have none.
	TagTemplateVersion = "drover:template-version"
	// TagPace is only there to make a difference, where nothing but parameters change that no resource has: CloudFormation would
	// find nothing to do. It counts how often one change has done so.
	TagPace = "drover:pace"
	// TagSettled is only there to make a difference, where a stack that was rolled back has no other.
	TagSettled = "drover:settled"
)

// IsInstance tells an instance's id from a node's name, which on EC2 is one of the DNS and has dots.
func IsInstance(s string) bool { return strings.HasPrefix(s, "i-") && !strings.Contains(s, ".") }

// EKSCluster is the name of a cluster's EKS cluster; prefixed so that IAM policies can name it.
func EKSCluster(cluster string) string { return Prefix + cluster }

// TagSilence with the value SilenceUpgrade says that upgrades may switch an alarm's actions off meanwhile. Whoever owns the alarm sets it.
const (
	TagSilence     = "drover:silence"
	SilenceUpgrade = "upgrade"
)

// OwnershipTag is the tag by which Kubernetes' cloud integrations know what belongs to a cluster; its value is "owned".
func OwnershipTag(cluster string) string { return "kubernetes.io/cluster/" + EKSCluster(cluster) }

// PoolStack is the stack of a pool, without the cluster's prefix.
func PoolStack(pool string) string { return PoolPrefix + pool }

// Stack is the CloudFormation stack name of one of a cluster's stacks.
func Stack(cluster, stack string) string { return Prefix + cluster + "-" + stack }

// IsStack says whether a name is that of a stack of a cluster, without the cluster's prefix.
func IsStack(name string) bool {
	switch name {
	case Network, ControlPlane, Addons, NodeAddons:
		return true
	}
	pool, ok := strings.CutPrefix(name, PoolPrefix)
	return ok && pool != ""
}

// SplitStack tells the cluster and the stack of a CloudFormation stack name. No two clusters can ask for the same name: see
// docs/adr/0003.
func SplitStack(stackName string) (cluster, stack string, ok bool) {
	rest, ours := strings.CutPrefix(stackName, Prefix)
	if !ours {
		return "", "", false
	}
	if cluster, pool, ok := strings.Cut(rest, "-"+PoolPrefix); ok {
		return cluster, PoolPrefix + pool, cluster != "" && pool != ""
	}
	for _, stack := range []string{Network, ControlPlane, Addons, NodeAddons} {
		if cluster, ok := strings.CutSuffix(rest, "-"+stack); ok {
			return cluster, stack, cluster != ""
		}
	}
	return "", "", false
}

// Group is the Auto Scaling group of a pool.
func Group(cluster, pool string) string { return Stack(cluster, PoolStack(pool)) }

// GroupResource is the logical id of a pool's Auto Scaling group in its stack: what signals are sent to.
const GroupResource = "Group"

// ClusterResource is the logical id of the EKS cluster in a control plane's stack.
const ClusterResource = "Cluster"

// StackOfARN returns the stack name in a CloudFormation stack ARN (arn:…:stack/<name>[/<uuid>]), or "" if it is none.
func StackOfARN(arn string) string {
	_, rest, found := strings.Cut(arn, ":stack/")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// Keys in the specs bucket.
const (
	ClusterSpecs = "clusters/"
	ReleaseSpecs = "releases/"
)

// ClusterSpec is the key of a cluster's spec in the specs bucket.
func ClusterSpec(cluster string) string { return ClusterSpecs + cluster + ".yaml" }

// ReleaseSpec is the key of a release in the specs bucket.
func ReleaseSpec(release string) string { return ReleaseSpecs + release + ".yaml" }

// ClusterOfKey returns the cluster that a key of the specs bucket is the spec of. Keys with further slashes,
// other suffixes or empty names are none, nor are those that cannot be printed: a status would show them to others.
func ClusterOfKey(key string) (string, bool) { return nameOfKey(key, ClusterSpecs) }

// ReleaseOfKey returns the release that a key of the specs bucket is: what ReleaseSpec makes of it. The channels are one such key.
func ReleaseOfKey(key string) (string, bool) { return nameOfKey(key, ReleaseSpecs) }

func nameOfKey(key, prefix string) (string, bool) {
	name, ours := strings.CutPrefix(key, prefix)
	name, yaml := strings.CutSuffix(name, ".yaml")
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	return name, ours && yaml && name != "" && !strings.Contains(name, "/") && !strings.ContainsFunc(name, unprintable)
}

// Keys in the state bucket.

// Statuses is where the statuses of clusters are kept.
const Statuses = "status/clusters/"

// Status is the key of a cluster's status.
func Status(cluster string) string { return Statuses + cluster + ".json" }

// ReleaseStatuses is where it is kept what was found out about releases.
const ReleaseStatuses = "status/releases/"

// ReleaseStatus is the key of what was found out about a release, or about the channels.
func ReleaseStatus(release string) string { return ReleaseStatuses + release + ".json" }

// UnreadUploads is the key of the list of objects in the specs bucket that drover does not read.
const UnreadUploads = "status/unread.json"

// Template is the content address of a rendered template.
func Template(body []byte) string { return "templates/" + SHA256(body) + ".yaml" }

// UserData is the content address of node configuration.
func UserData(body []byte) string { return "userdata/" + SHA256(body) }

// PinnedReleases is where the releases are kept that clusters are pinned to, by content.
const PinnedReleases = "releases/"

// PinnedRelease is the content address of a release that a cluster is pinned to.
func PinnedRelease(sha string) string { return PinnedReleases + sha + ".yaml" }

// Plan is the content address of a plan: the changes between two steps of a converge, too large for a payload.
func Plan(body []byte) string { return "plans/" + SHA256(body) + ".json" }

// Leases is where the leases of clusters are kept.
const Leases = "leases/"

// Lease is the key of a cluster's lease.
func Lease(cluster string) string { return Leases + cluster + ".json" }

// Waiters is where executions that wait for a stack event are kept.
const Waiters = "waiters/"

// Waiter is the key of the execution waiting for a stack: a stack changes once at a time, so its name is enough.
func Waiter(stackName string) string { return Waiters + stackName + ".json" }

// Rolls is the key of when pools of a cluster are to be rolled because somebody said so.
func Rolls(cluster string) string { return AllRolls + cluster + ".json" }

// AllRolls is where those of all clusters are kept.
const AllRolls = "rolls/"

// Upgrades is where the records of clusters' upgrades are kept.
const Upgrades = "upgrades/"

// Upgrade is the key of the record of a cluster's upgrade.
func Upgrade(cluster string) string { return Upgrades + cluster + ".json" }

// UpgradeBaselines is where those of a cluster are kept.
func UpgradeBaselines(cluster string) string { return "baselines/" + cluster + "/" }

// UpgradeBaseline is the key of how a cluster's workloads were before one of its upgrades.
func UpgradeBaseline(cluster string, number int64) string {
	return fmt.Sprintf("%s%d.json", UpgradeBaselines(cluster), number)
}

// Channels is the key of what the channels were at when clusters were last woken for it.
const Channels = "channels.json"

// Dues is where clusters are listed that something is to be done for later, by time.
const Dues = "due/"

// Due is the key of something to do for a cluster at a time: in the order of times.
func Due(at time.Time, cluster string) string {
	return Dues + at.UTC().Format(time.RFC3339) + "/" + cluster
}

// ParseDue reads a key that Due made.
func ParseDue(key string) (at time.Time, cluster string, ok bool) {
	text, cluster, ok := strings.Cut(strings.TrimPrefix(key, Dues), "/")
	at, err := time.Parse(time.RFC3339, text)
	return at, cluster, ok && err == nil && cluster != "" && Due(at, cluster) == key
}

// Inspection is the key that has the next sweep audit a cluster: one of its stacks was changed outside drover.
func Inspection(cluster string) string { return inspections + cluster }

const inspections = Dues + "inspect/"

// ParseInspection returns the cluster of a key that Inspection made.
func ParseInspection(key string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(key, inspections)
	return cluster, ok && cluster != "" && !strings.Contains(cluster, "/")
}

// SHA256 is the content address in hex.
func SHA256(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// ConvergeExecution names the execution that converges a version of a spec after another was acted on: the same step twice is
// one execution, going back to an earlier version is another. Step Functions allows 80 characters.
func ConvergeExecution(cluster, specVersion, after string) string {
	return fmt.Sprintf("%.60s-%s", cluster, SHA256([]byte(cluster + "\x00" + specVersion + "\x00" + after))[:16])
}

// again ends the names of executions that nobody asked for; those of others end in a digest, a number, or as a person wishes.
const again = "-again"

// AgainExecution names the execution by which drover itself converges a version of a spec once more: the same reason twice is one
// execution.
func AgainExecution(cluster, specVersion, why string) string {
	return fmt.Sprintf("%.50s-%s", cluster, SHA256([]byte(cluster + "\x00" + specVersion + "\x00" + why))[:16]) + again
}

// IsAgain says whether an execution, by name or ARN, is one that drover started by itself to converge a spec once more.
func IsAgain(execution string) bool { return strings.HasSuffix(execution, again) }

// DueExecution names the execution that does what is due for a cluster at a time: as above, twice is once.
func DueExecution(cluster string, at time.Time) string {
	return fmt.Sprintf("%.60s-%s", cluster, SHA256([]byte(Due(at, cluster)))[:16])
}

// UpgradeStart names the execution that makes the upgrade of a cluster that was asked for by a key, after so many others: while
// nothing came of it, twice within an hour is once.
func UpgradeStart(cluster, key string, after int64, now time.Time) string {
	hour := now.UTC().Truncate(time.Hour).Format(time.RFC3339)
	return fmt.Sprintf("%.60s-%s", cluster, SHA256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s", cluster, key, after, hour))[:16])
}

// UpgradeExecution names the execution of the converge machine that makes a step of an upgrade, which an execution of the upgrade machine
// leads, at one of its tries: as above.
func UpgradeExecution(cluster, leader string, step, try int) string {
	return fmt.Sprintf("%s-upgrade-%s-%d-%d", cluster, SHA256([]byte(leader))[:16], step, try)
}

// MakesUpgrade says whether an execution of the converge machine, by its ARN, makes a step of an upgrade.
func MakesUpgrade(cluster, execution string) bool {
	return strings.HasPrefix(execution[strings.LastIndex(execution, ":")+1:], cluster+"-upgrade-")
}

// Function is the name of one of drover's Lambda functions.
func Function(step string) string { return Prefix + step }

// FunctionLogs is the log group of one of drover's Lambda functions.
func FunctionLogs(step string) string { return "/aws/lambda/" + Function(step) }

// Role is the name of the role of one of drover's functions in a cell. IAM is global, cells are regional.
func Role(region, step string) string { return Prefix + region + "-" + step }

// RoleARN is the role's ARN.
func RoleARN(partition, account, region, step string) string {
	return fmt.Sprintf("arn:%s:iam::%s:role/%s", partition, account, Role(region, step))
}

// ClusterRoles is the path of the roles and instance profiles that stacks of clusters make. drover's own have none, so that no
// policy on one kind can mean the other, however clusters are called.
const ClusterRoles = "/drover/"

// Boundary is the name of a cell's permissions boundary: what the roles of its clusters cannot exceed.
func Boundary(region string) string { return Prefix + region + "-boundary" }

// BoundaryARN is the boundary's ARN.
func BoundaryARN(partition, account, region string) string {
	return fmt.Sprintf("arn:%s:iam::%s:policy/%s", partition, account, Boundary(region))
}

// DNSSuffix of a partition's services.
// https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html
func DNSSuffix(partition string) string {
	if partition == "aws-cn" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// SpecsBucket is the bucket that people write specs to.
func SpecsBucket(account, region string) string { return Prefix + "specs-" + account + "-" + region }

// StateBucket is the bucket that only drover writes.
func StateBucket(account, region string) string { return Prefix + "state-" + account + "-" + region }
