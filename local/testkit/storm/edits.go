package storm

// Edits of specs in worlds whose traces are not recorded: zones, spec.poolDefaults, the retention of logs, and fields of pools.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/testkit/harness"
)

// edits are fields of a spec. None of them has a value at first. Fields that reach the launch template, and zones that pools leave, replace
// nodes. The others change in place. TestEffectsOfEdits has the effect of each.
type edits struct {
	// thirdZone adds a zone to the network. drover removes no zone of a network.
	thirdZone bool
	// defaults is the value of a tag in spec.poolDefaults; 0 means no defaults.
	defaults int
	// logDays is controlPlane.logRetentionDays; 0 is the default.
	logDays int
	// tags is the value of a tag of all pools; 0 means none.
	tags int
	// monitored turns detailed monitoring of all pools on. oneZone puts new nodes of all pools into the first zone.
	monitored, oneZone bool
	// hops is the limit of hops of instance metadata; 0 is the default.
	hops int
	// eviction is the memory below which kubelets evict pods, in MiB; 0 is the default.
	eviction int
	// volume is the size of a further disk of nodes, in GiB; 0 means none.
	volume int
	// proxied nodes have an HTTP proxy. trusting ones trust another certificate.
	proxied, trusting bool
	// bottlerocket nodes have another operating system, which takes no files.
	bottlerocket bool
}

// zones returns spec.network.zones, without brackets.
func (e edits) zones() string {
	names := []string{harness.Region + "a", harness.Region + "b"}
	if e.thirdZone {
		names = append(names, harness.Region+"c")
	}
	return strings.Join(names, ", ")
}

// poolDefaults returns the line of spec.poolDefaults, or nothing.
func (e edits) poolDefaults() string {
	if e.defaults == 0 {
		return ""
	}
	return fmt.Sprintf("  poolDefaults: {tags: {owner: \"o%d\"}}\n", e.defaults)
}

// pool returns fields of each pool.
func (e edits) pool() (fields string) {
	if e.monitored {
		fields += "detailedMonitoring: true, "
	}
	if e.oneZone {
		fields += fmt.Sprintf("zones: [%sa], ", harness.Region)
	}
	if e.hops > 0 {
		fields += fmt.Sprintf("metadataHopLimit: %d, ", e.hops)
	}
	if e.tags > 0 {
		fields += fmt.Sprintf("tags: {cost: \"c%d\"}, ", e.tags)
	}
	if e.eviction > 0 {
		fields += fmt.Sprintf("kubelet: {evictionHard: {memory.available: %dMi}}, ", e.eviction)
	}
	if e.volume > 0 {
		fields += fmt.Sprintf("volumes: [{device: /dev/xvdf, sizeGiB: %d}], ", e.volume)
	}
	if e.proxied {
		fields += "proxy: {url: \"http://proxy.example.com:3128\", noProxy: [.example.com]}, "
	}
	if e.trusting {
		fields += fmt.Sprintf("caBundle: %q, ", certificate)
	}
	if e.bottlerocket {
		fields += "image: {family: Bottlerocket}, "
	}
	return fields
}

// motd returns the field of a pool that a number changes, and that replaces its nodes then.
func (e edits) motd(n int) string {
	if e.bottlerocket {
		return fmt.Sprintf("labels: {motd: \"%d\"}", n)
	}
	return fmt.Sprintf("files: [{path: /etc/motd, content: \"%d\"}]", n)
}

// controlPlane returns the line of spec.controlPlane, or nothing.
func (e edits) controlPlane(private bool) string {
	var fields []string
	if private {
		fields = append(fields, "endpoint: {public: false}")
	}
	if e.logDays > 0 {
		fields = append(fields, fmt.Sprintf("logRetentionDays: %d", e.logDays))
	}
	if len(fields) == 0 {
		return ""
	}
	return "  controlPlane: {" + strings.Join(fields, ", ") + "}\n"
}

// certificate is the root of examples/clusters/everything.yaml. It expires in 2126.
const certificate = `-----BEGIN CERTIFICATE-----
MIIBhTCCASugAwIBAgIUWChFFAw7tRILZV2IcnK1G+EDI6wwCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMRXhhbXBsZSByb290MCAXDTI2MTEyODExMjQ0N1oYDzIxMjYx
MTA0MTEyNDQ3WjAXMRUwEwYDVQQDDAxFeGFtcGxlIHJvb3QwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAATmJxMmMLUzenk/VY2iA5DT057j1v+Cwf6t1Qcgl+CmgU/v
2tb9Rgz6MMmM3UdR0iWSo5TAF/bZ3E0gfn+3Nm1Qo1MwUTAdBgNVHQ4EFgQUaPmi
S8vOq1Nl5qt6NdbrvdAqhQcwHwYDVR0jBBgwFoAUaPmiS8vOq1Nl5qt6NdbrvdAq
hQcwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiB1J5H00X15SRPR
oJfBFTnTojTripgGvFOZSLV1HL5QlQIhAJzl+t9qYL5A0b2aQXZPf2dy0wBmNJ5P
xrrAIOuPXNc+
-----END CERTIFICATE-----
`

// edit changes a field at random.
func (e *edits) edit(r *rand.Rand) {
	switch r.IntN(12) {
	case 0:
		e.thirdZone = true
	case 1:
		e.defaults++
	case 2:
		e.logDays = []int{0, 30, 365}[r.IntN(3)]
	case 3:
		e.tags++
	case 4:
		e.monitored = !e.monitored
	case 5:
		e.oneZone = !e.oneZone
	case 6:
		e.hops = r.IntN(3)
	case 7:
		e.eviction = 200 * r.IntN(3)
	case 8:
		e.volume = 10 * r.IntN(3)
	case 9:
		e.proxied = !e.proxied
	case 10:
		e.trusting = !e.trusting
	case 11:
		e.bottlerocket = !e.bottlerocket
	}
}

// editSpecs edits fields at random, with some of the specs of each cluster and from then on.
func editSpecs(seed uint64, p *plot) {
	r := rand.New(rand.NewPCG(seed, 6)) // #nosec G404 -- a world, no secret
	for _, cluster := range slices.Sorted(maps.Keys(p.last)) {
		if r.IntN(2) == 0 {
			continue
		}
		var now edits
		for i := range p.acts {
			a := &p.acts[i]
			if a.cluster != cluster || a.spec == nil {
				continue
			}
			for range r.IntN(3) {
				now.edit(r)
			}
			a.spec.edits = now
			if last := p.last[cluster]; last != nil {
				last.edits = now
			}
		}
	}
}
