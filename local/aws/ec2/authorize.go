package ec2

// Authorization. Each action is checked on the resources and with the condition keys of the service authorization reference.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// target is a resource of an authorized action.
type target struct {
	kind, id string
	// tags are on the resource, requestTags in the request.
	tags, requestTags map[string]string
	context           map[string]string
}

// on is the target of an action on an existing resource.
func on(o object) target { return target{kind: o.kind, id: o.id, tags: o.tags} }

// making is the target of an action that creates a resource with these tags.
func making(kind string, tags map[string]string) target {
	return target{kind: kind, id: "*", requestTags: tags}
}

// allow checks an action (without "ec2:") on each of its targets, or on * without targets.
func (s *Service) allow(caller iam.Caller, action string, targets ...target) error {
	if len(targets) == 0 {
		return s.check(caller, action, "*", nil)
	}
	for _, t := range targets {
		context := map[string]string{}
		for k, v := range t.tags {
			context["aws:ResourceTag/"+k] = v
			context["ec2:ResourceTag/"+k] = v
		}
		maps.Copy(context, iam.RequestTags(t.requestTags))
		maps.Copy(context, t.context)
		if err := s.check(caller, action, s.arn(t.kind, t.id), context); err != nil {
			return err
		}
	}
	return nil
}

// allowMaking checks an action that creates a resource, and CreateTags if the request has tags.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/supported-iam-actions-tagging.html
func (s *Service) allowMaking(caller iam.Caller, action, kind string, tags map[string]string, also ...target) error {
	if err := s.allow(caller, action, append([]target{making(kind, tags)}, also...)...); err != nil {
		return err
	}
	return s.allowTagging(caller, action, kind, tags)
}

func (s *Service) allowTagging(caller iam.Caller, action, kind string, tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	t := making(kind, tags)
	t.context = map[string]string{"ec2:CreateAction": action}
	return s.allow(caller, "CreateTags", t)
}

func (s *Service) check(caller iam.Caller, action, arn string, context map[string]string) error {
	if context == nil {
		context = map[string]string{}
	}
	context["ec2:Region"] = s.config.Region
	return unauthorized(caller.Authorize("ec2:"+action, arn, context))
}

// unauthorized converts a denial to EC2's error code.
func unauthorized(err error) error {
	if err == nil {
		return nil
	}
	var denied *iam.Error
	if errors.As(err, &denied) {
		return &wire.Error{
			Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation. " + denied.Message, Status: 403,
		}
	}
	return err
}

// checkTags rejects tags that no caller may set.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
func checkTags(tags map[string]string) error {
	users := 0
	for k, v := range tags {
		if strings.HasPrefix(k, "aws:") {
			continue
		}
		users++
		if k == "" || len(k) > 128 {
			return fail("InvalidParameterValue", "Tag key exceeds the maximum length of 128 characters or is empty: '%s'", k)
		}
		if len(v) > 256 {
			return fail("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters")
		}
	}
	if users > 50 {
		return fail("TagLimitExceeded", "You've reached the limit on the number of tags that you can assign to the specified resource.")
	}
	return nil
}

// metadataTag is the pattern of the keys of tags to which the instance metadata may give access.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/work-with-tags-in-IMDS.html
var metadataTag = regexp.MustCompile(`^[0-9a-zA-Z\-_+=,.@:]{1,255}$`)

// checkMetadataTags rejects tags whose keys cannot be a path of the instance metadata, if the metadata gives access to tags.
func (s *Service) checkMetadataTags(o *MetadataOptions, tags map[string]string) error {
	enabled := s.config.MetadataTags
	if o != nil && o.InstanceMetadataTags != "" {
		enabled = o.InstanceMetadataTags == "enabled"
	}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if enabled && !strings.HasPrefix(k, "aws:") && (!metadataTag.MatchString(k) || k == "." || k == ".." || k == "_index") {
			return fail("InvalidParameterValue", "'%s' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255}), "+
				"and must not be a reserved name ('.', '..', '_index')", k)
		}
	}
	return nil
}
