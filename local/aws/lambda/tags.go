package lambda

// Tags of functions. https://docs.aws.amazon.com/lambda/latest/dg/configuration-tags.html

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// functionContext returns the condition keys of a function's tags.
func (s *Service) functionContext(name string) map[string]string {
	context := map[string]string{}
	f, err := s.find(name)
	if err != nil {
		return context
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, v := range f.settings.Tags {
		context["aws:ResourceTag/"+k] = v
	}
	return context
}

// mayTag authorizes tags of a request, which need lambda:TagResource.
func (s *Service) mayTag(caller iam.Caller, name string, tags map[string]string) error {
	context := iam.RequestTags(tags)
	if len(context) == 0 {
		return nil
	}
	maps.Copy(context, s.functionContext(name))
	return caller.Authorize("lambda:TagResource", s.arn(name), context)
}

func (s *Service) listTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ Resource string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	f, err := s.allowedFunction(c, "lambda:ListTags", in.Resource)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return struct{ Tags map[string]string }{maps.Clone(f.settings.Tags)}, nil
}

func (s *Service) tagResource(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Resource string
		Tags     map[string]string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	name, err := s.name(in.Resource)
	if err != nil {
		return nil, err
	}
	c.Resource = s.arn(name)
	return &wire.Response{Status: http.StatusNoContent}, s.tag(c.Caller, name, in.Tags)
}

// tag adds tags to a function.
func (s *Service) tag(caller iam.Caller, name string, tags map[string]string) error {
	for k := range tags {
		if strings.HasPrefix(strings.ToLower(k), "aws:") {
			return invalid("System tags cannot be added: %s", k)
		}
	}
	if err := s.mayTag(caller, name, tags); err != nil {
		return err
	}
	f, err := s.find(name)
	if err != nil {
		return err
	}
	f.retag(func(all map[string]string) { maps.Copy(all, tags) })
	return nil
}

func (s *Service) untagResource(_ context.Context, c *wire.Call) (any, error) {
	name, err := s.name(c.Path["Resource"])
	if err != nil {
		return nil, err
	}
	c.Resource = s.arn(name)
	return &wire.Response{Status: http.StatusNoContent}, s.untag(c.Caller, name, c.Query["tagKeys"])
}

// untag removes tags of a function.
func (s *Service) untag(caller iam.Caller, name string, keys []string) error {
	context := s.functionContext(name)
	context["aws:TagKeys"] = iam.Values(keys...)
	if err := caller.Authorize("lambda:UntagResource", s.arn(name), context); err != nil {
		return err
	}
	f, err := s.find(name)
	if err != nil {
		return err
	}
	f.retag(func(all map[string]string) {
		maps.DeleteFunc(all, func(k, _ string) bool { return slices.Contains(keys, k) })
	})
	return nil
}

func (f *function) retag(change func(map[string]string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := maps.Clone(f.settings.Tags)
	if all == nil {
		all = map[string]string{}
	}
	change(all)
	f.settings.Tags = all
}
