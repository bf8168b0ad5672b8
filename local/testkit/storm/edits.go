package storm

// Edits of specs in worlds whose traces are not recorded: zones, spec.poolDefaults, and fields of pools.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/testkit/harness"
)

// edits are fields of a spec. None of them has a value at first. A limit of hops, and zones that pools leave, replace nodes. The others
// change in place.
type edits struct {
	// thirdZone adds a zone to the network. drover removes no zone of a network.
	thirdZone bool
	// defaults is the value of a tag in spec.poolDefaults; 0 means no defaults.
	defaults int
	// monitored turns detailed monitoring of all pools on. oneZone puts new nodes of all pools into the first zone.
	monitored, oneZone bool
	// hops is the limit of hops of instance metadata; 0 is the default.
	hops int
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
	return fields
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
			switch r.IntN(8) {
			case 0:
				now.thirdZone = true
			case 1, 2:
				now.defaults++
			case 3:
				now.monitored = !now.monitored
			case 4:
				now.oneZone = !now.oneZone
			case 5:
				now.hops = r.IntN(3)
			}
			a.spec.edits = now
			if last := p.last[cluster]; last != nil {
				last.edits = now
			}
		}
	}
}
