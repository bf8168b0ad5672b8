package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// upgrade adds spec.upgrade to the good spec, on its line 17.
func upgrade(fields string) pairs { return pairs{"  tags: {}", "  upgrade: {" + fields + "}"} }

func TestValidateRejectsUpgrades(t *testing.T) {
	const (
		upTo    = `demo.yaml:17: spec.upgrade.`
		twoWays = `a window opens by cron, or by start and days`
	)
	cases := map[string]struct {
		edits pairs
		want  []string
	}{
		"a channel misspelt": {
			upgrade("channel: stable"), []string{
				upTo + `channel: Unsupported value: "stable": supported values: "Stable", "Rapid", "Nodes", "None"`,
			},
		},
		"a channel and a version of its own": {
			append(upgrade("channel: Rapid"), "  upgrade", "  kubernetesVersion: \"1.36\"\n  upgrade"), []string{
				`demo.yaml:18: spec.upgrade.channel: Forbidden: the channel Rapid has the Kubernetes version of its release: remove ` +
					`spec.kubernetesVersion`,
			},
		},
		"a window without times":  {upgrade("window: {duration: 4h}"), []string{upTo + `window.start: Required value: ` + twoWays}},
		"a window without an end": {upgrade(`window: {start: "22:00"}`), []string{upTo + `window.duration: Required value`}},
		"a window of two kinds": {
			upgrade(`window: {cron: "0 22 * * ? *", start: "22:00", days: [Mon], duration: 4h}`), []string{
				upTo + `window.start: Forbidden: ` + twoWays + `: remove one`,
			},
		},
		"a window with its days twice": {
			upgrade(`window: {cron: "0 22 * * ? *", days: [Mon], duration: 4h}`), []string{
				upTo + `window.days: Forbidden: cron already contains the days: remove this field`,
			},
		},
		"no days at all": {
			upgrade(`window: {start: "22:00", days: [], duration: 4h}`), []string{upTo + `window.days: Too few: 0: must have at least 1 item`},
		},
		"a day twice, and one that is none": {
			upgrade(`window: {start: "22:00", days: [Mon, Mon, Monday], duration: 4h}`), []string{
				upTo + `window.days[1]: Duplicate value: "Mon"`,
				upTo + `window.days[2]: Unsupported value: "Monday": supported values: "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"`,
			},
		},
		"an hour that no day has": {
			upgrade(`window: {start: "24:00", duration: 4h}`), []string{
				upTo + `window.start: Invalid value: "24:00": must be a time of day in hours and minutes, such as "22:00"`,
			},
		},
		"a window too short": {
			upgrade(`window: {start: "22:00", duration: 29m}`), []string{
				upTo + `window.duration: Invalid value: "29m": must be between 30m and 168h`,
			},
		},
		"a window longer than a week": {
			upgrade(`window: {start: "22:00", duration: 169h}`), []string{
				upTo + `window.duration: Invalid value: "169h": must be between 30m and 168h`,
			},
		},
		"a time zone that is none": {
			upgrade(`window: {start: "22:00", duration: 4h, timeZone: Europe/Bärlin}`), []string{
				upTo + `window.timeZone: Invalid value: "Europe/Bärlin": must be the name of a time zone, such as "Europe/Berlin"`,
			},
		},
		"an unknown time zone": {
			upgrade(`window: {start: "22:00", duration: 4h, timeZone: Europe/Nowhere}`), []string{
				upTo + `window.timeZone: Invalid value: "Europe/Nowhere": must be a time zone of the IANA database, such as "Europe/Berlin"`,
			},
		},
		"the machine's time zone": {
			upgrade(`window: {start: "22:00", duration: 4h, timeZone: Local}`), []string{
				upTo + `window.timeZone: Invalid value: "Local": must be a time zone of the IANA database, such as "Europe/Berlin"`,
			},
		},
		"the cron of Unix": {
			upgrade(`window: {cron: "0 22 * * 1", duration: 4h}`), []string{
				upTo + `window.cron: Invalid value: "0 22 * * 1": cron needs six fields: minutes, hours, day of month, month, day of week and ` +
					`year; it has 5`,
			},
		},
		"a cron without a question mark": {
			upgrade(`window: {cron: "0 22 * * * *", duration: 4h}`), []string{
				upTo + `window.cron: Invalid value: "0 22 * * * *": exactly one of day of month and day of week must be ?`,
			},
		},
		"a cron with AWS's brackets": {
			upgrade(`window: {cron: "cron(0 22 * * ? *)", duration: 4h}`), []string{
				upTo + `window.cron: Invalid value: "cron(0 22 * * ? *)": must be the six fields of AWS's cron, without "cron()", such as "0 22 ` +
					`? * MON-FRI *"`,
			},
		},
		"days of the week counted from 0": {
			upgrade(`window: {cron: "0 22 ? * 0 *", duration: 4h}`), []string{
				upTo + `window.cron: Invalid value: "0 22 ? * 0 *": "0" is not valid for day of week`,
			},
		},
		"a day that no month has": {
			upgrade(`window: {cron: "0 22 30 2 ? *", duration: 4h}`), []string{
				upTo + `window.cron: Invalid value: "0 22 30 2 ? *": the window never opens`,
			},
		},
		"years that are over": {
			upgrade(`window: {cron: "0 22 * * ? 2020-2025", duration: 4h}`), []string{
				upTo + `window.cron: Invalid value: "0 22 * * ? 2020-2025": the window never opens again`,
			},
		},
		"its last times excluded": {
			upgrade(`window: {cron: "0 22 24-26 12 ? 2026", duration: 4h}, exclusions: [{from: "2026-12-20T00:00:00Z", until: ` +
				`"2027-01-01T00:00:00Z"}]`), []string{
				upTo + `exclusions[0].until: Invalid value: "2027-01-01T00:00:00Z": the window never opens again: this ` +
					`excludes all its remaining times`,
			},
		},
		"its last times shut out by two": {
			upgrade(`window: {cron: "0 22 24-26 12 ? 2026", duration: 4h}, exclusions: [{from: "2026-12-26T00:00:00Z", until: ` +
				`"2027-01-01T00:00:00Z"}, {from: "2026-12-01T00:00:00Z", until: "2026-12-05T00:00:00Z"}], notBefore: "2026-12-26T03:00:00Z"`),
			[]string{upTo +
				`exclusions[0].until: Invalid value: "2027-01-01T00:00:00Z": the window never opens again: this ` +
				`excludes all its remaining times, together with the other 1`, upTo + `notBefore: Invalid value: "2026-12-26T03:00:00Z": the window ` +
				`never opens again: this excludes all its remaining times, together with the other 1`},
		},
		"its last times before notBefore": {
			upgrade(`window: {cron: "0 22 24-26 12 ? 2026", duration: 4h}, notBefore: "2027-01-01T00:00:00Z"`), []string{
				upTo + `notBefore: Invalid value: "2027-01-01T00:00:00Z": the window never opens again: this ` +
					`excludes all its remaining times`,
			},
		},
		"a day that is not there": {
			upgrade(`notBefore: "2026-02-30T00:00:00Z"`), []string{
				upTo + `notBefore: Invalid value: "2026-02-30T00:00:00Z": must be an existing time after the year 2000`,
			},
		},
		"an exclusion that ends as it begins": {
			upgrade(`exclusions: [{from: "2026-12-20T00:00:00Z", until: "2026-12-20T01:00:00+01:00"}]`), []string{
				upTo + `exclusions[0].until: Invalid value: "2026-12-20T01:00:00+01:00": must be after from`,
			},
		},
		"an exclusion twice": {
			upgrade(`exclusions: [{from: "2026-12-20T00:00:00Z", until: "2026-12-21T00:00:00Z"}, {from: "2026-12-20T00:00:00Z", until: ` +
				`"2026-12-21T00:00:00Z", reason: again}]`), []string{upTo + `exclusions[1]: Duplicate value: ` +
				`"2026-12-20T00:00:00Z:2026-12-21T00:00:00Z"`},
		},
		"a reason of two lines": {
			upgrade(`exclusions: [{from: "2026-12-20T00:00:00Z", until: "2026-12-21T00:00:00Z", reason: "a\nb"}]`), []string{
				upTo + `exclusions[0].reason: Invalid value: "a\nb": must be a line of text`,
			},
		},
		"one upgrade without a release": {upgrade(`at: {time: "2026-12-20T00:00:00Z"}`), []string{upTo + `at.release: Required value`}},
		"one upgrade to the channels": {
			upgrade(`at: {time: "2026-12-20T00:00:00Z", release: channels}`), []string{
				upTo + `at.release: Invalid value: "channels": is not a release: releases/channels.yaml names the release of each channel`,
			},
		},
		"one upgrade before any": {
			upgrade(`notBefore: "2027-01-01T00:00:00Z", at: {time: "2026-12-20T00:00:00Z", release: "1.37-1"}`), []string{
				upTo + `at.time: Invalid value: "2026-12-20T00:00:00Z": must not be before notBefore`,
			},
		},
		"one upgrade at a time that is shut": {
			upgrade(`exclusions: [{from: "2026-12-20T00:00:00Z", until: "2026-12-21T00:00:00Z"}], at: {time: "2026-12-20T00:00:00Z", ` +
				`release: "1.37-1"}`), []string{upTo + `at.time: Invalid value: "2026-12-20T00:00:00Z": must not be within exclusions[0]`},
		},
		"alarms without a name, twice, broken": {
			upgrade(`alarms: ["", a, a, "b\n"]`), []string{
				upTo + `alarms[0]: Invalid value: "": must be the name of a CloudWatch alarm`, upTo + `alarms[2]: Duplicate value: "a"`,
				upTo + `alarms[3]: Invalid value: "b\n": must be the name of a CloudWatch alarm`,
			},
		},
		"an unknown field": {upgrade(`windows: {}`), []string{upTo + `windows: Forbidden: unknown field, did you mean "window"?`}},
	}
	judged := options
	judged.Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, errs := api.ReadCluster("demo.yaml", edit(t, good, c.edits), judged)
			require.Equal(t, c.want, lines(errs))
			require.Nil(t, cluster)
		})
	}
}

func TestValidateAcceptsUpgrades(t *testing.T) {
	for name, fields := range map[string]string{
		"nothing":                            "",
		"a channel without a window":         "channel: Stable",
		"a window of every day":              `window: {start: "00:00", duration: 24h}`,
		"a window across midnight":           `window: {days: [Sun], start: "23:30", duration: 168h, timeZone: Pacific/Chatham}`,
		"a window on Sundays, as AWS has it": `window: {cron: "30 2 ? * 1 *", duration: 30m, timeZone: America/Argentina/Buenos_Aires}`,
		"a time zone without a place":        `window: {start: "22:00", duration: 4h, timeZone: UTC}`,
		"the last of its times": `window: {cron: "0 22 24-26 12 ? 2026", duration: 4h}, exclusions: [{from: ` +
			`"2026-12-20T00:00:00Z", until: "2026-12-27T01:59:00Z"}]`,
		"one upgrade as an exclusion ends": `exclusions: [{from: "2026-12-20T00:00:00Z", until: "2026-12-21T00:00:00Z"}], at: {time: ` +
			`"2026-12-21T00:00:00Z", release: "1.37-1"}`,
		"one upgrade outside of the window": `window: {days: [Mon], start: "22:00", duration: 4h}, at: {time: "2026-12-20T00:00:00Z", ` +
			`release: "1.37-1"}`,
		"names of alarms": `alarms: ["Shop: p99 > 1 s (checkout)", TargetTracking-table/x-AlarmHigh-1]`,
	} {
		t.Run(name, func(t *testing.T) {
			judged := options
			judged.Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			_, errs := api.ReadCluster("demo.yaml", edit(t, good, upgrade(fields)), judged)
			require.NoError(t, errs.Err())
		})
	}
}

// A valid spec stays valid after its window's end: what runs from it must not stop.
func TestValidateChecksEndedWindowsOnRequest(t *testing.T) {
	over := edit(t, good, upgrade(`window: {cron: "0 22 * * ? 2020", duration: 4h}`))
	_, errs := api.ReadCluster("demo.yaml", over, options)
	require.NoError(t, errs.Err())
}

func TestValidateUpgradeFrom(t *testing.T) {
	for from, want := range map[string]string{
		"1.36": "", "1.35": "", "1.33": "",
		"1.32": `r.yaml:7: spec.upgradeFrom: Invalid value: "1.32": must be between 1.33 and the release's own 1.36: nodes may be 3 minor ` +
			`versions older than their control plane`,
		"1.37": `r.yaml:7: spec.upgradeFrom: Invalid value: "1.37": must be between 1.33 and the release's own 1.36: nodes may be 3 minor ` +
			`versions older than their control plane`,
		"35": `r.yaml:7: spec.upgradeFrom: Invalid value: "35": must be a minor version, such as "1.36"`,
	} {
		_, errs := api.ReadRelease("r.yaml", edit(t, goodRelease, pairs{"  images:", "  upgradeFrom: \"" + from + "\"\n  images:"}),
			api.Options{})
		require.Equal(t, want, errs.Error(), from)
	}
}

const goodChannels = `apiVersion: drover.run/v1alpha1
kind: Channels
metadata:
  name: channels
spec:
  stable: "1.35-2"
  rapid: "1.36-1"
  nodes: {"1.36": "1.36-2"}
`

func TestChannels(t *testing.T) {
	channels, errs := api.ReadChannels("channels.yaml", []byte(goodChannels), api.Options{Name: "channels"})
	require.NoError(t, errs.Err())
	require.Equal(t, "Channels", api.KindOf([]byte(goodChannels)))
	require.Equal(t, "1.35-2", channels.Spec.Release(api.ChannelStable, "1.36"))
	require.Equal(t, "1.36-1", channels.Spec.Release(api.ChannelRapid, "1.36"))
	require.Equal(t, "1.36-2", channels.Spec.Release(api.ChannelNodes, "1.36"))
	require.Empty(t, channels.Spec.Release(api.ChannelNodes, "1.37"))
	require.Empty(t, channels.Spec.Release(api.ChannelNone, "1.36"))
	require.Equal(t, map[string]string{"spec.stable": "1.35-2", "spec.rapid": "1.36-1", "spec.nodes[1.36]": "1.36-2"},
		channels.Spec.Releases())
	require.Empty(t, api.ChannelsSpec{}.Releases())
}

func TestValidateChannels(t *testing.T) {
	for name, c := range map[string]struct {
		edits pairs
		want  string
	}{
		"another name": {pairs{"name: channels", "name: others"}, `c.yaml:4: metadata.name: Invalid value: "others": must be ` +
			`channels: there is one such object`},
		"a version that is none": {pairs{`"1.36":`, `"1.36.1":`}, `c.yaml:8: spec.nodes[1.36.1]: Invalid value: "1.36.1": must be a ` +
			`minor version, such as "1.36"`},
		"itself as a release": {
			pairs{`"1.35-2"`, "channels"},
			`c.yaml:6: spec.stable: Invalid value: "channels": is not a release: releases/channels.yaml names the release of each channel`,
		},
		"a release that is a path": {pairs{`"1.36-2"`, "../x"}, `c.yaml:8: spec.nodes[1.36]: Invalid value: "../x": must be lower case ` +
			`letters, digits, '-' and '.', starting and ending with a letter or digit`},
		"an unknown channel": {pairs{"rapid:", "fast:"}, `c.yaml:7: spec.fast: Forbidden: unknown field: the fields here are ` +
			`stable, rapid, nodes`},
		"a release": {pairs{"kind: Channels", "kind: Release"}, `c.yaml:2: kind: Unsupported value: "Release": supported ` +
			`values: "Channels"`},
	} {
		t.Run(name, func(t *testing.T) {
			channels, errs := api.ReadChannels("c.yaml", edit(t, goodChannels, c.edits), api.Options{})
			require.Nil(t, channels)
			require.Equal(t, c.want, strings.Join(lines(errs), "\n"))
		})
	}
	channels, errs := api.DecodeChannels("c.yaml", []byte(goodChannels))
	require.NoError(t, errs.Err())
	require.NoError(t, api.ValidateChannels(channels, api.Options{}).Err())
}

func TestReleaseMayNotBeNamedChannels(t *testing.T) {
	const want = `metadata.name: Invalid value: "channels": is not a release: releases/channels.yaml names the release of each channel`
	_, errs := api.ReadRelease("r.yaml", edit(t, goodRelease, pairs{`"1.36-1"`, "channels"}), api.Options{})
	require.Equal(t, "r.yaml:4: "+want, errs.Error())
	_, errs = api.ReadCluster("demo.yaml", edit(t, good, pairs{`"1.36-1"`, "channels"}), options)
	require.Contains(t, errs.Error(), "spec.release.name")
}

func TestUpgradeOpen(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return parsed
	}
	for name, c := range map[string]struct {
		fields, now string
		open        bool
		next        string
	}{
		"at any time without a window": {"", "2026-11-20T12:00:00Z", true, ""},
		"from notBefore on":            {`notBefore: "2026-12-01T00:00:00Z"`, "2026-11-20T12:00:00Z", false, "2026-12-01T00:00:00Z"},
		"after an exclusion": {`exclusions: [{from: "2026-11-20T00:00:00Z", until: "2026-11-21T00:00:00Z"}]`,
			"2026-11-20T12:00:00Z", false, "2026-11-21T00:00:00Z"},
		"as the window opens": {`window: {days: [Sat], start: "22:00", duration: 4h, timeZone: Europe/Berlin}`,
			"2026-11-20T12:00:00Z", false, "2026-11-21T21:00:00Z"},
		"within the window, and in the next": {`window: {days: [Sat], start: "22:00", duration: 4h}`, "2026-11-22T01:59:59Z", true,
			"2026-11-28T22:00:00Z"},
		"not as the window closes": {`window: {days: [Sat], start: "22:00", duration: 4h}`, "2026-11-22T02:00:00Z", false,
			"2026-11-28T22:00:00Z"},
		"in the rest of a window": {`window: {start: "22:00", duration: 4h}, exclusions: [{from: "2026-11-20T12:00:00Z", ` +
			`until: "2026-11-21T01:00:00Z"}]`, "2026-11-20T12:00:00Z", false, "2026-11-21T01:00:00Z"},
		"not after the last window": {`window: {cron: "0 22 * * ? 2025", duration: 4h}`, "2026-11-20T12:00:00Z", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := readCluster(t, edit(t, good, upgrade(c.fields)))
			open, next := cluster.Spec.Upgrade.Open(at(c.now))
			require.Equal(t, c.open, open)
			if c.next == "" {
				require.Zero(t, next)
				return
			}
			require.Equal(t, at(c.next), next.UTC())
		})
	}
	// An unvalidated upgrade opens nothing.
	wrong := &api.Upgrade{Window: &api.Window{Cron: "x", Duration: "4h"}}
	open, next := wrong.Open(at("2026-11-20T12:00:00Z"))
	require.False(t, open)
	require.Zero(t, next)
}
