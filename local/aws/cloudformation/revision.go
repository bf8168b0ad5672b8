package cloudformation

import (
	"context"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/drover-run/drover/local/aws/cloudformation/template"
	"github.com/drover-run/drover/local/aws/iam"
)

// Revisions: the template of a request with its parameters. Everything that can be checked before a resource changes is checked here.

// submission has the common parts of CreateStack, UpdateStack and CreateChangeSet.
type submission struct {
	TemplateBody, TemplateURL string
	UsePreviousTemplate       bool
	Parameters                []Parameter
	Tags                      []Tag
	Capabilities              []string
	RetainExceptOnCreate      bool
}

// Limits of tags.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Tag.html
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// templates that were parsed, by body, because the same bodies recur. A parsed template is never changed.
var templates = struct {
	sync.Mutex
	parsed map[string]*template.Template
}{parsed: map[string]*template.Template{}}

// maxTemplates bounds the cache.
const maxTemplates = 200

func parse(body string) (*template.Template, error) {
	templates.Lock()
	defer templates.Unlock()
	if t, ok := templates.parsed[body]; ok {
		return t, nil
	}
	t, err := template.Parse([]byte(body))
	if err != nil {
		return nil, err
	}
	if len(templates.parsed) >= maxTemplates {
		clear(templates.parsed)
	}
	templates.parsed[body] = t
	return t, nil
}

// revise returns the revision that a request describes. previous is the stack's current revision, nil for a new stack. The caller does not
// hold s.mu.
func (s *Service) revise(ctx context.Context, caller iam.Caller, st *stack, previous *revision, in submission) (*revision, error) {
	r := &revision{capabilities: in.Capabilities, retainExceptOnCreate: in.RetainExceptOnCreate, imports: map[string]bool{}}
	var err error
	if in.UsePreviousTemplate {
		if previous == nil || in.TemplateBody != "" || in.TemplateURL != "" {
			return nil, invalid("Either Template URL or Template Body must be specified, or UsePreviousTemplate of an existing stack.")
		}
		r.body, r.template = previous.body, previous.template
	} else {
		if r.body, err = s.readTemplate(ctx, caller, in.TemplateBody, in.TemplateURL); err != nil {
			return nil, err
		}
		if r.template, err = parse(r.body); err != nil {
			return nil, templateError(err)
		}
	}
	if r.tags, err = requestTags(in.Tags); err != nil {
		return nil, err
	}
	if in.Tags == nil && previous != nil {
		r.tags = previous.tags
	}
	if err := r.giveParameters(in.Parameters, previous); err != nil {
		return nil, err
	}
	if err := s.checkTypes(r.template); err != nil {
		return nil, err
	}
	if missing := missingCapabilities(r.template, in.Capabilities); missing != "" {
		return nil, insufficientCapabilities(missing)
	}
	given := map[string]string{}
	for _, parameter := range r.given {
		given[parameter.ParameterKey] = parameter.ParameterValue
	}
	resolved := map[string]string{}
	r.values, err = r.template.ParameterValues(given, s.parameterReader(ctx, caller, resolved))
	if err != nil {
		return nil, templateError(err)
	}
	r.complete(resolved)
	r.scope = s.scope(st, r)
	for _, check := range []func() error{r.scope.EvaluateConditions, r.scope.CheckRules, r.scope.CheckActive} {
		if err := check(); err != nil {
			return nil, templateError(err)
		}
	}
	return r, nil
}

func (s *Service) parameterReader(ctx context.Context, caller iam.Caller, resolved map[string]string) func(string) (string, error) {
	if s.config.Parameters == nil {
		return nil
	}
	return func(name string) (string, error) {
		value, err := s.config.Parameters.ReadParameter(ctx, caller, name)
		if err != nil {
			return "", invalid("Unable to fetch parameters [%s] from parameter store for this account.", name)
		}
		resolved[name] = value
		return value, nil
	}
}

// giveParameters sets the values from the request, or from the previous revision where the request refers to it.
func (r *revision) giveParameters(parameters []Parameter, previous *revision) error {
	for _, parameter := range parameters {
		if slices.ContainsFunc(r.given, func(p Parameter) bool { return p.ParameterKey == parameter.ParameterKey }) {
			return invalid("Duplicate parameter: %s", parameter.ParameterKey)
		}
		if parameter.UsePreviousValue {
			if previous == nil {
				return invalid("Invalid input for parameter key %s. "+
					"Cannot specify usePreviousValue as true for a parameter key not in the previous template", parameter.ParameterKey)
			}
			at := slices.IndexFunc(previous.given, func(p Parameter) bool { return p.ParameterKey == parameter.ParameterKey })
			if at < 0 {
				return invalid("Invalid input for parameter key %s. "+
					"Cannot specify usePreviousValue as true for a parameter key not in the previous template", parameter.ParameterKey)
			}
			parameter.ParameterValue = previous.given[at].ParameterValue
		}
		r.given = append(r.given, Parameter{ParameterKey: parameter.ParameterKey, ParameterValue: parameter.ParameterValue})
	}
	return nil
}

// complete adds defaults to the parameters that DescribeStacks shows.
func (r *revision) complete(resolved map[string]string) {
	for _, name := range sortedKeys(r.template.Parameters) {
		declared := r.template.Parameters[name]
		at := slices.IndexFunc(r.given, func(p Parameter) bool { return p.ParameterKey == name })
		if at < 0 {
			r.given = append(r.given, Parameter{ParameterKey: name, ParameterValue: *declared.Default})
			at = len(r.given) - 1
		}
		if declared.FromSSM() {
			r.given[at].ResolvedValue = resolved[r.given[at].ParameterValue]
		}
	}
	slices.SortFunc(r.given, func(a, b Parameter) int { return strings.Compare(a.ParameterKey, b.ParameterKey) })
}

// scope returns the scope of a revision's values without resources.
func (s *Service) scope(st *stack, r *revision) template.Scope {
	suffix := "amazonaws.com"
	if s.config.Partition == "aws-cn" {
		suffix = "amazonaws.com.cn"
	}
	return template.Scope{
		Template: r.template, Parameters: r.values,
		Pseudo: map[string]any{
			"AWS::Region": s.config.Region, "AWS::AccountId": s.config.Account, "AWS::Partition": s.config.Partition, "AWS::URLSuffix": suffix,
			"AWS::StackName": st.name, "AWS::StackId": st.id, "AWS::NotificationARNs": []any{},
		},
		Zones: func(region string) ([]string, error) {
			if region != s.config.Region {
				return nil, invalid("Template validation error: Template error: Fn::GetAZs does not know the zones of %s", region)
			}
			return s.config.Zones, nil
		},
		Import: func(name string) (any, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			r.imports[name] = true
			if _, value, found := s.export(name); found {
				return value, nil
			}
			return nil, invalid("No export named %s found", name)
		},
	}
}

// export finds an exported value and its stack. The caller holds s.mu.
func (s *Service) export(name string) (*stack, string, bool) {
	for _, st := range s.live {
		for _, output := range st.outputs {
			if output.ExportName == name {
				return st, output.OutputValue, true
			}
		}
	}
	return nil, "", false
}

// importers lists the other stacks that import an export, sorted. The caller holds s.mu.
func (s *Service) importers(export string) []string {
	var names []string
	for name, st := range s.live {
		if st.current.imports[export] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkTypes rejects resource types, properties and attributes that the local account does not provide.
func (s *Service) checkTypes(t *template.Template) error {
	s.mu.Lock()
	providers := maps.Clone(s.providers)
	s.mu.Unlock()
	unknown := map[string]bool{}
	for _, r := range t.Resources {
		if providers[r.Type] == nil {
			unknown[r.Type] = true
		}
	}
	if len(unknown) > 0 {
		return invalid("Template format error: Unrecognized resource types: [%s]", strings.Join(sortedKeys(unknown), ", "))
	}
	var lacking []string
	for _, name := range sortedKeys(t.Resources) {
		r := t.Resources[name]
		schema := providers[r.Type].Schema()
		for _, property := range sortedKeys(r.Properties) {
			if _, found := schema.Properties[property]; !found && !strings.HasPrefix(property, "Fn::") {
				lacking = append(lacking, "the property "+property+" of "+r.Type+" (resource "+name+")")
			}
		}
	}
	if len(lacking) > 0 {
		return unsupportedError(strings.Join(lacking, ", "))
	}
	check := func(value any) error {
		for _, reference := range template.References(value, nil) {
			if reference.Attribute == "" {
				continue
			}
			r := t.Resources[reference.Name]
			if !slices.Contains(providers[r.Type].Schema().Attributes, reference.Attribute) {
				return invalid("Template error: resource %s does not support attribute type %s in Fn::GetAtt", reference.Name, reference.Attribute)
			}
		}
		return nil
	}
	for _, name := range sortedKeys(t.Resources) {
		if err := check(t.Resources[name].Properties); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(t.Outputs) {
		if err := check(t.Outputs[name].Value); err != nil {
			return err
		}
	}
	return nil
}

// namedIAM are the resource types that need a capability, each with the property that names it, if any.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/control-access-with-iam.html#using-iam-capabilities
var namedIAM = map[string]string{
	"AWS::IAM::AccessKey": "", "AWS::IAM::Group": "GroupName", "AWS::IAM::InstanceProfile": "InstanceProfileName",
	"AWS::IAM::ManagedPolicy": "ManagedPolicyName", "AWS::IAM::Policy": "", "AWS::IAM::Role": "RoleName", "AWS::IAM::User": "UserName",
	"AWS::IAM::UserToGroupAddition": "",
}

const (
	capabilityIAM      = "CAPABILITY_IAM"
	capabilityNamedIAM = "CAPABILITY_NAMED_IAM"
)

// neededCapability returns the capability that a template needs, if any, and the resource types that need it.
func neededCapability(t *template.Template) (capability string, because []string) {
	found := map[string]bool{}
	for _, r := range t.Resources {
		name, needs := namedIAM[r.Type]
		if !needs {
			continue
		}
		found[r.Type] = true
		if _, named := r.Properties[name]; named {
			capability = capabilityNamedIAM
		} else if capability == "" {
			capability = capabilityIAM
		}
	}
	return capability, sortedKeys(found)
}

func missingCapabilities(t *template.Template, given []string) string {
	needed, _ := neededCapability(t)
	if needed == "" || slices.Contains(given, needed) || slices.Contains(given, capabilityNamedIAM) {
		return ""
	}
	return needed
}

func requestTags(tags []Tag) (map[string]string, error) {
	if len(tags) > maxTags {
		return nil, invalid("1 validation error detected: Value at 'tags' failed to satisfy constraint: Member must have length less than "+
			"or equal to %d", maxTags)
	}
	result := make(map[string]string, len(tags))
	for _, tag := range tags {
		switch _, twice := result[tag.Key]; {
		case twice:
			return nil, invalid("Duplicate tag keys found: [%s]", tag.Key)
		case tag.Key == "" || len([]rune(tag.Key)) > maxTagKey || len([]rune(tag.Value)) > maxTagValue:
			return nil, invalid("1 validation error detected: Value at 'tags' failed to satisfy constraint: keys have 1 to %d characters, values "+
				"at most %d [%s]", maxTagKey, maxTagValue, tag.Key)
		case strings.HasPrefix(tag.Key, "aws:"):
			return nil, invalid("aws: prefixed tag key names are not allowed for external use.")
		}
		result[tag.Key] = tag.Value
	}
	return result, nil
}

// readTemplate returns the template of a request.
func (s *Service) readTemplate(ctx context.Context, caller iam.Caller, body, location string) (string, error) {
	switch {
	case (body == "") == (location == ""):
		return "", invalid("Either Template URL or Template Body must be specified.")
	case len(body) > template.MaxInline:
		return "", invalid("1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must have length less "+
			"than or equal to %d", template.MaxInline)
	case body != "":
		return body, nil
	}
	content, err := s.readURL(ctx, caller, "TemplateURL", location)
	if err != nil {
		return "", err
	}
	if len(content) > template.MaxObject {
		return "", invalid("Template may not exceed %d bytes in size.", template.MaxObject)
	}
	return string(content), nil
}

// s3Host matches the hosts of S3 in virtual-hosted (bucket in group 1) and path style.
var s3Host = regexp.MustCompile(`^(?:(.+)\.)?s3(?:[.-](?:dualstack\.)?[a-z0-9-]+)?\.amazonaws\.com(?:\.cn)?$`)

// readURL reads an object by its URL with the caller's permission.
func (s *Service) readURL(ctx context.Context, caller iam.Caller, member, location string) ([]byte, error) {
	parsed, err := url.Parse(location)
	if err != nil || len(location) > 5120 {
		return nil, invalid("%s must be a supported URL.", member)
	}
	bucket, key := "", strings.TrimPrefix(parsed.Path, "/")
	host := s3Host.FindStringSubmatch(parsed.Hostname())
	local := parsed.Hostname() == "localhost" || parsed.Hostname() == "127.0.0.1"
	switch {
	case host != nil && host[1] != "":
		bucket = host[1]
	case host != nil || local:
		bucket, key, _ = strings.Cut(key, "/")
	}
	if bucket == "" || key == "" || !local && parsed.Scheme != "https" {
		return nil, invalid("%s must be a supported URL.", member)
	}
	if s.config.Objects == nil {
		return nil, unsupportedError(member)
	}
	content, err := s.config.Objects.ReadObject(ctx, caller.InvokedBy(principal), bucket, key, parsed.Query().Get("versionId"))
	if err != nil {
		return nil, invalid("S3 error: %s\nFor more information check http://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html", err)
	}
	return content, nil
}
