package storm

// The kinds of acts in a life, and how often each occurs.

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
)

// kindOfAct is a kind of act. It occurs in proportion to its weight.
type kindOfAct struct {
	weight int
	// add adds the act, or several that belong together.
	add func(*lifeBuilder)
}

// kindsOfActs are in the order of the recorded worlds. Another order, or other weights, change the world of every seed.
var kindsOfActs = []kindOfAct{
	{1, changeTags},
	{1, (*lifeBuilder).replaceNodes},
	{1, resizePool},
	{1, addPool},
	{1, removePool},
	{1, upgradeBySpec},
	{1, breakSpec},
	{1, pauseCluster},
	{1, convergeByCommand},
	{2, deleteSpec},
	{1, rollByCommand},
	{1, scheduleRoll},
	{1, deleteSomeStack},
	{1, createKubernetesResources},
	{1, upgradeWithinMinor},
	{1, upgradeAtTimeOrByCommand},
	{1, moveChannels},
	{2, blockByBudget},
	{1, ringAlarm},
	{1, changeUpgradeGate},
	{1, renamePool},
	{1, changeProtection},
	{2, autoscalePool},
	{1, removeStackTags},
	{2, silenceNode},
	{1, useUpQuota},
	{1, deleteRelease},
	{1, uploadRefusedWindow},
	{1, requestUnknownRelease},
	{1, requestDowngrade},
	{2, requestSkippedMinor},
	{1, fireScheduleTwice},
	{1, alterAddon},
	{1, deleteNodeObject},
	{1, deleteFoundation},
	{1, changeControlPlaneVersion},
	{1, deleteControlPlaneThenSpec},
	{1, unprotectThenDeleteSpec},
	{2, lockAllPools},
}

// someKind draws a kind by weight.
func someKind(r *rand.Rand) kindOfAct {
	var drawn []kindOfAct // each as often as its weight
	for _, kind := range kindsOfActs {
		drawn = append(drawn, slices.Repeat([]kindOfAct{kind}, kind.weight)...)
	}
	return drawn[r.IntN(len(drawn))]
}

func changeTags(b *lifeBuilder) {
	b.spec.team++
	b.upload("tags")
}

func resizePool(b *lifeBuilder) {
	b.pool.min = b.random.IntN(3)
	b.pool.max = max(b.pool.max, b.pool.min, 1)
	b.upload("resize " + b.pool.name)
}

func addPool(b *lifeBuilder) {
	if b.spec.pool("c") == nil {
		b.spec.pools = append(b.spec.pools, somePool(b.random, "c", 1, 2))
		b.upload("add pool c")
	}
}

func removePool(b *lifeBuilder) {
	if last := len(b.spec.pools) - 1; last > 0 {
		removed := b.spec.pools[last].name
		b.spec.pools = b.spec.pools[:last]
		b.upload("remove pool " + removed)
	}
}

func renamePool(b *lifeBuilder) {
	if was := b.pool.name; len(was) == 1 {
		b.pool.name += "x"
		b.upload("rename pool " + was + " to " + b.pool.name)
	}
}

func upgradeBySpec(b *lifeBuilder) {
	if b.spec.minor >= lastMinor || b.upgraded {
		return
	}
	b.upgraded = true
	if leap := b.random.IntN(2) == 0 && b.spec.minor+2 <= lastMinor; leap {
		b.spec.minor, b.spec.rev = b.spec.minor+2, 1
		b.upload("leap by the spec")
	} else {
		b.spec.minor++
		b.upload("upgrade")
	}
	b.interruptUpgrade()
}

func upgradeWithinMinor(b *lifeBuilder) {
	if b.spec.channel == "" && !b.upgraded {
		b.upgraded = true
		b.spec.rev++
		b.upload("upgrade within its minor")
		b.interruptUpgrade()
	}
}

func upgradeAtTimeOrByCommand(b *lifeBuilder) {
	if b.spec.channel != "" || b.spec.minor >= lastMinor || b.upgraded {
		return
	}
	b.upgraded = true
	what, to := "upgrade", release(b.spec.minor+1, b.random.IntN(2))
	if b.random.IntN(2) == 0 && b.spec.minor+2 <= lastMinor {
		what, to = "leap", release(b.spec.minor+2, 1)
	}
	if b.random.IntN(2) == 0 {
		b.uploadWithTime(what, to)
		if b.random.IntN(2) == 0 {
			b.acts = append(b.acts, act{
				at: b.spec.at + time.Duration(b.random.IntN(300))*time.Second, cluster: b.cluster, what: "fire the schedule twice",
				do: (*world).fireTwice,
			})
		}
	} else {
		b.add(act{what: what + " by hand", upgrade: &events.Upgrade{Cluster: b.cluster, Release: to}, times: 1 + b.random.IntN(2)})
	}
	b.interruptUpgrade()
}

func moveChannels(b *lifeBuilder) {
	b.add(act{what: "channels move", channels: true})
	b.interruptUpgrade()
}

func changeUpgradeGate(b *lifeBuilder) {
	b.spec.gate = someGate(b.random, b.clocks)
	if b.spec.atRelease != "" {
		b.spec.gate = b.spec.gate.letting(b.spec.at)
	}
	b.upload("window of upgrades")
}

// changeControlPlaneVersion has an operator update the control plane in EKS. Most then upload a spec with that version.
func changeControlPlaneVersion(b *lifeBuilder) {
	if b.spec.minor >= lastMinor || b.upgraded {
		return
	}
	b.upgraded = true
	to := b.spec.minor + 1
	b.do("move the control plane by hand", func(w *world) { w.changeVersion(b.cluster, to) })
	if b.random.IntN(3) > 0 {
		b.pause()
		b.spec.minor = to
		b.upload("follow the control plane")
		b.interruptUpgrade()
	}
}

func breakSpec(b *lifeBuilder) {
	b.uploadInvalid("break the spec", someFlaw(b.random, "break the spec"))
}

func uploadRefusedWindow(b *lifeBuilder) {
	what := pick(b.random, "cron that AWS refuses", "shut window for ever")
	b.uploadInvalid(what, someFlaw(b.random, what))
}

func requestUnknownRelease(b *lifeBuilder) { b.requestUnreachable("unknown release", unknownRelease) }

func requestDowngrade(b *lifeBuilder) { b.requestUnreachable("downgrade", release(b.spec.minor-1, 0)) }

func requestSkippedMinor(b *lifeBuilder) {
	if b.spec.minor+2 <= lastMinor && !b.upgraded && b.spec.channel == "" { // the channel may have moved it by one version
		b.upgraded = true // whatever its outcome
		b.requestUnreachable("skip a minor", release(b.spec.minor+2, 0))
	}
}

// pauseCluster uploads a change and requests a roll while the cluster is paused.
func pauseCluster(b *lifeBuilder) {
	b.spec.paused = true
	b.upload("pause")
	b.pause()
	b.spec.team++
	b.upload("change while paused")
	b.add(act{what: "roll " + b.pool.name + " by hand while paused", roll: b.pool.name})
	b.pause()
	b.spec.paused = false
	b.upload("continue")
}

func convergeByCommand(b *lifeBuilder) {
	b.add(act{what: "converge by hand", converge: true})
	if b.spec.channel == "" && b.spec.atRelease == "" && !b.upgraded {
		same := events.Upgrade{Cluster: b.cluster, Release: release(b.spec.minor, b.spec.rev)}
		b.do("upgrade by hand to the deployed version", func(w *world) { w.upgrade(same) })
	}
}

func rollByCommand(b *lifeBuilder) {
	b.add(act{what: "roll " + b.pool.name + " by hand", converge: true, roll: b.pool.name})
}

func scheduleRoll(b *lifeBuilder) {
	b.pool.rollAt = b.at + time.Duration(1+b.random.IntN(20))*time.Minute
	b.upload("replace the nodes of " + b.pool.name + " later")
}

func fireScheduleTwice(b *lifeBuilder) { b.do("fire the schedule twice", (*world).fireTwice) }

func changeProtection(b *lifeBuilder) {
	b.spec.protected = !b.spec.protected
	b.upload(map[bool]string{true: "protect", false: "unprotect"}[b.spec.protected])
}

func (b *lifeBuilder) protect(on bool) {
	if b.spec.protected != on {
		changeProtection(b)
		b.pause()
	}
}

// deleteSpec deletes the spec. Half of the clusters are created again.
func deleteSpec(b *lifeBuilder) {
	b.add(act{what: "delete", remove: true})
	if b.random.IntN(2) == 0 {
		b.ended, b.deleted = true, true
		return
	}
	b.pause()
	b.upload("create again")
}

func createKubernetesResources(b *lifeBuilder) {
	b.add(act{what: "kubernetes makes load balancers and volumes", kubernetes: true})
}

func deleteControlPlaneThenSpec(b *lifeBuilder) {
	b.protect(false)
	createKubernetesResources(b)
	b.pause()
	b.do("lose control-plane by hand", func(w *world) { w.deleteUnprotectedControlPlane(b.cluster) })
	b.at += time.Duration(b.random.IntN(40)) * time.Minute
	b.add(act{what: "delete", remove: true})
	b.ended, b.deleted = true, true
}

// unprotectThenDeleteSpec has an operator disable termination protection in CloudFormation, and delete the spec soon after.
func unprotectThenDeleteSpec(b *lifeBuilder) {
	b.protect(true)
	b.do("turn termination protection off by hand", func(w *world) { w.disableTerminationProtection(b.cluster) })
	b.at += time.Duration(b.random.IntN(60)) * time.Second
	b.add(act{what: "delete", remove: true})
	b.ended, b.deleted = true, true
}

// deleteFoundation deletes the stack of a live cluster on which all others depend.
func deleteFoundation(b *lifeBuilder) {
	stack := pick(b.random, names.Network, names.ControlPlane)
	b.do("lose "+stack+" by hand", func(w *world) { w.deleteLiveStack(b.cluster, stack) })
	b.ended = true
}

func deleteSomeStack(b *lifeBuilder) {
	pool := names.PoolStack(b.pool.name)
	stack := pick(b.random, pool, pool, names.Addons, names.NodeAddons)
	b.add(act{what: "unstack " + stack + " by hand", deletedStack: stack})
}

func removeStackTags(b *lifeBuilder) {
	stack := pick(b.random, names.PoolStack(b.pool.name), names.Addons, names.Network, names.ControlPlane)
	b.do("untag "+stack+" by hand", func(w *world) { w.removeTag(b.cluster, stack) })
}

func autoscalePool(b *lifeBuilder) {
	pool, share := b.pool.name, b.random.Float64()
	if b.random.IntN(2) == 0 { // among nodes that are replaced
		b.replaceNodes()
		b.at += time.Duration(b.random.IntN(600)) * time.Second
	}
	b.do("autoscale "+pool, func(w *world) { w.autoscale(b.cluster, pool, share) })
}

func deleteNodeObject(b *lifeBuilder) {
	pool, which := b.pool.name, b.random.IntN(3)
	b.do("delete a Node of "+pool+" by hand", func(w *world) { w.deleteNode(b.cluster, pool, which) })
}

func silenceNode(b *lifeBuilder) {
	pool, which := b.pool.name, b.random.IntN(3)
	b.beginCondition("silence a node of "+pool, "its kubelet speaks", func(w *world, on bool) { w.setSilent(b.cluster, pool, which, on) })
}

func blockByBudget(b *lifeBuilder) {
	b.beginCondition("block by a budget", "unblock", func(w *world, on bool) { w.setBlocked(b.cluster, on) })
	if b.random.IntN(2) == 0 {
		b.at += time.Duration(b.random.IntN(10)) * time.Minute
		b.replaceNodes()
	}
}

func ringAlarm(b *lifeBuilder) {
	if b.spec.alarm {
		b.beginCondition("alarm", "quiet", func(w *world, on bool) { w.setAlarm(b.cluster, on) })
	}
}

func useUpQuota(b *lifeBuilder) {
	b.beginCondition("use up the quota", "a quota is raised", func(w *world, on bool) { w.setQuotaUsed(b.cluster, on) })
}

func deleteRelease(b *lifeBuilder) {
	deleted := [2]int{b.spec.minor, b.spec.rev}
	b.beginCondition("delete the release "+release(deleted[0], deleted[1]), "the release is back", func(w *world, on bool) {
		w.setReleaseDeleted(b.cluster, deleted, on)
	})
}

func alterAddon(b *lifeBuilder) {
	addon := pick(b.random, slices.Sorted(maps.Keys(otherAddonVersions))...)
	b.beginCondition("alter "+addon, addon+" is restored", func(w *world, on bool) { w.setAddonAltered(b.cluster, addon, on) })
}

// lockAllPools adds a taint to all pools, changes the cluster, and removes the taint: see locked_pools.go.
func lockAllPools(b *lifeBuilder) {
	b.spec.lock(true)
	b.upload("lock all pools by a taint")
	for range b.random.IntN(3) {
		b.pause()
		switch b.random.IntN(3) {
		case 0:
			changeTags(b)
		case 1:
			b.replaceNodes()
		case 2:
			rollByCommand(b)
		}
	}
	b.pause()
	b.spec.lock(false)
	b.upload("unlock all pools")
}
