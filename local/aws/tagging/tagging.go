// Package tagging simulates the Resource Groups Tagging API: GetResources over the tagged resources of the services. It
// has no TagResources, UntagResources, GetTagKeys or compliance reports.
// https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html
package tagging

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Tagged is a resource that has, or had, tags.
type Tagged struct {
	ARN  string
	Tags map[string]string
}

// Source returns the tagged resources of one service.
type Source func(ctx context.Context) []Tagged

// Service serves the resources of all sources.
type Service struct{ sources []Source }

// New returns the tagging API of sources.
func New(sources ...Source) *Service { return &Service{sources: sources} }

// Register adds a source. Register all sources before serving.
func (s *Service) Register(source Source) { s.sources = append(s.sources, source) }

// Merge returns the tags of a resource in a stack: the stack's tags and its own. Its own override the stack's.
func Merge(stack map[string]string, own []resource.Tag) map[string]string {
	tags := maps.Clone(stack)
	if tags == nil {
		tags = map[string]string{}
	}
	for _, t := range own {
		tags[t.Key] = t.Value
	}
	return tags
}

// List returns tags sorted by key.
func List(tags map[string]string) []resource.Tag {
	list := make([]resource.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, resource.Tag{Key: k, Value: tags[k]})
	}
	return list
}

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "tagging", Prefix: "tag", Protocol: wire.JSON11, TargetPrefix: "ResourceGroupsTaggingAPI_20170126",
		Operations: map[string]wire.Operation{"GetResources": s.getResources},
	}
}

func (s *Service) getResources(ctx context.Context, c *wire.Call) (any, error) {
	var in struct {
		TagFilters []struct {
			Key    string
			Values []string
		}
		ResourceTypeFilters []string
		ResourceARNList     []string
		ResourcesPerPage    *int
		PaginationToken     string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	limit := 100
	if in.ResourcesPerPage != nil {
		limit = *in.ResourcesPerPage
	}
	if limit < 1 || limit > 100 {
		return nil, wire.Errorf("InvalidParameterException", "ResourcesPerPage must be between 1 and 100")
	}
	var found []Tagged
	for _, source := range s.sources {
		for _, t := range source(ctx) {
			matches := len(t.Tags) > 0 // tags first, because they exclude more resources than types do
			for _, f := range in.TagFilters {
				value, ok := t.Tags[f.Key]
				matches = matches && ok && (len(f.Values) == 0 || slices.Contains(f.Values, value))
			}
			matches = matches && (len(in.ResourceARNList) == 0 || slices.Contains(in.ResourceARNList, t.ARN))
			matches = matches && (len(in.ResourceTypeFilters) == 0 || slices.ContainsFunc(in.ResourceTypeFilters, func(f string) bool {
				return ofType(t.ARN, f)
			}))
			if matches {
				found = append(found, t)
			}
		}
	}
	slices.SortFunc(found, func(a, b Tagged) int { return strings.Compare(a.ARN, b.ARN) })
	start := 0
	if in.PaginationToken != "" {
		n, err := strconv.Atoi(in.PaginationToken)
		if err != nil || n < 0 {
			return nil, wire.Errorf("PaginationTokenExpiredException", "the pagination token %q is not of this service", in.PaginationToken)
		}
		start = min(n, len(found))
	}
	end := min(start+limit, len(found))
	type mapping struct {
		ResourceARN string
		Tags        []resource.Tag
	}
	out := struct {
		PaginationToken        string
		ResourceTagMappingList []mapping
	}{}
	for _, t := range found[start:end] {
		out.ResourceTagMappingList = append(out.ResourceTagMappingList, mapping{t.ARN, List(t.Tags)})
	}
	if end < len(found) {
		out.PaginationToken = strconv.Itoa(end)
	}
	return out, nil
}

// ofType matches filters such as ec2 and ec2:instance against arn:aws:ec2:region:account:instance/i-1.
func ofType(arn, filter string) bool {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return false
	}
	service, kind, hasKind := strings.Cut(filter, ":")
	if parts[2] != service {
		return false
	}
	return !hasKind || parts[5] == kind || strings.HasPrefix(parts[5], kind+"/") || strings.HasPrefix(parts[5], kind+":")
}
