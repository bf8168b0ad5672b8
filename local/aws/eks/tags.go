package eks

// Tags of clusters, access entries, add-ons and pod identity associations.

import (
	"context"
	"maps"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
)

// TagsOutput of ListTagsForResource.
type TagsOutput struct {
	Tags map[string]string `json:"tags"`
}

// TagsInput names a resource, and the tags to set or remove.
type TagsInput struct {
	ResourceARN string
	Tags        map[string]string
	TagKeys     []string
}

// tagsOf finds the tags of a resource by ARN. The caller holds s.mu.
func (s *Service) tagsOf(arn string) (map[string]string, error) {
	for _, c := range s.clusters {
		if c.ARN == arn {
			return c.Tags, nil
		}
		for _, e := range c.entries {
			if e.AccessEntryARN == arn {
				return e.Tags, nil
			}
		}
		for _, a := range c.addons {
			if a.AddonARN == arn {
				return a.Tags, nil
			}
		}
		if c.provider != nil && c.provider.ARN == arn {
			return c.provider.Tags, nil
		}
		for _, known := range c.capabilities {
			if known.ARN == arn {
				return known.Tags, nil
			}
		}
		for _, a := range c.identities {
			if a.AssociationARN == arn {
				return a.Tags, nil
			}
		}
	}
	return nil, notFound("No resource found for ARN: %s", arn)
}

func (s *Service) withTags(caller iam.Caller, action, arn string, do func(map[string]string) error) error {
	if err := caller.Authorize("eks:"+action, arn, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tags, err := s.tagsOf(arn)
	if err != nil {
		return err
	}
	return do(tags)
}

// ListTagsForResource of the API.
func (s *Service) ListTagsForResource(_ context.Context, caller iam.Caller, in TagsInput) (*TagsOutput, error) {
	out := &TagsOutput{}
	return out, s.withTags(caller, "ListTagsForResource", in.ResourceARN, func(tags map[string]string) error {
		out.Tags = maps.Clone(tags)
		return nil
	})
}

// TagResource of the API.
func (s *Service) TagResource(_ context.Context, caller iam.Caller, in TagsInput) (*struct{}, error) {
	return &struct{}{}, s.withTags(caller, "TagResource", in.ResourceARN, func(tags map[string]string) error {
		for k := range in.Tags {
			if strings.HasPrefix(strings.ToLower(k), "aws:") {
				return invalid("The tag key %s is reserved: aws: is for AWS", k)
			}
		}
		maps.Copy(tags, in.Tags)
		return nil
	})
}

// UntagResource of the API.
func (s *Service) UntagResource(_ context.Context, caller iam.Caller, in TagsInput) (*struct{}, error) {
	return &struct{}{}, s.withTags(caller, "UntagResource", in.ResourceARN, func(tags map[string]string) error {
		for _, k := range in.TagKeys {
			delete(tags, k)
		}
		return nil
	})
}

// Tagged lists all resources with their tags, for the tagging API.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []tagging.Tagged
	add := func(arn string, tags map[string]string) {
		all = append(all, tagging.Tagged{ARN: arn, Tags: maps.Clone(tags)})
	}
	for _, c := range s.clusters {
		add(c.ARN, c.Tags)
		for _, e := range c.entries {
			add(e.AccessEntryARN, e.Tags)
		}
		for _, a := range c.addons {
			add(a.AddonARN, a.Tags)
		}
		for _, a := range c.identities {
			add(a.AssociationARN, a.Tags)
		}
	}
	return all
}
