package api

// The settings of a cell: what only the platform team may allow. infra reads them from the CDK context, and functions get them as JSON in
// their environment. What is empty allows nothing.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CellSettingsContext is the key of the CDK context with the settings.
const CellSettingsContext = "cellSettings"

// CellSettingsVariable is the environment variable of functions with the settings. It is not set without settings.
const CellSettingsVariable = "DROVER_CELL_SETTINGS"

// NamesWorkloadRoles reports whether a spec gives pods roles or policies that the settings must allow.
func (c *Cluster) NamesWorkloadRoles() bool {
	return namesRole(c.Spec.Addons) || slices.ContainsFunc(c.Spec.PodIdentities, func(i PodIdentity) bool { return i.Preset == "" })
}

// NamesWorkloadRoles reports whether a release gives pods of add-ons roles that the settings must allow.
func (r *Release) NamesWorkloadRoles() bool { return namesRole(r.Spec.Addons) }

func namesRole(addons []Addon) bool {
	return slices.ContainsFunc(addons, func(a Addon) bool {
		return slices.ContainsFunc(a.PodIdentities, func(i AddonIdentity) bool { return i.RoleARN != "" })
	})
}

// CellSettings are the settings of a cell.
type CellSettings struct {
	// WorkloadRoles are the roles that specs may give to pods, as ARNs. In a name or path, * stands for any characters.
	WorkloadRoles []string `json:"workloadRoles,omitempty"`
	// WorkloadPolicies are the AWS managed policies that specs may give to pods, by name and with their path.
	WorkloadPolicies []string `json:"workloadPolicies,omitempty"`
	// WorkloadBoundary is the permissions boundary of the roles with those policies, as an ARN. Without it, specs cannot name policies.
	WorkloadBoundary string `json:"workloadBoundary,omitempty"`
	// IdentityCenter is the instance of IAM Identity Center in which specs may create an application of Argo CD, as an ARN. Without it, specs
	// cannot have Argo CD.
	IdentityCenter string `json:"identityCenter,omitempty"`

	// Account is the account of the cell, if it is known. It is no setting.
	Account string `json:"-"`
}

// maxCellSettings bounds the settings in JSON: they must fit into the 4 KB of a function's environment, and into an IAM policy twice.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
const maxCellSettings = 2000

// ParseCellSettings reads settings from JSON. An empty text has none.
func ParseCellSettings(text string) (s CellSettings, err error) {
	if text == "" {
		return s, nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, fmt.Errorf("%s: %w", CellSettingsContext, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("%s: must be one JSON object", CellSettingsContext)
	}
	return s, s.validate()
}

// String returns the settings as JSON, and "" if there are none.
func (s CellSettings) String() string {
	body, _ := json.Marshal(s) // strings always marshal
	if string(body) == "{}" {
		return ""
	}
	return string(body)
}

// key distinguishes settings, also from none.
func (s *CellSettings) key() string {
	if s == nil {
		return "not checked"
	}
	return s.Account + " " + s.String()
}

// workloadRole is the ARN of a role. Its name and path may contain *.
var workloadRole = regexp.MustCompile(`^arn:aws(-[a-z]+)*:iam::[0-9]{12}:role/([\w+=,.@*/-]{1,512})$`)

// workloadPolicy is the name of an AWS managed policy with its path.
var workloadPolicy = regexp.MustCompile(`^([A-Za-z][\w-]*/)*[\w+=,.@-]{1,128}$`)

// workloadBoundary is the ARN of a policy.
var workloadBoundary = regexp.MustCompile(`^arn:aws(-[a-z]+)*:iam::([0-9]{12}|aws):policy/[\w+=,.@/-]{1,512}$`)

// identityCenter is the ARN of an instance of IAM Identity Center.
// https://docs.aws.amazon.com/singlesignon/latest/APIReference/API_InstanceMetadata.html
var identityCenter = regexp.MustCompile(formatNamed("identity-center").Pattern)

func (s CellSettings) validate() error {
	for i, arn := range s.WorkloadRoles {
		part := workloadRole.FindStringSubmatch(arn)
		switch {
		case part == nil:
			return fmt.Errorf(`%s.workloadRoles[%d] is %q: must be the ARN of a role, such as "arn:aws:iam::111122223333:role/workloads/*"`,
				CellSettingsContext, i, arn)
		case matchesOwnRoles(part[2]):
			return fmt.Errorf("%s.workloadRoles[%d] is %q: would match roles of drover; name the path or the start of the names of your roles",
				CellSettingsContext, i, arn)
		}
	}
	for i, name := range s.WorkloadPolicies {
		if !workloadPolicy.MatchString(name) {
			return fmt.Errorf("%s.workloadPolicies[%d] is %q: must be the name of an AWS managed policy, such as AmazonS3ReadOnlyAccess",
				CellSettingsContext, i, name)
		}
	}
	switch {
	case s.WorkloadBoundary != "" && !workloadBoundary.MatchString(s.WorkloadBoundary):
		return fmt.Errorf(`%s.workloadBoundary is %q: must be the ARN of a policy, such as "arn:aws:iam::111122223333:policy/workloads"`,
			CellSettingsContext, s.WorkloadBoundary)
	case len(s.WorkloadPolicies) > 0 && s.WorkloadBoundary == "":
		return fmt.Errorf("%s.workloadPolicies needs workloadBoundary: the permissions boundary of the roles that drover creates",
			CellSettingsContext)
	case s.IdentityCenter != "" && !identityCenter.MatchString(s.IdentityCenter):
		return fmt.Errorf(`%s.identityCenter is %q: must be the ARN of an instance, such as "arn:aws:sso:::instance/ssoins-0123456789abcdef"`,
			CellSettingsContext, s.IdentityCenter)
	case s.IdentityCenter != "" && len(s.WorkloadRoles) == 0:
		return fmt.Errorf("%s.identityCenter needs workloadRoles: the roles that capabilities may have", CellSettingsContext)
	case len(s.String()) > maxCellSettings:
		return fmt.Errorf("%s has %d bytes: at most %d fit into the environment of a function; use fewer patterns, such as "+
			"the path of your roles", CellSettingsContext, len(s.String()), maxCellSettings)
	}
	return nil
}

// matchesOwnRoles reports whether a pattern of names and paths could match a role of drover or of a cluster: drover-… and /drover/….
func matchesOwnRoles(pattern string) bool {
	const own = "drover"
	start, _, isPattern := strings.Cut(pattern, "*")
	if isPattern && len(start) <= len(own) {
		return strings.HasPrefix(own, start)
	}
	return strings.HasPrefix(start, own+"/") || strings.HasPrefix(start, own+"-")
}

// allowsRole reports whether specs may give a role to pods. IAM matches the same way: * is any characters, also slashes.
func (s *CellSettings) allowsRole(arn string) bool {
	return slices.ContainsFunc(s.WorkloadRoles, func(pattern string) bool { return matchesARN(pattern, arn) })
}

func matchesARN(pattern, arn string) bool {
	parts := strings.Split(pattern, "*")
	rest, found := strings.CutPrefix(arn, parts[0])
	if !found || len(parts) == 1 {
		return found && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// askPlatformTeam ends the messages about what the cell does not allow.
const askPlatformTeam = "of " + CellSettingsContext + " in cdk.json, and deploys drover"

// validateRole returns an error if the cell does not allow a role. Without settings it checks nothing.
func (s *CellSettings) validateRole(path *field.Path, arn string) field.ErrorList {
	const setting = "workloadRoles"
	switch {
	case s == nil || arn == "" || len(formatNamed("role-arn").Wrong(arn)) > 0 || s.allowsRole(arn) && s.isOwn(arn):
		return nil
	case len(s.WorkloadRoles) == 0:
		return field.ErrorList{field.Forbidden(path, "the cell allows no role: the platform team adds roles to "+setting+" "+askPlatformTeam)}
	case !s.isOwn(arn):
		return field.ErrorList{field.Invalid(path, arn, fmt.Sprintf("is a role of another account: name one of account %s, and the other in "+
			"targetRoleARN", s.Account))}
	}
	return field.ErrorList{field.Invalid(path, arn, fmt.Sprintf("the cell allows the roles %s: choose another role, or the platform "+
		"team adds it to %s %s", strings.Join(s.WorkloadRoles, ", "), setting, askPlatformTeam))}
}

// isOwn reports whether a role is of the cell's account.
func (s *CellSettings) isOwn(arn string) bool {
	return s.Account == "" || strings.Contains(arn, "::"+s.Account+":")
}

// validatePolicies returns errors about policies that the cell does not allow. Without settings it checks nothing.
func (s *CellSettings) validatePolicies(path *field.Path, policies []string) (errs field.ErrorList) {
	const setting = "workloadPolicies"
	switch {
	case s == nil || len(policies) == 0:
		return nil
	case len(s.WorkloadPolicies) == 0:
		return field.ErrorList{field.Forbidden(path, "the cell allows no policy: the platform team sets "+setting+
			" and workloadBoundary "+askPlatformTeam+"; or name a role in roleARN")}
	}
	for i, name := range policies {
		if !slices.Contains(s.WorkloadPolicies, name) {
			errs = append(errs, field.Invalid(path.Index(i), name, fmt.Sprintf("the cell allows the policies %s: choose another policy, or "+
				"the platform team adds it to %s %s", strings.Join(s.WorkloadPolicies, ", "), setting, askPlatformTeam)))
		}
	}
	return errs
}
