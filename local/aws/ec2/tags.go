package ec2

// Tags of existing resources.

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
)

func clone(m map[string]string) map[string]string {
	c := maps.Clone(m)
	if c == nil {
		c = map[string]string{}
	}
	return c
}

func join(list []string) string { return strings.Join(list, ", ") }

// find returns any resource by its ID. The caller holds the lock.
func (s *Service) find(id string) (*object, error) {
	for _, found := range []func() (*object, bool){
		func() (*object, bool) { return baseOf(&s.vpcs, id) },
		func() (*object, bool) { return baseOf(&s.subnets, id) },
		func() (*object, bool) { return baseOf(&s.gateways, id) },
		func() (*object, bool) { return baseOf(&s.addresses, id) },
		func() (*object, bool) { return baseOf(&s.nats, id) },
		func() (*object, bool) { return baseOf(&s.routes, id) },
		func() (*object, bool) { return baseOf(&s.endpoints, id) },
		func() (*object, bool) { return baseOf(&s.groups, id) },
		func() (*object, bool) { return baseOf(&s.interfaces, id) },
		func() (*object, bool) { return baseOf(&s.templates, id) },
		func() (*object, bool) { return baseOf(&s.instances, id) },
		func() (*object, bool) { return baseOf(&s.volumes, id) },
		func() (*object, bool) { return baseOf(&s.flowLogs, id) },
	} {
		if o, ok := found(); ok {
			return o, nil
		}
	}
	return nil, fail("InvalidID", "The ID '%s' is not valid", id)
}

func baseOf[T interface{ base() *object }](t *table[T], id string) (*object, bool) {
	v, ok := t.get(id)
	if !ok {
		return nil, false
	}
	return v.base(), true
}

// objects returns all resources, in the order of their kinds and creation. The caller holds the lock.
func (s *Service) objects() []*object {
	var all []*object
	all = bases(all, &s.vpcs)
	all = bases(all, &s.subnets)
	all = bases(all, &s.gateways)
	all = bases(all, &s.addresses)
	all = bases(all, &s.nats)
	all = bases(all, &s.routes)
	all = bases(all, &s.endpoints)
	all = bases(all, &s.groups)
	all = bases(all, &s.interfaces)
	all = bases(all, &s.templates)
	all = bases(all, &s.instances)
	return bases(all, &s.volumes)
}

func bases[T interface{ base() *object }](all []*object, t *table[T]) []*object {
	for _, v := range t.all() {
		all = append(all, v.base())
	}
	return all
}

// createTags sets tags on resources, all or none.
func (s *Service) createTags(caller iam.Caller, ids []string, tags map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := checkTags(tags); err != nil {
		return err
	}
	var found []*object
	for _, id := range ids {
		o, err := s.find(id)
		if err != nil {
			return err
		}
		t := on(*o)
		t.requestTags = tags
		if err := s.allow(caller, "CreateTags", t); err != nil {
			return err
		}
		merged := clone(o.tags)
		maps.Copy(merged, tags)
		if err := checkTags(merged); err != nil {
			return err
		}
		found = append(found, o)
	}
	for _, o := range found {
		o.tags = clone(o.tags)
		maps.Copy(o.tags, tags)
	}
	s.changes.Announce()
	return nil
}

// deleteTags removes tags with the given values, or with any value where it is nil. Without keys it removes all user tags.
func (s *Service) deleteTags(caller iam.Caller, ids []string, tags map[string]*string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*object
	for _, id := range ids {
		o, err := s.find(id)
		if err != nil {
			return err
		}
		t := on(*o)
		if len(tags) > 0 {
			t.context = map[string]string{"aws:TagKeys": iam.Values(slices.Sorted(maps.Keys(tags))...)}
		}
		if err := s.allow(caller, "DeleteTags", t); err != nil {
			return err
		}
		found = append(found, o)
	}
	for _, o := range found {
		o.tags = clone(o.tags)
		for k, v := range o.tags {
			value, named := tags[k]
			if len(tags) == 0 && !strings.HasPrefix(k, "aws:") || named && (value == nil || *value == v) {
				delete(o.tags, k)
			}
		}
	}
	s.changes.Announce()
	return nil
}

// Tagged returns all resources with tags, for the tagging API. Ended instances and NAT gateways are described for an hour but not found by
// tag.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tagged []tagging.Tagged
	for _, o := range s.objects() {
		i, instance := s.instances.get(o.id)
		n, nat := s.nats.get(o.id)
		ended := instance && i.state == Terminated || nat && n.state == "deleted"
		if len(o.tags) > 0 && !ended {
			tagged = append(tagged, tagging.Tagged{ARN: s.arn(o.kind, o.id), Tags: clone(o.tags)})
		}
	}
	return tagged
}
