package api

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/calendar"
)

// Freeze is a period in which drover begins no work by itself on some clusters. Work in flight, the repair of drift and deletion continue.
// Deleting the file ends it.
type Freeze struct {
	// APIVersion is drover.run/v1alpha1.
	APIVersion string `json:"apiVersion" rule:"enum=drover.run/v1alpha1"`
	// Kind is Freeze.
	Kind string `json:"kind" rule:"enum=Freeze"`
	// Metadata names the freeze.
	Metadata Metadata `json:"metadata"`
	// Spec is when the freeze applies, and to which clusters.
	Spec FreezeSpec `json:"spec"`
}

// FreezeSpec is when a freeze applies, and to which clusters. State from and until, or windows.
type FreezeSpec struct {
	// Clusters that the freeze holds; {} is every cluster.
	Clusters Selector `json:"clusters"`
	// From is when it begins.
	From string `json:"from,omitempty" rule:"format=time"`
	// Until is when it ends.
	Until string `json:"until,omitempty" rule:"format=time"`
	// Windows in which it applies, each time that one is open.
	Windows []Window `json:"windows,omitempty" rule:"minItems=1;maxItems=20"`
	// Stops is the work that does not begin: members of rollouts, and other upgrades.
	Stops []Stop `json:"stops,omitempty" rule:"default=Rollouts,Upgrades;enum=Rollouts,Upgrades;unique;minItems=1"`
	// Reason is for readers.
	Reason string `json:"reason,omitempty" rule:"format=line"`
}

// Stop is a kind of work that a freeze stops.
type Stop string

// The values of Stop.
const (
	StopRollouts Stop = "Rollouts"
	StopUpgrades Stop = "Upgrades"
)

// Frozen returns the freeze that stops a kind of work on a cluster now, and when that freeze ends. until is zero if
// it never ends. Of several it returns the one that ends last, and of those the first by name. freeze is nil if none applies.
func Frozen(freezes []Freeze, what Stop, labels map[string]string, now time.Time) (freeze *Freeze, until time.Time) {
	for i := range freezes {
		f := &freezes[i]
		if !f.stops(what) || !f.Spec.Clusters.Matches(labels) {
			continue
		}
		end, active := f.Spec.active(now)
		if active && (freeze == nil || endsLater(end, until) || end.Equal(until) && f.Metadata.Name < freeze.Metadata.Name) {
			freeze, until = f, end
		}
	}
	return freeze, until
}

// endsLater compares two ends. The zero time is never.
func endsLater(a, b time.Time) bool { return !b.IsZero() && (a.IsZero() || a.After(b)) }

func (f *Freeze) stops(what Stop) bool {
	return len(f.Spec.Stops) == 0 || slices.Contains(f.Spec.Stops, what)
}

// active reports whether the freeze applies now, and when it ends. until is zero if it never does.
func (s *FreezeSpec) active(now time.Time) (until time.Time, active bool) {
	if s.From != "" || s.Until != "" {
		from, end := timeOf(s.From), timeOf(s.Until)
		return end, !now.Before(from) && now.Before(end)
	}
	for i := range s.Windows {
		window, err := s.Windows[i].calendar()
		if err != nil {
			continue // not a validated freeze
		}
		if end, open := window.Closes(now); open && (!active || endsLater(end, until)) {
			until, active = end, true
		}
	}
	return until, active
}

// Opening reports whether the window is open at a time. until is when that changes; it is zero if it never does.
func (w *Window) Opening(now time.Time) (open bool, until time.Time) {
	window, err := w.calendar()
	if err != nil {
		return false, time.Time{} // not a validated window
	}
	if end, open := window.Closes(now); open {
		return true, end
	}
	_, next := window.Open(calendar.Limits{}, now)
	return false, next
}

// Labels that each cluster has, with the values that drover knows. They take precedence over labels of the spec.
const (
	LabelCell       = impliedPrefix + "cell"
	LabelRegion     = impliedPrefix + "region"
	LabelAccount    = impliedPrefix + "account"
	LabelKubernetes = impliedPrefix + "kubernetes"
	impliedPrefix   = "drover.run/"
)

// Matches reports whether the labels of a cluster satisfy the selector. The empty selector matches every cluster.
func (s *Selector) Matches(labels map[string]string) bool {
	for key, want := range s.MatchLabels {
		if have, ok := labels[key]; !ok || have != want {
			return false
		}
	}
	for _, r := range s.MatchExpressions {
		have, ok := labels[r.Key]
		matches := false
		switch r.Operator {
		case OperatorIn:
			matches = ok && slices.Contains(r.Values, have)
		case OperatorNotIn:
			matches = !ok || !slices.Contains(r.Values, have)
		case OperatorExists:
			matches = ok
		case OperatorDoesNotExist:
			matches = !ok
		}
		if !matches {
			return false
		}
	}
	return true
}

// String returns the selector in one line, as kubectl writes it.
func (s *Selector) String() string {
	var parts []string
	for _, key := range sortedKeys(s.MatchLabels) {
		parts = append(parts, key+"="+s.MatchLabels[key])
	}
	for _, r := range s.MatchExpressions {
		switch r.Operator {
		case OperatorExists:
			parts = append(parts, r.Key)
		case OperatorDoesNotExist:
			parts = append(parts, "!"+r.Key)
		case OperatorIn:
			parts = append(parts, r.Key+" in ("+strings.Join(r.Values, ",")+")")
		case OperatorNotIn:
			parts = append(parts, r.Key+" notin ("+strings.Join(r.Values, ",")+")")
		}
	}
	if len(parts) == 0 {
		return "{}"
	}
	return strings.Join(parts, ", ")
}
