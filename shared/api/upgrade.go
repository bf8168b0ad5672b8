package api

// Upgrade says what starts upgrades beside a new spec, and when they may start. An upgrade that is under way goes on, whatever is
// written here meanwhile.
type Upgrade struct {
	// Channel that the cluster follows: when releases/channels.yaml names another release for it, the cluster is upgraded to that one
	// as the window allows. Nodes keeps the Kubernetes version, and follows the release that the file has for it. With Stable and
	// Rapid, kubernetesVersion cannot be stated.
	Channel Channel `json:"channel,omitempty" rule:"default=None;enum=Stable,Rapid,Nodes,None"`
	// Window is when upgrades may start: those of the channel, and those of a new spec. Default: at any time.
	Window *Window `json:"window,omitempty"`
	// NotBefore is the time before which no upgrade starts.
	NotBefore string `json:"notBefore,omitempty" rule:"format=time"`
	// Exclusions are times in which no upgrade starts, also when the window is open.
	Exclusions []Exclusion `json:"exclusions,omitempty" rule:"unique=from,until;maxItems=100"`
	// At starts one upgrade at a time, whatever the window; not within an exclusion. It counts once: another time or release is another
	// upgrade. With the release that the spec names itself, the upgrade to it waits until then.
	At *UpgradeAt `json:"at,omitempty"`
	// Alarms of CloudWatch by name. None may be in ALARM when an upgrade starts or ends. The actions of those with the tag
	// drover:silence=upgrade are off meanwhile.
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

// Window is when upgrades may start: from each of its starts, for a duration. It is given by cron, or by start and days.
type Window struct {
	// Cron has the times at which the window opens, as EventBridge Scheduler has them: minutes, hours, day of month, month, day of week
	// (1 is Sunday) and year. A time that clocks are put forward over does not come; one that they show twice counts once.
	Cron string `json:"cron,omitempty" rule:"format=cron"`
	// Days of the week on which the window opens at start. Default: every day.
	Days []string `json:"days,omitempty" rule:"enum=Mon,Tue,Wed,Thu,Fri,Sat,Sun;unique;minItems=1"`
	// Start is the time of day at which the window opens. When clocks are put forward over it, the window opens as that is done.
	Start string `json:"start,omitempty" rule:"format=time-of-day"`
	// Duration that the window is open from then on, between 30m and 168h: of time that passes, on days that clocks change, too.
	Duration string `json:"duration" rule:"format=duration"`
	// TimeZone of cron and start, a name of the IANA database.
	TimeZone string `json:"timeZone,omitempty" rule:"default=UTC;format=time-zone"`
}

// Exclusion is a time in which no upgrade starts.
type Exclusion struct {
	// From is when it begins.
	From string `json:"from" rule:"format=time"`
	// Until is when it is over.
	Until string `json:"until" rule:"format=time"`
	// Reason is for people who read the spec.
	Reason string `json:"reason,omitempty" rule:"format=line"`
}

// UpgradeAt is one upgrade at a time.
type UpgradeAt struct {
	// Time at which it starts, or within five minutes of it.
	Time string `json:"time" rule:"format=time"`
	// Release that the cluster is upgraded to.
	Release string `json:"release" rule:"format=release-name"`
}
