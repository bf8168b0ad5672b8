package api

// Upgrade is what starts upgrades in addition to a new spec, and when they may start. A later change does not affect an upgrade that has
// started.
type Upgrade struct {
	// Channel that the cluster follows. When releases/channels.yaml names another release for it, the cluster is upgraded within the window.
	// Nodes keeps the Kubernetes version, and follows the release that the file has for it. With Stable and Rapid, kubernetesVersion cannot
	// be stated.
	Channel Channel `json:"channel,omitempty" rule:"default=None;enum=Stable,Rapid,Nodes,None"`
	// Window is when upgrades may start, those of the channel and those of a new spec. Default: at any time.
	Window *Window `json:"window,omitempty"`
	// NotBefore is the time before which no upgrade starts.
	NotBefore string `json:"notBefore,omitempty" rule:"format=time"`
	// Exclusions are periods in which no upgrade starts, even if the window is open.
	Exclusions []Exclusion `json:"exclusions,omitempty" rule:"unique=from,until;maxItems=100"`
	// At starts one upgrade at a time, even outside the window, but not within an exclusion. It applies once: another time or release is
	// another upgrade. If the spec names the same release, its upgrade waits until that time.
	At *UpgradeAt `json:"at,omitempty"`
	// Alarms of CloudWatch by name. None may be in ALARM when an upgrade starts or ends. During an upgrade, drover disables the actions of
	// alarms with the tag drover:silence=upgrade.
	Alarms []string `json:"alarms,omitempty" rule:"format=alarm-name;unique;maxItems=100"`
}

// Channel is a stream of releases that clusters follow.
type Channel string

// The values of Channel.
const (
	ChannelStable Channel = "Stable"
	ChannelRapid  Channel = "Rapid"
	ChannelNodes  Channel = "Nodes"
	ChannelNone   Channel = "None"
)

// Window is when upgrades may start: from each of its starts, for a duration. State either cron, or start and days.
type Window struct {
	// Cron is when the window opens, as in EventBridge Scheduler: minutes, hours, day of month, month, day of week (1 is Sunday) and year. A
	// time that is skipped when clocks change does not count. One that occurs twice counts once.
	Cron string `json:"cron,omitempty" rule:"format=cron"`
	// Days of the week on which the window opens at start. Default: every day.
	Days []string `json:"days,omitempty" rule:"enum=Mon,Tue,Wed,Thu,Fri,Sat,Sun;unique;minItems=1"`
	// Start is the time of day at which the window opens. If that time is skipped when clocks change, the window opens at the change.
	Start string `json:"start,omitempty" rule:"format=time-of-day"`
	// Duration for which the window stays open, between 30m and 168h. It is elapsed time, even if clocks change.
	Duration string `json:"duration" rule:"format=duration"`
	// TimeZone of cron and start, a name of the IANA database.
	TimeZone string `json:"timeZone,omitempty" rule:"default=UTC;format=time-zone"`
}

// Exclusion is a period in which no upgrade starts.
type Exclusion struct {
	// From is when it begins.
	From string `json:"from" rule:"format=time"`
	// Until is when it ends.
	Until string `json:"until" rule:"format=time"`
	// Reason is for readers of the spec.
	Reason string `json:"reason,omitempty" rule:"format=line"`
}

// UpgradeAt is one upgrade at a stated time.
type UpgradeAt struct {
	// Time at which it starts, or within five minutes.
	Time string `json:"time" rule:"format=time"`
	// Release to which the cluster is upgraded.
	Release string `json:"release" rule:"format=release-name"`
}
