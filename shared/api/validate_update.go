package api

// Rules about how a pool's nodes are replaced.

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CloudFormation waits at most an hour for the signals of a batch. Half of it is for draining, booting and joining. An instance refresh
// may take 36 hours in all.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-refresh-overview.html
var maxPause = map[Strategy]time.Duration{RollingUpdate: 30 * time.Minute, InstanceRefresh: 6 * time.Hour}

func validateUpdate(path *field.Path, u *Update) (errs field.ErrorList) {
	if u.MaxUnavailable.None() && u.MaxSurge.None() {
		errs = append(errs, field.Invalid(path.Child("maxSurge"), raw(u.MaxSurge),
			"cannot be 0 when maxUnavailable is 0: no node could be replaced"))
	}
	if most, ok := maxPause[u.Strategy]; ok {
		if pause, err := time.ParseDuration(u.PauseTime); err == nil && pause > most {
			errs = append(errs, field.Invalid(path.Child("pauseTime"), u.PauseTime, fmt.Sprintf("must be at most %s with the strategy %s",
				short(most), u.Strategy)))
		}
	}
	if u.Strategy == InstanceRefresh {
		// Auto Scaling accepts percentages that are at most 100 apart.
		// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html
		surge, _ := u.MaxSurge.Percent()
		if unavailable, _ := u.MaxUnavailable.Percent(); surge+unavailable > 100 {
			errs = append(errs, field.Invalid(path.Child("maxSurge"), raw(u.MaxSurge),
				fmt.Sprintf("maxSurge and maxUnavailable (%s) must not be more than 100%% together with the strategy %s", u.MaxUnavailable,
					u.Strategy)))
		}
	}
	return errs
}

// maxReadiness is the maximum length of a pool's readiness as JSON, in bytes. The launch hook's metadata contains it, together with names
// of up to 113 characters. Auto Scaling allows 1023 characters.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LifecycleHookSpecification.html
const maxReadiness = 700

func validateReadiness(path *field.Path, p *Pool) (errs field.ErrorList) {
	for _, key := range sortedKeys(p.Readiness.Labels) {
		if own, ok := p.Labels[key]; ok && own != p.Readiness.Labels[key] {
			errs = append(errs, field.Invalid(path.Child("labels").Key(key), p.Readiness.Labels[key],
				fmt.Sprintf("no node would become ready: the pool's labels have the value %q", own)))
		}
	}
	if body, err := json.Marshal(p.Readiness); err == nil && len(body) > maxReadiness {
		errs = append(errs, field.TooLong(path, "", maxReadiness))
	}
	return errs
}
