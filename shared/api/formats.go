package api

// Formats are the allowed forms of strings: one pattern each, for validation and for the JSON Schemas, and a check where a pattern is not
// enough.

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/drover-run/drover/shared/calendar"
)

// Format is the form of a string.
type Format struct {
	// Name is the format's name in rules.
	Name string
	// Pattern is a regular expression with the same meaning in Go and ECMAScript. It is empty if any string is allowed.
	Pattern string
	// MaxLength in characters. 0 is no limit.
	MaxLength int
	// Means completes the sentence "must be …".
	Means string
	// check returns further errors of a value with the right pattern and length.
	check   func(string) []string
	pattern *regexp.Regexp
}

// Wrong returns what is wrong with a value, or nothing.
func (f *Format) Wrong(value string) []string {
	if f.MaxLength > 0 && utf8.RuneCountInString(value) > f.MaxLength {
		return []string{fmt.Sprintf("must be no more than %d characters", f.MaxLength)}
	}
	if f.pattern != nil && !f.pattern.MatchString(value) {
		return []string{"must be " + f.Means}
	}
	if f.check != nil {
		return f.check(value)
	}
	return nil
}

// MaxClusterName and MaxPoolName are chosen so that all derived names fit AWS's limits. The longest is a pool's stack,
// drover-<cluster>-pool-<pool>: CloudFormation allows 128 characters. EKS allows 100 for a cluster.
const (
	MaxClusterName = 50
	MaxPoolName    = 63
)

// label is a DNS label (RFC 1123), as in Kubernetes.
const label = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`

// qualifiedName is a Kubernetes label key: an optional DNS prefix, a slash, a name.
const qualifiedName = `^(` + label + `(\.` + label + `)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`

const ipv4Range = `an IPv4 range, such as "10.0.0.0/16"`

var formats = index(
	Format{Name: "name", Pattern: `^` + label + `(\.` + label + `)*$`, MaxLength: 63,
		Means: "lower case letters, digits, '-' and '.', starting and ending with a letter or digit", check: content.IsDNS1123Subdomain},
	Format{Name: "release-name", Pattern: `^` + label + `(\.` + label + `)*$`, MaxLength: 63,
		Means: "lower case letters, digits, '-' and '.', starting and ending with a letter or digit", check: noChannels},
	Format{Name: "channels-name", Pattern: `^` + ChannelsName + `$`, Means: ChannelsName + ": there is one such object"},
	Format{Name: "cluster-name", Pattern: `^` + label + `$`, MaxLength: MaxClusterName,
		Means: "lower case letters, digits and '-', starting and ending with a letter or digit", check: unambiguousCluster},
	Format{Name: "pool-name", Pattern: `^` + label + `$`, MaxLength: MaxPoolName,
		Means: "lower case letters, digits and '-', starting and ending with a letter or digit"},
	Format{Name: "kubernetes-version", Pattern: `^1\.(0|[1-9][0-9]{0,2})$`, Means: `a minor version, such as "1.36"`},
	Format{Name: "template-version", Pattern: `^v[1-9][0-9]{0,3}$`, Means: `a template version, such as "v1"`},
	Format{Name: "cidr", Pattern: `^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$`, Means: ipv4Range, check: canonicalCIDR},
	// Availability zones only: EKS puts no control plane into local and wavelength zones.
	// https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
	Format{Name: "zone", Pattern: `^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}[a-f]$`, Means: `an availability zone, such as "us-east-1a"`},
	Format{Name: "vpc-id", Pattern: `^vpc-([0-9a-f]{8}|[0-9a-f]{17})$`, Means: `a VPC id, such as "vpc-0123456789abcdef0"`},
	Format{Name: "allocation-id", Pattern: `^eipalloc-([0-9a-f]{8}|[0-9a-f]{17})$`,
		Means: `the allocation id of an Elastic IP address, such as "eipalloc-0123456789abcdef0"`},
	Format{Name: "endpoint-service", Pattern: `^[a-z0-9]+([.-][a-z0-9]+)*$`, MaxLength: 64,
		Means: `an AWS service as in the name of its VPC endpoint, such as "ssm" or "ecr.api"`},
	// https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-s3-create-flow-log.html
	Format{Name: "bucket-arn", Pattern: `^arn:aws(-[a-z]+)*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()-]+)*/?$`, MaxLength: 512,
		Means: `the ARN of a bucket or of a folder in it, such as "arn:aws:s3:::flow-logs/prod"`, check: noReservedFolder},
	Format{Name: "subnet-id", Pattern: `^subnet-([0-9a-f]{8}|[0-9a-f]{17})$`, Means: `a subnet id, such as "subnet-0123456789abcdef0"`},
	Format{Name: "ami-id", Pattern: `^ami-([0-9a-f]{8}|[0-9a-f]{17})$`, Means: `an AMI id, such as "ami-0123456789abcdef0"`},
	Format{
		Name: "security-group-id", Pattern: `^sg-([0-9a-f]{8}|[0-9a-f]{17})$`, Means: `a security group id, such as "sg-0123456789abcdef0"`,
	},
	Format{Name: "snapshot-id", Pattern: `^snap-([0-9a-f]{8}|[0-9a-f]{17})$`, Means: `a snapshot id, such as "snap-0123456789abcdef0"`},
	// The first letter is the root disk's. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html
	Format{Name: "device", Pattern: `^/dev/(xvd|sd)[b-z]$`, Means: `the name of a device, from "/dev/xvdb" to "/dev/xvdz"; the root disk is ` +
		`"/dev/xvda"`},
	Format{Name: "image-key", Pattern: `^((amd64|arm64)(-nvidia)?|amd64-neuron|bottlerocket-(amd64|arm64)(-nvidia)?(-fips)?)$`,
		Means: `a kind of image, such as "amd64", "arm64-nvidia", "amd64-neuron" or "bottlerocket-arm64-fips"`},
	Format{Name: "region", Pattern: `^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`, Means: `a region, such as "us-east-1"`},
	Format{Name: "kms-key-arn", Pattern: `^arn:aws(-[a-z]+)*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]{1,128}$`,
		Means: `the ARN of a KMS key (not of an alias), such as "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"`},
	// EKS accepts no STS session ARN, only the role behind it.
	// https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
	Format{Name: "principal-arn", Pattern: `^arn:aws(-[a-z]+)*:iam::[0-9]{12}:(role|user)/([\x21-\x7e]{1,510}/)?[A-Za-z0-9_+=,.@-]{1,64}$`,
		Means: `the ARN of an IAM role or user, such as "arn:aws:iam::111122223333:role/admins"`, check: notDroversOwn},
	Format{Name: "role-arn", Pattern: `^arn:aws(-[a-z]+)*:iam::[0-9]{12}:role/([\x21-\x7e]{1,510}/)?[A-Za-z0-9_+=,.@-]{1,64}$`,
		Means: `the ARN of an IAM role, such as "arn:aws:iam::111122223333:role/workloads/checkout"`, check: notOwnRole},
	Format{Name: "managed-policy", Pattern: `^([A-Za-z][A-Za-z0-9_-]*/)*[A-Za-z0-9_+=,.@-]{1,128}$`, MaxLength: 512,
		Means: `the name of an AWS managed policy, such as "AmazonS3ReadOnlyAccess"`},
	Format{Name: "addon-policy", Pattern: `^(` + strings.Join(addonPolicyNames, "|") + `)$`,
		Means: "a policy for which drover creates a role: " + strings.Join(addonPolicyNames, ", ")},
	Format{Name: "namespace-name", Pattern: `^` + label + `$`, MaxLength: 63, Means: `the name of a namespace, such as "shop"`},
	Format{Name: "service-account", Pattern: `^` + label + `(\.` + label + `)*$`, MaxLength: 253,
		Means: "the name of a service account: lower case letters, digits, '-' and '.', starting and ending with a letter or digit"},
	Format{Name: "group", Pattern: `^[A-Za-z0-9][A-Za-z0-9_.@:/*-]*$`, MaxLength: 63, Means: "a Kubernetes group", check: unreservedGroup},
	Format{Name: "access-policy", Pattern: `^[A-Z][A-Za-z0-9]{1,127}$`, Means: `the name of an EKS access policy, such as ` +
		`"AmazonEKSViewPolicy"`},
	// EKS allows wildcards in namespaces.
	// https://docs.aws.amazon.com/eks/latest/userguide/access-policies.html
	Format{Name: "namespace", Pattern: `^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`, MaxLength: 63, Means: `a namespace, or a pattern of them ` +
		`such as "dev-*"`},
	Format{Name: "instance-type", Pattern: `^[a-z][a-z0-9]*(-[a-z0-9]+)?\.(nano|micro|small|medium|large|[0-9]*xlarge|metal(-[0-9]+xl)?)$`,
		Means: `an instance type, such as "m7i.large"`},
	Format{Name: "label-key", Pattern: qualifiedName, Means: `a label key, such as "example.com/team"`, check: content.IsLabelKey},
	Format{Name: "label-value", Pattern: `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`, MaxLength: 63,
		Means: "letters, digits, '-', '_' and '.', starting and ending with a letter or digit, or empty"},
	// https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
	Format{Name: "tag-key", Pattern: `^[\p{L}\p{Z}\p{N}_.:/=+@-]+$`, MaxLength: 128,
		Means: "letters, digits, spaces and _.:/=+-@", check: unreservedTag},
	Format{Name: "tag-value", Pattern: `^[\p{L}\p{Z}\p{N}_.:/=+@-]+$`, MaxLength: 256,
		Means: "letters, digits, spaces and _.:/=+-@, at least one (CloudFormation does not accept empty tags)"},
	Format{Name: "kubelet-flag", Pattern: `^--[a-z][a-z0-9-]*(=[^\x00-\x1f]*)?$`,
		Means: `a flag of the kubelet in one word, such as "--v=2"`, check: notSetByDrover},
	Format{Name: "path", Pattern: `^/[^\x00-\x1f]+$`, MaxLength: 4095, Means: "an absolute path", check: cleanPath},
	Format{Name: "mode", Pattern: `^[0-7]{3,4}$`, Means: `an octal mode, such as "0644"`},
	// https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCapability.html
	Format{Name: "capability-name", Pattern: `^[A-Za-z0-9][A-Za-z0-9_-]*$`, MaxLength: 100,
		Means: "letters, digits, '-' and '_', starting with a letter or digit"},
	// https://docs.aws.amazon.com/singlesignon/latest/APIReference/API_InstanceMetadata.html
	Format{Name: "identity-center", Pattern: `^arn:aws(-[a-z]+)*:sso:::instance/(sso)?ins-[a-zA-Z0-9.-]{16}$`,
		Means: `the ARN of an instance of IAM Identity Center, such as "arn:aws:sso:::instance/ssoins-0123456789abcdef"`},
	// https://docs.aws.amazon.com/singlesignon/latest/IdentityStoreAPIReference/API_Group.html
	Format{Name: "identity-group", Pattern: `^([0-9a-f]{10}-)?[A-Fa-f0-9]{8}(-[A-Fa-f0-9]{4}){3}-[A-Fa-f0-9]{12}$`,
		Means: `the ID of a group of IAM Identity Center, such as "1234567890-01234567-89ab-cdef-0123-456789abcdef"`},
	Format{Name: "issuer-url", Pattern: `^https://[a-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$`, MaxLength: 512,
		Means: `the https URL of an issuer, such as "https://login.example.com"`},
	Format{Name: "oidc-text", Pattern: `^[\x21-\x7e]+$`, MaxLength: 253, Means: "printable characters without spaces"},
	Format{Name: "oidc-prefix", Pattern: `^[\x21-\x7e]+$`, MaxLength: 253, Means: `a prefix, such as "acme:"`, check: unreservedGroup},
	Format{Name: "single-duration", Pattern: `^[1-9][0-9]{0,5}[hms]$`, Means: `a duration in one unit, such as "30m"`},
	Format{Name: "port-range", Pattern: `^[1-9][0-9]{0,4}-[1-9][0-9]{0,4}$`, Means: `a range of ports, such as "30000-32767"`,
		check: orderedPorts},
	Format{Name: "duration", Pattern: `^([0-9]{1,6}[hms]){1,3}$`, Means: `a duration, such as "90s" or "1h30m"`},
	Format{Name: "time", Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})$`,
		Means: `a time of RFC 3339 in whole seconds, such as "2026-11-20T22:00:00Z"`, check: realTime},
	Format{Name: "time-of-day", Pattern: `^([01][0-9]|2[0-3]):[0-5][0-9]$`, Means: `a time of day in hours and minutes, such as "22:00"`},
	Format{Name: "time-zone", Pattern: `^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*)*$`, MaxLength: 64,
		Means: `the name of a time zone, such as "Europe/Berlin"`, check: knownZone},
	Format{Name: "cron", Pattern: `^[^\x00-\x1f()]+$`, MaxLength: 250,
		Means: `the six fields of AWS's cron, without "cron()", such as "0 22 ? * MON-FRI *"`, check: cronOfAWS},
	Format{Name: "sha256", Pattern: `^[0-9a-f]{64}$`, Means: "a SHA-256 in 64 hex digits"},
	Format{Name: "stage-name", Pattern: `^` + label + `$`, MaxLength: 63,
		Means: "lower case letters, digits and '-', starting and ending with a letter or digit"},
	Format{Name: "stage-path", Pattern: `^` + label + `(/[A-Za-z0-9_.-]{1,63}){0,2}$`, MaxLength: 255,
		Means: `the name of a stage of the plan, such as "prod/eu-west-1/1"`},
	Format{Name: "group-value", Pattern: `^(\*|[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$`, MaxLength: 63, Means: `a label value, or "*"`},
	Format{Name: "line", Pattern: `^[^\x00-\x1f\x7f]+$`, MaxLength: 200, Means: "a line of text"},
	// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
	Format{Name: "alarm-name", Pattern: `^[^\x00-\x1f\x7f]+$`, MaxLength: 255, Means: "the name of a CloudWatch alarm"},
	// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/#NodeStatus
	Format{Name: "condition", Pattern: qualifiedName, MaxLength: 316, Means: `a type of node conditions, such as "example.com/NetworkReady"`,
		check: goodWhenTrue},
	Format{Name: "proxy-url", Pattern: `^https?://[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?/?$`, MaxLength: 255,
		Means: `the URL of an HTTP proxy without a user and a path, such as "http://proxy.example.com:3128"`},
	Format{Name: "no-proxy", Pattern: `^[.]?[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5}|/[0-9]{1,2})?$`, MaxLength: 253,
		Means: `a host, a domain such as ".example.com", or an IPv4 range such as "10.0.0.0/16"`},
	Format{Name: "certificates", MaxLength: 8 << 10, Means: "certificates in PEM", check: certificates},
	Format{Name: "command", Pattern: `^[^\x00]*[^\x00\s][^\x00]*$`, Means: "a command of bash, without NUL characters"},
	Format{Name: "addon-name", Pattern: `^[A-Za-z0-9][A-Za-z0-9_-]*$`, MaxLength: 100, Means: `the name of an EKS add-on, such as "vpc-cni"`},
	Format{Name: "addon-version", Pattern: `^v?[0-9][A-Za-z0-9.+-]*$`, MaxLength: 128, Means: `the version of an add-on, such as ` +
		`"v1.21.1-eksbuild.1"`},
)

func index(list ...Format) map[string]*Format {
	byName := make(map[string]*Format, len(list))
	for _, f := range list {
		if f.Pattern != "" {
			f.pattern = regexp.MustCompile(f.Pattern)
		}
		byName[f.Name] = &f
	}
	return byName
}

func formatNamed(name string) *Format {
	f, ok := formats[name]
	if !ok {
		panic(fmt.Sprintf("unknown format %q", name))
	}
	return f
}

// unambiguousCluster rejects names whose stacks could be another cluster's. The stack drover-a-pool-network is the network of a cluster
// a-pool, or the pool "network" of a cluster a. The same holds for drover-a-node-addons.
func unambiguousCluster(name string) []string {
	if strings.HasSuffix(name, "-node") || strings.HasSuffix(name, "-pool") || strings.Contains(name, "-pool-") {
		return []string{`must not end in "-node" or "-pool" nor contain "-pool-": its stacks could have the names of another cluster's`}
	}
	return nil
}

func noChannels(name string) []string {
	if name == ChannelsName {
		return []string{"is not a release: releases/" + ChannelsName + ".yaml names the release of each channel"}
	}
	return nil
}

// noReservedFolder rejects the name of the folder that AWS itself makes.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFlowLogs.html (LogDestination)
func noReservedFolder(arn string) []string {
	if slices.Contains(strings.Split(arn, "/"), "AWSLogs") {
		return []string{`must not have the folder "AWSLogs", which AWS adds`}
	}
	return nil
}

func knownZone(name string) []string {
	if _, err := calendar.Zone(name); err != nil {
		return []string{"must be a time zone of the IANA database, such as \"Europe/Berlin\""}
	}
	return nil
}

func cronOfAWS(text string) []string {
	if _, err := calendar.ParseCron(text); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func canonicalCIDR(value string) []string {
	prefix, err := netip.ParsePrefix(value)
	switch {
	case err != nil:
		return []string{"must be " + ipv4Range}
	case prefix.Masked() != prefix:
		return []string{fmt.Sprintf("must start at the first address of the range: %s", prefix.Masked())}
	}
	return nil
}

// droversRole matches the names that names.Role gives to the functions with access entries of their own.
var droversRole = regexp.MustCompile(`:role/drover-[a-z]+(-[a-z]+)+-[0-9]{1,2}-(prepare|join|drain)$`)

func notDroversOwn(arn string) []string {
	if droversRole.MatchString(arn) {
		return []string{"is a role of drover, which already has access"}
	}
	return nil
}

// ownRole matches the roles of drover's functions, and those that clusters' stacks create.
var ownRole = regexp.MustCompile(`:role/drover[-/]`)

func notOwnRole(arn string) []string {
	if ownRole.MatchString(arn) {
		return []string{"is a role of drover: name a role of your own"}
	}
	return nil
}

// https://docs.aws.amazon.com/eks/latest/userguide/create-k8s-group-access-entry.html
func unreservedGroup(group string) []string {
	for _, prefix := range []string{"system:", "eks:", "aws:", "amazon:", "iam:", "drover:"} {
		if strings.HasPrefix(group, prefix) {
			return []string{fmt.Sprintf("must not start with %q: EKS and drover reserve system:, eks:, aws:, amazon:, iam: and drover:",
				prefix)}
		}
	}
	return nil
}

// unreservedTag rejects tags that AWS reserves, and those that drover's templates set.
func unreservedTag(key string) []string {
	for _, prefix := range []string{"aws:", "drover:", "kubernetes.io/cluster/", "kubernetes.io/role/", "k8s.io/cluster-autoscaler/"} {
		if strings.HasPrefix(strings.ToLower(key), prefix) {
			return []string{fmt.Sprintf("must not start with %q, which is reserved", prefix)}
		}
	}
	if strings.EqualFold(key, "Name") {
		return []string{"is reserved: drover sets this tag"}
	}
	return nil
}

// ownFlags are set by drover, or by the AMI's nodeadm, from other fields. The last one on a command line would take precedence.
var ownFlags = map[string]string{
	"node-labels":          "use labels",
	"register-with-taints": "use taints",
	"max-pods":             "use maxPods",
}

var nodeadmFlags = []string{
	"bootstrap-kubeconfig", "cloud-provider", "cluster-dns", "cluster-domain", "config", "config-dir", "container-runtime-endpoint",
	"hostname-override",
	"image-credential-provider-bin-dir", "image-credential-provider-config", "kubeconfig", "node-ip", "provider-id", "register-node",
}

func notSetByDrover(flag string) []string {
	name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
	if instead, ok := ownFlags[name]; ok {
		return []string{fmt.Sprintf("--%s is set by drover: %s", name, instead)}
	}
	for _, set := range nodeadmFlags {
		if name == set {
			return []string{fmt.Sprintf("--%s is set by the node's own configuration", name)}
		}
	}
	return nil
}

// Time parses a time of a spec and returns the first whole second at or after it. Scheduled work has whole seconds and would start too
// early otherwise.
func Time(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if whole := t.Truncate(time.Second); whole.Before(t) {
		t = whole.Add(time.Second)
	}
	return t, err
}

func realTime(value string) []string {
	if t, err := time.Parse(time.RFC3339, value); err != nil || t.Year() < 2000 {
		return []string{"must be an existing time after the year 2000"}
	}
	return nil
}

// goodWhenTrue rejects conditions whose status True is a problem. A node that waited for them would be unhealthy.
// https://kubernetes.io/docs/reference/node/node-status/#condition
func goodWhenTrue(condition string) []string {
	switch condition {
	case "Ready":
		return []string{"is redundant: drover always waits for Ready"}
	case "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable":
		return []string{"is True when a node has a problem: use a condition that is True when it is healthy"}
	}
	return nil
}

func cleanPath(value string) []string {
	if clean := path.Clean(value); clean != value || clean == "/" {
		return []string{"must be the shortest form of the path of a file, without '.', '..' and double or trailing slashes"}
	}
	return nil
}

// IsClusterName reports whether a cluster may have this name.
func IsClusterName(name string) bool { return len(formatNamed("cluster-name").Wrong(name)) == 0 }
