package names

// Tags of clusters' stacks.
const (
	TagCluster     = "drover:cluster"
	TagStack       = "drover:stack"
	TagSpecVersion = "drover:spec-version"
	TagChecksum    = "drover:checksum"
	// TagRelease pins a cluster to a release by content: <release name>@<sha256>.
	TagRelease = "drover:release"
	// TagRollAt is the time of the last requested roll of a pool, in RFC 3339 and UTC. The pool's stack and instances carry it.
	TagRollAt = "drover:roll-at"
	// TagTemplate is the key of a pool stack's template in the state bucket. With it, change can update the parameters alone.
	TagTemplate = "drover:template"
	// TagTemplateVersion is the template version of a pool's stack. Stacks of v1 do not have it.
	TagTemplateVersion = "drover:template-version"
	// TagPace makes an update differ that changes only parameters which no resource uses. Otherwise CloudFormation would reject it as empty.
	// It counts such updates within one change.
	TagPace = "drover:pace"
	// TagSettled makes the update of a rolled-back stack differ if nothing else does. It also marks the change that finished a repair.
	TagSettled = "drover:settled"
	// TagRelay is on an EKS cluster that has a relay. Without it, an endpoint that is not open to everyone was closed outside drover.
	TagRelay = "drover:relay"
)

// ChecksumRepair is the checksum of a stack between the two updates of a repair.
const ChecksumRepair = "repair"

// TagSilence with the value SilenceUpgrade allows an upgrade to disable an alarm's actions while it runs. The alarm's owner sets it.
const (
	TagSilence     = "drover:silence"
	SilenceUpgrade = "upgrade"
)

// OwnershipTag returns the tag by which Kubernetes' cloud integrations recognize the resources of a cluster. Its value is "owned".
func OwnershipTag(cluster string) string { return "kubernetes.io/cluster/" + EKSCluster(cluster) }

// LabelPool is the label of a node with the name of its pool.
const LabelPool = "drover.run/pool"
