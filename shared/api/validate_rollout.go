package api

// Rules about several fields of rollouts, decisions and freezes.

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReadRollout decodes and validates a rollout, like ReadCluster.
func ReadRollout(file string, data []byte, o Options) (*Rollout, Errors) {
	d := decode(file, data, KindRollout)
	if errs := d.withValidation(func() field.ErrorList { return validateRollout(d.object.(*Rollout), o) }); len(errs) > 0 {
		return nil, errs
	}
	return d.object.(*Rollout), nil
}

// ReadDecision decodes and validates a decision, like ReadCluster.
func ReadDecision(file string, data []byte, o Options) (*Decision, Errors) {
	d := decode(file, data, KindDecision)
	if errs := d.withValidation(func() field.ErrorList { return validateDecision(d.object.(*Decision), o) }); len(errs) > 0 {
		return nil, errs
	}
	return d.object.(*Decision), nil
}

// ReadFreeze decodes and validates a freeze, like ReadCluster.
func ReadFreeze(file string, data []byte, o Options) (*Freeze, Errors) {
	d := decode(file, data, KindFreeze)
	if errs := d.withValidation(func() field.ErrorList { return validateFreeze(d.object.(*Freeze), o) }); len(errs) > 0 {
		return nil, errs
	}
	return d.object.(*Freeze), nil
}

// Defaulted returns a copy with drover's defaults filled in. Call ReadRollout first.
func (r *Rollout) Defaulted() *Rollout {
	out := copyOf(r)
	applyDefaults(reflect.ValueOf(out).Elem())
	return out
}

// unsupportedFields are fields of later versions of drover, by their parent object. Files that have one are rejected with its name.
var unsupportedFields = map[reflect.Type]map[string]string{
	reflect.TypeFor[RolloutSubject](): {
		"modules":  "rollouts change releases only",
		"absent":   "rollouts change releases only",
		"provenBy": "name the release",
	},
	reflect.TypeFor[Gate]():         {"hook": "use an approval or an alarm"},
	reflect.TypeFor[Approval]():     {"by": "IAM limits who can write decisions"},
	reflect.TypeFor[DecisionSpec](): {"proof": "IAM limits who can write decisions"},
}

// unsupportedField returns the message about a field that a later version of drover may support; empty for any other field.
func unsupportedField(parent reflect.Type, name string) string {
	if instead := unsupportedFields[parent][name]; instead != "" {
		return "not supported yet: " + instead
	}
	return ""
}

func validateRollout(r *Rollout, o Options) field.ErrorList {
	errs := validateFields(nil, reflect.ValueOf(r).Elem(), Rules{}, nil)
	errs = append(errs, validateMetadata(r.Metadata, o)...)
	spec := field.NewPath("spec")
	errs = append(errs, validateRolloutSubject(spec.Child("subject"), &r.Spec.Subject)...)
	if r.Spec.Clusters != nil {
		errs = append(errs, validateSelector(spec.Child("clusters"), r.Spec.Clusters)...)
	}
	switch {
	case r.Spec.Like != "" && len(r.Spec.Stages) > 0:
		errs = append(errs, field.Forbidden(spec.Child("like"), "a rollout has stages of its own or those of another: remove one"))
	case r.Spec.Like == "" && r.Spec.Stages == nil:
		errs = append(errs, field.Required(spec.Child("stages"), "or name another rollout in like"))
	case r.Spec.Like != "" && r.Spec.Like == r.Metadata.Name:
		errs = append(errs, field.Invalid(spec.Child("like"), r.Spec.Like, "must be another rollout"))
	}
	full := r.Defaulted()
	for i := range full.Spec.Stages {
		errs = append(errs, validateStage(spec.Child("stages").Index(i), &full.Spec.Stages[i])...)
	}
	return errs
}

func validateRolloutSubject(path *field.Path, s *RolloutSubject) (errs field.ErrorList) {
	switch {
	case s.Release != "" && s.Releases != nil:
		errs = append(errs, field.Forbidden(path.Child("releases"), "a rollout has one release, or several by Kubernetes version: remove one"))
	case s.Release == "" && s.Releases == nil:
		errs = append(errs, field.Required(path.Child("release"), "or state releases"))
	}
	return errs
}

// The limits of durations of a stage. The longest soak fits the time for which EKS allows a rollback, and a margin.
const (
	maxSettle        = 24 * time.Hour
	maxSoak          = 30 * 24 * time.Hour
	minDeadline      = 10 * time.Minute
	maxStageDeadline = 30 * 24 * time.Hour
)

func validateStage(path *field.Path, s *RolloutStage) (errs field.ErrorList) {
	errs = append(errs, validateSelector(path.Child("selector"), &s.Selector)...)
	if len(s.Groups) > 0 && s.GroupBy == "" {
		errs = append(errs, field.Forbidden(path.Child("groups"), "needs groupBy, the label whose values these are"))
	}
	errs = append(errs, validateWaves(path.Child("waves"), s.Waves)...)
	if s.MaxConcurrency.None() {
		errs = append(errs, field.Invalid(path.Child("maxConcurrency"), s.MaxConcurrency, "must be at least 1, or no cluster would start"))
	}
	settle := validateDuration(path.Child("settle"), s.Settle, 0, maxSettle, &errs)
	validateDuration(path.Child("soak"), s.Soak, 0, maxSoak, &errs)
	if s.Deadline != "" {
		deadline := validateDuration(path.Child("deadline"), s.Deadline, minDeadline, maxStageDeadline, &errs)
		if len(errs) == 0 && deadline <= settle {
			errs = append(errs, field.Invalid(path.Child("deadline"), s.Deadline, "must be longer than settle: a member is Good only after that"))
		}
	}
	if s.Window != nil {
		wrong := validateWindow(path.Child("window"), s.Window)
		if errs = append(errs, wrong...); len(wrong) == 0 {
			errs = append(errs, validateEverOpens(path.Child("window"), s.Window)...)
		}
	}
	for name, gates := range map[string][]Gate{"before": s.Before, "after": s.After} {
		for i, g := range gates {
			here := path.Child(name).Index(i)
			switch {
			case g.Approval == nil:
				errs = append(errs, field.Required(here.Child("approval"), ""))
			case g.Approval.Count > 1:
				errs = append(errs, field.Forbidden(here.Child("approval", "count"),
					"not supported yet: several approvals need proof that several users made them; use 1"))
			}
		}
	}
	return errs
}

// validateDuration checks the bounds of a duration, and returns it. The format of the field checks its form.
func validateDuration(path *field.Path, text string, shortest, longest time.Duration, errs *field.ErrorList) time.Duration {
	d, err := time.ParseDuration(text)
	if err == nil && (d < shortest || d > longest) {
		*errs = append(*errs, field.Invalid(path, text, fmt.Sprintf("must be between %s and %s", short(shortest), short(longest))))
	}
	return d
}

// validateWaves requires waves that grow. Numbers and percentages cannot be compared before the number of clusters is known.
func validateWaves(path *field.Path, waves []Amount) (errs field.ErrorList) {
	number, percent := 0, 0
	for i, wave := range waves {
		here := path.Index(i)
		switch n, isPercent := wave.Percent(); {
		case wave == "":
			continue // it could not be read
		case wave.None():
			errs = append(errs, field.Invalid(here, wave, "must be at least 1: a wave without clusters has no effect"))
		case isPercent && n <= percent, !isPercent && wave.Of(0, false) <= number:
			errs = append(errs, field.Invalid(here, wave, "must be more than the wave before: waves are cumulative"))
		case isPercent:
			percent = n
		default:
			number = wave.Of(0, false)
		}
	}
	if last := len(waves) - 1; last >= 0 && waves[last] != "100%" && waves[last] != "" {
		errs = append(errs, field.Invalid(path.Index(last), waves[last], "the last wave must be 100%: clusters would be left out"))
	}
	return errs
}

// validateEverOpens rejects a window that never opens.
func validateEverOpens(path *field.Path, w *Window) field.ErrorList {
	at, value := path.Child("cron"), w.Cron
	if value == "" {
		at, value = path.Child("start"), w.Start
	}
	beginning := time.Unix(0, 0)
	if open, next := w.Opening(beginning); open || !next.IsZero() || w.invalid() {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, "the window never opens")}
}

// invalid reports whether a field of the window has the wrong form, which the format of that field reports.
func (w *Window) invalid() bool {
	_, err := w.calendar()
	return err != nil
}

func validateSelector(path *field.Path, s *Selector) (errs field.ErrorList) {
	for i, r := range s.MatchExpressions {
		here := path.Child("matchExpressions").Index(i).Child("values")
		switch r.Operator {
		case OperatorIn, OperatorNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(here, fmt.Sprintf("for the operator %s", r.Operator)))
			}
		case OperatorExists, OperatorDoesNotExist:
			if len(r.Values) > 0 {
				errs = append(errs, field.Forbidden(here, fmt.Sprintf("the operator %s has no values", r.Operator)))
			}
		}
	}
	return errs
}

func validateDecision(d *Decision, o Options) field.ErrorList {
	errs := validateFields(nil, reflect.ValueOf(d).Elem(), Rules{}, nil)
	errs = append(errs, validateMetadata(d.Metadata, o)...)
	spec, s := field.NewPath("spec"), d.Spec
	if s.Plan == "" && s.Verb.known() && !s.Verb.Brakes() {
		errs = append(errs, field.Required(spec.Child("plan"), "the digest of the plan that is decided; only Pause, Abort and Reject need none"))
	}
	given := map[string]bool{"stage": s.Stage != "", "clusters": s.Clusters != nil, "freeze": s.Freeze != ""}
	for _, f := range []struct {
		name               string
		required, optional []Verb
	}{
		{"stage", []Verb{VerbApprove}, []Verb{VerbRollback, VerbReject}},
		{"clusters", []Verb{VerbRetry, VerbSkip}, nil},
		{"freeze", []Verb{VerbOverride}, nil},
	} {
		needs, may := slices.Contains(f.required, s.Verb), slices.Contains(f.optional, s.Verb)
		switch {
		case needs && !given[f.name]:
			errs = append(errs, field.Required(spec.Child(f.name), fmt.Sprintf("for the verb %s", s.Verb)))
		case given[f.name] && !needs && !may && s.Verb.known():
			errs = append(errs, field.Forbidden(spec.Child(f.name), fmt.Sprintf("the verb %s has none", s.Verb)))
		}
	}
	return errs
}

func validateFreeze(f *Freeze, o Options) field.ErrorList {
	errs := validateFields(nil, reflect.ValueOf(f).Elem(), Rules{}, nil)
	errs = append(errs, validateMetadata(f.Metadata, o)...)
	spec, s := field.NewPath("spec"), f.Spec
	errs = append(errs, validateSelector(spec.Child("clusters"), &s.Clusters)...)
	from, until := timeOf(s.From), timeOf(s.Until)
	switch {
	case s.Windows != nil && (s.From != "" || s.Until != ""):
		errs = append(errs, field.Forbidden(spec.Child("windows"), "a freeze has windows, or from and until: remove one"))
	case s.Windows == nil && s.From == "":
		errs = append(errs, field.Required(spec.Child("from"), "or state windows"))
	case s.Windows == nil && s.Until == "":
		errs = append(errs, field.Required(spec.Child("until"), ""))
	case !from.IsZero() && !until.IsZero() && !from.Before(until):
		errs = append(errs, field.Invalid(spec.Child("until"), s.Until, "must be after from"))
	}
	for i := range s.Windows {
		here := spec.Child("windows").Index(i)
		wrong := validateWindow(here, &s.Windows[i])
		if errs = append(errs, wrong...); len(wrong) == 0 {
			errs = append(errs, validateEverOpens(here, &s.Windows[i])...)
		}
	}
	return errs
}
