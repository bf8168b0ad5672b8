package ec2

// Describe calls: selecting resources by ID, by filter and by page.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// filter of a Describe call. It matches any of its values, with the wildcards * and ?.
type filter struct {
	Name  string
	Value []string
}

// paged are the parameters of Describe calls with pages.
type paged struct {
	Filter     []filter
	MaxResults *int
	NextToken  string
}

// values returns the values of a resource for a filter, and false for an unknown filter.
type values func(name string) ([]string, bool)

// selected returns the resources with one of the IDs, or all without IDs, that match every filter.
func selected[T interface{ base() *object }](all []T, ids []string, filters []filter, notFound func(id string) error,
	fields func(T) values) ([]T, error) {
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(v T) bool { return v.base().id == id }) {
			return nil, notFound(id)
		}
	}
	var picked []T
	for _, v := range all {
		if len(ids) > 0 && !slices.Contains(ids, v.base().id) {
			continue
		}
		ok, err := passes(filters, withTags(v.base(), fields(v)))
		if err != nil {
			return nil, err
		}
		if ok {
			picked = append(picked, v)
		}
	}
	return picked, nil
}

// withTags adds the filters tag:<key>, tag-key and tag-value.
func withTags(o *object, next values) values {
	return func(name string) ([]string, bool) {
		if key, ok := strings.CutPrefix(name, "tag:"); ok {
			if v, has := o.tags[key]; has {
				return []string{v}, true
			}
			return nil, true
		}
		switch name {
		case "tag-key":
			return slices.Collect(maps.Keys(o.tags)), true
		case "tag-value":
			return slices.Collect(maps.Values(o.tags)), true
		}
		return next(name)
	}
}

// fixed are the filters of a resource by name.
func fixed(fields map[string][]string) values {
	return func(name string) ([]string, bool) {
		v, ok := fields[name]
		return v, ok
	}
}

func passes(filters []filter, fields values) (bool, error) {
	pass := true
	for _, f := range filters {
		have, found := fields(f.Name)
		if !found {
			return false, fail("InvalidParameterValue", "The filter '%s' is invalid", f.Name)
		}
		pass = pass && slices.ContainsFunc(have, func(v string) bool {
			return slices.ContainsFunc(f.Value, func(pattern string) bool { return glob(pattern, v) })
		})
	}
	return pass, nil
}

// glob matches * and ?.
func glob(pattern, s string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			for i := 0; i <= len(s); i++ {
				if glob(pattern[1:], s[i:]) {
					return true
				}
			}
			return false
		case '?':
			if s == "" {
				return false
			}
		default:
			if s == "" || s[0] != pattern[0] {
				return false
			}
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

// page returns a page of a list. A token is the position of the next item.
func page[T any](list []T, p paged) ([]T, string, error) {
	start, size := 0, 1000
	if p.NextToken != "" {
		decoded, err := base64.StdEncoding.DecodeString(p.NextToken)
		if err == nil {
			start, err = strconv.Atoi(string(decoded))
		}
		if err != nil || start < 0 {
			return nil, "", fail("InvalidNextToken", "The provided next token is invalid")
		}
	}
	if p.MaxResults != nil {
		if size = *p.MaxResults; size < 5 || size > 1000 {
			return nil, "", fail("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. "+
				"Expecting a value greater than or equal to 5 and at most 1000.", size)
		}
	}
	start = min(start, len(list))
	end := min(start+size, len(list))
	next := ""
	if end < len(list) {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return list[start:end], next, nil
}

// begin decodes and authorizes a Describe call, which has no resource-level permissions.
func (s *Service) begin(c *wire.Call, into any) error {
	if err := c.Decode(into); err != nil {
		return err
	}
	c.Resource = "*"
	return s.allow(c.Caller, c.Action)
}

type tagItem struct{ Key, Value string }

func tagSet(tags map[string]string) []tagItem {
	var set []tagItem
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		set = append(set, tagItem{k, tags[k]})
	}
	return set
}

// specified returns the tags of a TagSpecification parameter for a kind of resource.
func specified(specifications []tagSpecification, kind string) (map[string]string, error) {
	tags := map[string]string{}
	for _, spec := range specifications {
		if spec.ResourceType != kind {
			return nil, fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", spec.ResourceType)
		}
		if err := userTags(tags, spec.Tag); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

func userTags(into map[string]string, list []resource.Tag) error {
	for _, t := range list {
		if strings.HasPrefix(t.Key, "aws:") {
			return fail("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		}
		into[t.Key] = t.Value
	}
	return nil
}

type tagSpecification struct {
	ResourceType string
	Tag          []resource.Tag
}
