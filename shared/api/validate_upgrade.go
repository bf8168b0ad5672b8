package api

// Rules about when clusters are upgraded, and about a release's upgradeFrom.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drover-run/drover/shared/calendar"
)

// maxUpgradeFrom is how many minor versions a kubelet may be behind its control plane. Older nodes would not work while the control plane
// is upgraded.
// https://kubernetes.io/releases/version-skew-policy/#kubelet
const maxUpgradeFrom = 3

func validateUpgradeFrom(path *field.Path, r *Release) (errs field.ErrorList) {
	from, own := r.Spec.UpgradeFrom, minor(r.Spec.KubernetesVersion)
	if from == "" || own < 0 || minor(from) < 0 {
		return nil
	}
	if minor(from) > own || minor(from) < own-maxUpgradeFrom {
		errs = append(errs,
			field.Invalid(path, from, fmt.Sprintf("must be between 1.%d and the release's own %s: "+
				"nodes may be %d minor versions older than their control plane",
				max(0, own-maxUpgradeFrom), r.Spec.KubernetesVersion, maxUpgradeFrom)))
	}
	return errs
}

// validateChannel checks specs as written. Resolved ones all state a version.
func validateChannel(c *Cluster) field.ErrorList {
	channel := c.Spec.Upgrade.Channel
	if c.Spec.KubernetesVersion == "" || (channel != ChannelStable && channel != ChannelRapid) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "upgrade", "channel"),
		fmt.Sprintf("the channel %s has the Kubernetes version of its release: remove spec.kubernetesVersion", channel))}
}

func validateUpgrade(path *field.Path, spec *ClusterSpec, now time.Time) (errs field.ErrorList) {
	u := &spec.Upgrade
	if u.Window != nil {
		errs = append(errs, validateWindow(path.Child("window"), u.Window)...)
	}
	for i, e := range u.Exclusions {
		from, until := timeOf(e.From), timeOf(e.Until)
		if !from.IsZero() && !until.IsZero() && !from.Before(until) {
			errs = append(errs, field.Invalid(path.Child("exclusions").Index(i).Child("until"), e.Until, "must be after from"))
		}
	}
	errs = append(errs, validateAt(path.Child("at"), u)...)
	if len(errs) == 0 && u.Window != nil {
		errs = append(errs, validateOpens(path, u, now)...)
	}
	return errs
}

// The shortest window leaves time for operations in flight on the cluster. The longest covers every day of the week.
const minWindow, maxWindow = 30 * time.Minute, 7 * 24 * time.Hour

func validateWindow(path *field.Path, w *Window) (errs field.ErrorList) {
	switch {
	case w.Cron != "" && w.Start != "":
		errs = append(errs, field.Forbidden(path.Child("start"), "a window opens by cron, or by start and days: remove one"))
	case w.Cron != "" && len(w.Days) > 0:
		errs = append(errs, field.Forbidden(path.Child("days"), "cron already contains the days: remove this field"))
	case w.Cron == "" && w.Start == "":
		errs = append(errs, field.Required(path.Child("start"), "a window opens by cron, or by start and days"))
	}
	if d, err := time.ParseDuration(w.Duration); err == nil && (d < minWindow || d > maxWindow) {
		errs = append(errs, field.Invalid(path.Child("duration"), w.Duration, fmt.Sprintf("must be between %s and %s", short(minWindow),
			short(maxWindow))))
	}
	return errs
}

// validateAt rejects a time at which the other fields forbid a start.
func validateAt(path *field.Path, u *Upgrade) (errs field.ErrorList) {
	if u.At == nil || timeOf(u.At.Time).IsZero() {
		return nil
	}
	limits, at := u.limits(), timeOf(u.At.Time)
	if at.Before(limits.NotBefore) {
		errs = append(errs, field.Invalid(path.Child("time"), u.At.Time, "must not be before notBefore"))
	}
	for i, span := range limits.Excluded {
		if !at.Before(span.From) && at.Before(span.Until) {
			errs = append(errs, field.Invalid(path.Child("time"), u.At.Time, fmt.Sprintf("must not be within exclusions[%d]", i)))
		}
	}
	return errs
}

const noMore = "the window never opens again"

// validateOpens rejects a window that never opens, or never again. The error names the cause: the limits that cover all that is left of
// it, or the window's own times.
func validateOpens(path *field.Path, u *Upgrade, now time.Time) (errs field.ErrorList) {
	window, err := u.Window.calendar()
	if err != nil {
		return nil // the field's format reports it
	}
	at, value := path.Child("window", "cron"), u.Window.Cron
	if value == "" {
		at, value = path.Child("window", "start"), u.Window.Start
	}
	beginning := time.Unix(0, 0)
	if now.IsZero() {
		now = beginning
	}
	if open, next := window.Open(u.limits(), now); open || !next.IsZero() {
		return nil
	}
	const covered = noMore + ": this excludes all its remaining times"
	notBefore, spans := window.Shut(u.limits(), now)
	if notBefore {
		errs = append(errs, field.Invalid(path.Child("notBefore"), u.NotBefore, covered))
	}
	for _, i := range spans {
		errs = append(errs, field.Invalid(path.Child("exclusions").Index(i).Child("until"), u.Exclusions[i].Until, covered))
	}
	if len(errs) > 1 {
		for _, e := range errs {
			e.Detail += fmt.Sprintf(", together with the other %d", len(errs)-1)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	when := "the window never opens"
	if _, ever := window.Open(calendar.Limits{}, beginning); !ever.IsZero() {
		when = noMore
	}
	return field.ErrorList{field.Invalid(at, value, when)}
}

// Open reports whether upgrades may start now, by the window, the exclusions and notBefore, and when the window opens next. For an open
// window, next is after now. It is the zero time if there is none. Without a window, only the exclusions and notBefore apply.
func (u *Upgrade) Open(now time.Time) (open bool, next time.Time) {
	var window calendar.Window
	if u.Window != nil {
		var err error
		if window, err = u.Window.calendar(); err != nil {
			return false, time.Time{} // not a validated spec
		}
	}
	return window.Open(u.limits(), now)
}

// NoMore describes why a window never opens again.
func (u *Upgrade) NoMore(now time.Time) string {
	const is = "the window of spec.upgrade never opens again"
	if u.Window == nil {
		return is
	}
	window, err := u.Window.calendar()
	if err != nil {
		return is
	}
	var by []string
	notBefore, spans := window.Shut(u.limits(), now)
	if notBefore {
		by = append(by, "notBefore")
	}
	for _, i := range spans {
		by = append(by, fmt.Sprintf("exclusions[%d]", i))
	}
	if len(by) == 0 {
		return is
	}
	return is + ", because all its remaining times are excluded by spec.upgrade." + strings.Join(by, " and ")
}

func (u *Upgrade) limits() (l calendar.Limits) {
	l.NotBefore = timeOf(u.NotBefore)
	for _, e := range u.Exclusions {
		l.Excluded = append(l.Excluded, calendar.Span{From: timeOf(e.From), Until: timeOf(e.Until)})
	}
	return l
}

// calendar converts the window. It returns an error for an invalid field.
func (w *Window) calendar() (calendar.Window, error) {
	zone, err := calendar.Zone(w.TimeZone)
	if err != nil {
		return calendar.Window{}, err
	}
	duration, err := time.ParseDuration(w.Duration)
	if err != nil {
		return calendar.Window{}, err
	}
	if w.Cron != "" {
		cron, err := calendar.ParseCron(w.Cron)
		return calendar.OfCron(cron, zone, duration), err
	}
	start, err := time.Parse("15:04", w.Start)
	if err != nil {
		return calendar.Window{}, err
	}
	var days []time.Weekday
	for day := time.Sunday; day <= time.Saturday; day++ {
		if slices.Contains(w.Days, day.String()[:3]) {
			days = append(days, day)
		}
	}
	sinceMidnight := time.Duration(start.Hour())*time.Hour + time.Duration(start.Minute())*time.Minute
	return calendar.Weekly(days, sinceMidnight, zone, duration), nil
}

// timeOf parses a time of a spec. It returns the zero time for an absent or invalid one.
func timeOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
