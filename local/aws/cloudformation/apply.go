package cloudformation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/cloudformation/template"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Changes of resources. The provider of a type creates, updates, replaces and deletes its resources.

// resourceFailure is the error of a resource that could not be changed.
type resourceFailure struct {
	creating bool
	cause    error
}

func (f *resourceFailure) Error() string { return f.cause.Error() }
func (f *resourceFailure) Unwrap() error { return f.cause }

// scope evaluates a revision against the stack's current resources.
func (o *operation) scope(target *revision) *template.Scope {
	scope := target.scope
	st := o.stack
	scope.Ref = func(name string) (any, error) {
		o.service.mu.Lock()
		defer o.service.mu.Unlock()
		return st.resources[name].refValue(), nil
	}
	scope.GetAtt = func(name, attribute string) (any, error) {
		o.service.mu.Lock()
		defer o.service.mu.Unlock()
		return st.resources[name].attribute(attribute)
	}
	return &scope
}

func (r *stackResource) refValue() any {
	switch {
	case r == nil:
		return ""
	case r.ref != "":
		return r.ref
	}
	return r.physicalID
}

// attribute finds an attribute by its name. Nested attributes have dots.
func (r *stackResource) attribute(name string) (any, error) {
	if r != nil {
		if value, found := r.attributes[name]; found {
			return value, nil
		}
		head, rest, nested := strings.Cut(name, ".")
		if inner, ok := r.attributes[head].(map[string]any); ok && nested {
			if value, found := inner[rest]; found {
				return value, nil
			}
		}
	}
	return nil, invalid("Attribute '%s' does not exist", name)
}

// targetResource is a resource of the target revision.
type targetResource struct {
	name       string
	properties map[string]any
	tags       map[string]string
	dependsOn  []string
	definition template.Resource
}

// converge changes every resource to the target revision. restoring undoes replacements. It returns the failures.
func (o *operation) converge(ctx context.Context, target *revision, restoring bool) map[string]error {
	scope := o.scope(target)
	graph := map[string][]string{}
	for _, name := range scope.Active() {
		graph[name] = scope.Dependencies(name)
	}
	if restoring {
		o.dropReplacements()
	} else if failed := o.refuseRemovals(graph); len(failed) > 0 {
		return failed
	}
	return walk(ctx, graph, !restoring, func(ctx context.Context, name string) error {
		o.service.config.Clock.Take("cloudformation: " + name + " of " + o.stack.name)
		return o.convergeResource(ctx, scope, target, name, graph[name], restoring)
	})
}

// refuseRemovals fails the resources whose removal the stack policy denies.
func (o *operation) refuseRemovals(graph map[string][]string) map[string]error {
	s, st := o.service, o.stack
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := map[string]error{}
	for _, name := range sortedKeys(st.resources) {
		r := st.resources[name]
		if _, stays := graph[name]; stays || !r.exists() || o.policy.allows(updateDelete, name, r.resourceType) {
			continue
		}
		reason := deniedReason(updateDelete, name)
		s.setResource(st, r, updateFailed, reason, o.token)
		failed[name] = &resourceFailure{cause: errors.New(reason)}
	}
	return failed
}

// dropReplacements restores replaced resources. Cleanup deletes their replacements and new resources.
func (o *operation) dropReplacements() {
	s, st := o.service, o.stack
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range sortedKeys(st.resources) {
		newest := st.resources[name]
		if before, found := st.previous.template.Resources[name]; !found || !st.previous.scope.Holds(before.Condition) {
			if newest.exists() {
				retain := newest.deletionPolicy == "Retain" && !st.current.retainExceptOnCreate
				st.leftovers = append(st.leftovers, &leftover{stackResource: newest, retain: retain})
			}
			delete(st.resources, name)
			continue
		}
		oldest := newest
		for ; oldest.replaced != nil; oldest = oldest.replaced {
			st.leftovers = append(st.leftovers, &leftover{stackResource: oldest})
		}
		if oldest != newest {
			st.resources[name] = oldest
			s.setResource(st, oldest, updateComplete, "", o.token)
		}
	}
}

// evaluateDefinition resolves the attributes of a resource other than its properties.
func evaluateDefinition(scope *template.Scope, definition template.Resource) (template.Resource, error) {
	var err error
	if definition.CreationPolicy, err = scope.Object(definition.CreationPolicy); err != nil {
		return definition, err
	}
	definition.UpdatePolicy, err = scope.Object(definition.UpdatePolicy)
	return definition, err
}

// convergeResource creates, updates or replaces one resource. A rollback restores the exact properties that it had before. A launch
// template gets a new version in a rollback, and instances that were never replaced are still not obsolete, as observed on AWS:
// https://github.com/guardian/testing-asg-rolling-update/tree/main/observations
func (o *operation) convergeResource(ctx context.Context, scope *template.Scope, target *revision, name string, dependsOn []string,
	restoring bool) error {
	s, st := o.service, o.stack
	declared := target.template.Resources[name]
	s.mu.Lock()
	current := st.resources[name]
	provider := s.provider(declared.Type)
	s.mu.Unlock()
	if !current.exists() {
		current = nil
	}
	if o.skip[name] && current != nil {
		s.mu.Lock()
		current.unsure = false
		s.setResource(st, current, updateComplete, "", o.token)
		s.mu.Unlock()
		return nil
	}
	want := targetResource{name: name, dependsOn: dependsOn, tags: st.resourceTags(target, name)}
	var err error
	if want.properties, err = scope.Object(declared.Properties); err == nil {
		want.definition, err = evaluateDefinition(scope, declared)
	}
	if err != nil {
		return o.refuse(current, want, declared.Type, reasonOf(err))
	}
	if restoring && current != nil && current.before != nil {
		want.properties = current.before
	}
	if current == nil || current.physicalID == "" || current.status == createFailed {
		return o.create(ctx, provider, want, current)
	}
	schema := provider.Schema()
	changed := changedProperties(current.properties, want.properties)
	retagged := takesTags(schema) && !maps.Equal(current.tags, want.tags)
	if len(changed) == 0 && !retagged && !current.unsure {
		s.mu.Lock()
		defer s.mu.Unlock()
		current.define(want)
		if current.status == updateFailed {
			s.setResource(st, current, updateComplete, "", o.token)
		}
		return nil
	}
	replaces := slices.ContainsFunc(changed, func(property string) bool { return schema.Properties[property] == resource.Replaces })
	if replaces {
		return o.create(ctx, provider, want, current)
	}
	return o.update(ctx, provider, want, current)
}

// define applies the parts of a definition that do not change the physical resource.
func (r *stackResource) define(want targetResource) {
	r.dependsOn, r.definition, r.metadata = want.dependsOn, want.definition, want.definition.Metadata
	r.deletionPolicy, r.updateReplacePolicy = want.definition.DeletionPolicy, want.definition.UpdateReplacePolicy
}

// refuse fails a resource without calling its provider.
func (o *operation) refuse(current *stackResource, want targetResource, resourceType, reason string) error {
	s, st := o.service, o.stack
	s.mu.Lock()
	defer s.mu.Unlock()
	if current == nil {
		current = &stackResource{logicalID: want.name, resourceType: resourceType, deletionPolicy: "Delete", updateReplacePolicy: "Delete"}
		st.resources[want.name] = current
		s.setResource(st, current, createFailed, reason, o.token)
		return &resourceFailure{creating: true, cause: errors.New(reason)}
	}
	s.setResource(st, current, updateFailed, reason, o.token)
	return &resourceFailure{cause: errors.New(reason)}
}

// create creates a resource, in place of current if there is one.
func (o *operation) create(ctx context.Context, provider resource.Provider, want targetResource, current *stackResource) error {
	s, st := o.service, o.stack
	declared := want.definition
	if reason := checkRequired(provider.Schema(), want); reason != "" {
		return o.refuse(current, want, declared.Type, reason)
	}
	replacing := current != nil && current.physicalID != ""
	inProgress, failedStatus, complete, reason := createInProgress, createFailed, createComplete, ""
	if replacing {
		if !o.policy.allows(updateReplace, want.name, declared.Type) {
			return o.refuse(current, want, declared.Type, deniedReason(updateReplace, want.name))
		}
		inProgress, failedStatus, complete = updateInProgress, updateFailed, updateComplete
		reason = "Requested update requires the creation of a new physical resource; hence creating one."
	}
	r := &stackResource{logicalID: want.name, resourceType: declared.Type, properties: want.properties, tags: want.tags}
	s.mu.Lock()
	r.define(want)
	if replacing {
		r.replaced = current
		r.physicalID = current.physicalID
	}
	st.resources[want.name] = r
	s.setResource(st, r, inProgress, reason, o.token)
	r.openSignals()
	s.mu.Unlock()

	request := o.request(r, want, nil)
	request.PhysicalID = ""
	result, err := o.call(ctx, provider.Create, request)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.signals = nil
	if replacing {
		r.physicalID = ""
		if err == nil && result.PhysicalID == current.physicalID {
			err = invalid("CloudFormation cannot update a stack when a custom-named resource requires replacing. "+
				"Rename %s and update the stack again.", result.PhysicalID)
			result = resource.Result{}
		}
	}
	if result.PhysicalID != "" {
		r.physicalID, r.ref, r.attributes = result.PhysicalID, result.Ref, maps.Clone(result.Attributes)
		s.setResource(st, r, inProgress, initiated, o.token)
	}
	if err == nil {
		s.setResource(st, r, complete, "", o.token)
		return nil
	}
	failure := s.handlerMessage(st, r, err)
	if ctx.Err() != nil {
		failure = creationCancelled
	}
	if replacing {
		// The old resource keeps its place. Cleanup deletes the new one, if it has a physical ID.
		if r.physicalID != "" {
			st.leftovers = append(st.leftovers, &leftover{stackResource: r})
		}
		st.resources[want.name] = current
		s.setResource(st, current, failedStatus, failure, o.token)
		return &resourceFailure{cause: err}
	}
	s.setResource(st, r, failedStatus, failure, o.token)
	return &resourceFailure{creating: true, cause: err}
}

// update changes a resource in place.
func (o *operation) update(ctx context.Context, provider resource.Provider, want targetResource, r *stackResource) error {
	s, st := o.service, o.stack
	if reason := checkRequired(provider.Schema(), want); reason != "" {
		return o.refuse(r, want, r.resourceType, reason)
	}
	if !o.policy.allows(updateModify, want.name, r.resourceType) {
		return o.refuse(r, want, r.resourceType, deniedReason(updateModify, want.name))
	}
	s.mu.Lock()
	old := r.properties
	if r.before == nil {
		r.before = old
	}
	r.properties, r.tags = want.properties, want.tags
	// Until the provider returns, it is unknown which properties are in effect.
	r.unsure = true
	r.define(want)
	s.setResource(st, r, updateInProgress, "", o.token)
	r.openSignals()
	s.mu.Unlock()

	result, err := o.call(ctx, provider.Update, o.request(r, want, old))
	s.mu.Lock()
	defer s.mu.Unlock()
	r.signals = nil
	if err == nil {
		r.unsure = false
		r.ref = cmp.Or(result.Ref, r.ref)
		if result.Attributes != nil {
			r.attributes = maps.Clone(result.Attributes)
		}
		s.setResource(st, r, updateComplete, "", o.token)
		return nil
	}
	failure := s.handlerMessage(st, r, err)
	if ctx.Err() != nil {
		failure = updateCancelled
	}
	s.setResource(st, r, updateFailed, failure, o.token)
	return &resourceFailure{cause: err}
}

func checkRequired(schema resource.Schema, want targetResource) string {
	for _, property := range schema.Required {
		if _, found := want.properties[property]; !found {
			return fmt.Sprintf("Properties validation failed for resource %s with message:\n#: required key [%s] not found", want.name, property)
		}
	}
	return ""
}

// request returns the input of a provider. Properties are copied, because a provider may keep or change them.
func (o *operation) request(r *stackResource, want targetResource, old map[string]any) resource.Request {
	s, st := o.service, o.stack
	request := resource.Request{
		StackName: st.name, StackID: st.id, LogicalID: r.logicalID, PhysicalID: r.physicalID, Type: r.resourceType,
		Properties: copyObject(want.properties), Old: copyObject(old), Tags: maps.Clone(want.tags),
		CreationPolicy: copyObject(want.definition.CreationPolicy), UpdatePolicy: copyObject(want.definition.UpdatePolicy),
		Rollback: o.rollingBack, Signals: r.signals, Caller: o.caller, Region: s.config.Region, Account: s.config.Account,
		Progress: func(reason string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if strings.HasSuffix(r.status, "_IN_PROGRESS") {
				s.setResource(st, r, r.status, reason, o.token)
			}
		},
	}
	return request
}

// copyObject copies evaluated values deeply. A nil map stays nil.
func copyObject(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	var copyValue func(any) any
	copyValue = func(value any) any {
		switch v := value.(type) {
		case map[string]any:
			copied := make(map[string]any, len(v))
			for key, item := range v {
				copied[key] = copyValue(item)
			}
			return copied
		case []any:
			copied := make([]any, len(v))
			for i, item := range v {
				copied[i] = copyValue(item)
			}
			return copied
		default:
			return v
		}
	}
	return copyValue(m).(map[string]any)
}

// call calls a provider. A panic fails the resource, and not the process.
func (o *operation) call(ctx context.Context, handler func(context.Context, resource.Request) (resource.Result, error),
	request resource.Request) (result resource.Result, err error) {
	if err := o.service.config.Clock.Work(ctx, resourceWork); err != nil {
		return resource.Result{}, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal failure of the handler of %s: %v\n%s", request.Type, p, debug.Stack())
		}
	}()
	return handler(ctx, request)
}

// handlerMessage formats a provider's error like CloudFormation formats errors of resource handlers. The token comes from the request
// instead of a random number, so that it does not depend on the order in which stacks fail.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
func (s *Service) handlerMessage(st *stack, r *stackResource, err error) string {
	var known interface {
		ErrorCode() string
		ErrorMessage() string
	}
	message, code := err.Error(), "GeneralServiceException"
	if errors.As(err, &known) {
		message = known.ErrorMessage()
		name := known.ErrorCode()
		switch {
		case name == wire.UnsupportedCode: // not an AWS error
			code = name
		case strings.Contains(name, "AccessDenied") || strings.Contains(name, "Unauthorized"):
			code = "AccessDenied"
		case strings.Contains(name, "AlreadyExist") || strings.Contains(name, "InUse"):
			code = "AlreadyExists"
		case strings.Contains(name, "NotFound") || strings.Contains(name, "NoSuch"):
			code = "NotFound"
		case strings.Contains(name, "Throttl"):
			code = "Throttling"
		case strings.Contains(name, "Limit"):
			code = "ServiceLimitExceeded"
		case strings.Contains(name, "Invalid") || strings.Contains(name, "Validation"):
			code = "InvalidRequest"
		}
	}
	token := uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s %s %s", st.id, r.logicalID, s.now()))
	return fmt.Sprintf("Resource handler returned message: \"%s\" (RequestToken: %s, HandlerErrorCode: %s)", message, token, code)
}

// reasonOf returns the text of an error without its code.
func reasonOf(err error) string {
	var known interface{ ErrorMessage() string }
	if errors.As(templateError(err), &known) {
		return known.ErrorMessage()
	}
	return err.Error()
}

// outputText returns the text of an output's value. Lists are joined, as on AWS.
func outputText(value any) string {
	switch v := value.(type) {
	case []any:
		parts := make([]string, 0, len(v))
		for _, item := range v {
			parts = append(parts, outputText(item))
		}
		return strings.Join(parts, ",")
	case map[string]any:
		encoded, _ := json.Marshal(v) // decoded JSON and YAML always marshals
		return string(encoded)
	case nil:
		return ""
	default:
		return template.Text(v)
	}
}
